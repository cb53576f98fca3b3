"""One request to the API, tried again as the API asks for. Python 3.8 or newer, no packages."""
import http.client
import json
import os
import random
import ssl
import time
import urllib.error
import urllib.request
import uuid

MOST_RETRIES = 5
BASE = float(os.environ.get("SVC_RETRY_BASE_MS", "1000")) / 1000
CEILING = 30

_context = ssl.create_default_context()
if os.environ.get("SVC_CA_FILE"):  # a server with a certificate of its own
    _context.load_verify_locations(os.environ["SVC_CA_FILE"])


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


_opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=_context), NoRedirect)


class SvcError(Exception):
    def __init__(self, status, text):
        try:
            self.problem = json.loads(text)
        except ValueError:
            self.problem = {"code": "unknown", "detail": text[:200].decode("utf-8", "replace")}
        self.status = status
        self.code = self.problem.get("code")
        self.errors = self.problem.get("errors", [])
        super().__init__(f"{status} {self.code}: {self.problem.get('detail')} ({self.problem.get('request_id')})")


def request(method, path, body=None, idempotency_key=None):
    """Answers the parsed body, None for none; raises SvcError for a refusal.

    The Idempotency-Key is the same on every try, so that what is sent twice is done once. Keep it with your job, and
    pass it in, to be safe across a restart too.
    """
    headers = {
        "Authorization": "Bearer " + os.environ["SVC_API_KEY"],
        "Accept": "application/json, application/problem+json",  # one form for all errors
    }
    data = None
    if body is not None:
        data = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    if method != "GET":
        headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())

    for retry in range(MOST_RETRIES + 1):
        asked = urllib.request.Request(os.environ["SVC_BASE_URL"] + path, data, headers, method=method)
        wait = min(CEILING, BASE * 2**retry * (1 + random.random()))
        try:
            with _opener.open(asked, timeout=30) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if retry == MOST_RETRIES or not (error.code == 429 or error.code >= 500):
                raise SvcError(error.code, error.read()) from None
            asked_for = error.headers.get("Retry-After", "")
            if error.code in (429, 503) and asked_for.isdigit():
                wait = int(asked_for)
        except (OSError, http.client.HTTPException):  # no answer: nobody knows whether it was done, so it is tried again
            if retry == MOST_RETRIES:
                raise
        time.sleep(wait)
