"""Prints the events, oldest first, one a line: python3 events.py [--follow] [CURSOR]

The cursor goes to stderr: keep it, and the next run begins behind what this one has printed.
"""
import json
import sys
import time
from urllib.parse import urlencode

from svc import request

follow = "--follow" in sys.argv
cursor = next((argument for argument in sys.argv[1:] if argument != "--follow"), None)

while True:
    page = request("GET", "/v1/events?" + urlencode({"limit": 1000, **({"cursor": cursor} if cursor else {})}))
    for event in page["data"]:
        print(json.dumps(event), flush=True)
    cursor = page["next_cursor"] or cursor  # the last page has one too: what happens later comes behind it
    if page["has_more"]:
        continue
    if not follow:
        break
    time.sleep(2)
if cursor:
    print(cursor, file=sys.stderr)
