"""Sends a message: python3 send.py FROM TO"""
import sys

from svc import SvcError, request

try:
    message = request("POST", "/v1/messages", {
        "from": sys.argv[1],
        "to": [sys.argv[2]],
        "subject": "Your order",
        "text": "It is on its way.",
        "html": "<p>It is on its way.</p>",
        "tags": ["order"],
    })
    print(message["id"])
except SvcError as error:
    print(error, file=sys.stderr)
    for problem in error.errors:
        print(f"  {problem['field']}: {problem['issue']}", file=sys.stderr)
    sys.exit(1)
