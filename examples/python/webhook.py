"""Receives webhooks: PORT=8080 python3 webhook.py, behind a proxy that has the certificate (webhooks are sent by HTTPS only)."""
import hashlib
import hmac
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ["SVC_WEBHOOK_SECRET"].encode()  # the 64 characters as they are: they are not encoded
TOLERANCE = 5 * 60
KEPT = 25 * 60 * 60
MOST_BYTES = 1_000_000

lock = threading.Lock()
seen = {}  # event_id: when; where there are several processes: a table with a unique key


def is_genuine(headers, body):
    """True for a body, as it came, that the holder of the secret signed within the last five minutes."""
    timestamp = headers.get("X-Svc-Timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    expected = "sha256=" + hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    # For a while after the secret was rotated, the second header is signed with the one before.
    return any(
        hmac.compare_digest(headers.get(name, "").encode(), expected.encode())
        for name in ("X-Svc-Signature", "X-Svc-Signature-Previous")
    )


def is_new(event_id):
    """False where the event was here before: each may come more than once."""
    now = time.time()
    with lock:
        while seen and now - seen[oldest := next(iter(seen))] > KEPT:
            del seen[oldest]
        if event_id in seen:
            return False
        seen[event_id] = now
        return True


def handle(event):
    print(event["event_id"], event["event"], event["data"].get("to", ""), flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > MOST_BYTES:
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not is_genuine(self.headers, body):
            return self.answer(401)
        event = json.loads(body)
        self.answer(202)  # first the answer, then the work: there are 10 seconds for it
        if is_new(event["event_id"]):
            handle(event)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Receiver).serve_forever()
