#!/bin/sh
# Receives a webhook, as a CGI program (RFC 3875) of a web server that has the certificate: webhooks are sent by HTTPS
# only. openssl takes the secret as an argument, which others on the same machine can see: where that matters, take
# another language.
set -eu

kept=${SVC_SEEN_DIR:-/tmp/svc-webhook} # one file an event_id; better a table with a unique key
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

answer() {
  printf 'Status: %s\r\nContent-Length: 0\r\n\r\n' "$1"
}

# HMAC-SHA256 of stdin, in hex.
hmac() {
  openssl dgst -sha256 -hmac "$1" -r | cut -d ' ' -f 1
}

# True for a body, as it came, that the holder of the secret signed within the last five minutes.
is_genuine() {
  case ${HTTP_X_SVC_TIMESTAMP-} in '' | *[!0-9]* | 0* | ????????????*) return 1 ;; esac
  age=$(($(date +%s) - HTTP_X_SVC_TIMESTAMP))
  [ "${age#-}" -le 300 ] || return 1
  # The 64 characters of the secret are the key as they are: they are not encoded.
  expected=sha256=$({ printf '%s.' "$HTTP_X_SVC_TIMESTAMP"; cat "$work/body"; } | hmac "$SVC_WEBHOOK_SECRET")
  # For a while after the secret was rotated, the second header is signed with the one before.
  is_equal "$expected" "${HTTP_X_SVC_SIGNATURE-}" || is_equal "$expected" "${HTTP_X_SVC_SIGNATURE_PREVIOUS-}"
}

# How long a shell's comparison takes tells nothing here: what it compares are digests under a key made for this once.
is_equal() {
  once=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  [ "$(printf %s "$1" | hmac "$once")" = "$(printf %s "$2" | hmac "$once")" ]
}

# False where the event was here before: each may come more than once.
is_new() {
  mkdir -p "$kept"
  find "$kept" -type f -mmin +1500 -delete # 25 hours
  (set -C && : >"$kept/${1##*/}") 2>/dev/null # -C: fails where the file is there
}

handle() {
  jq -r '"\(.event_id) \(.event) \(.data.to // "")"' "$work/body" >>"${SVC_EVENTS_FILE:-/tmp/svc-events.log}"
}

case ${CONTENT_LENGTH-} in '' | *[!0-9]* | ????????*) answer 413; exit ;; esac
[ "$CONTENT_LENGTH" -le 1000000 ] || { answer 413; exit; }
head -c "$CONTENT_LENGTH" >"$work/body"
if [ "$REQUEST_METHOD" != POST ] || ! is_genuine; then answer 401; exit; fi
event_id=$(jq -r .event_id "$work/body")
if is_new "$event_id"; then handle; fi # what is slow goes to a queue: there are 10 seconds for all of it
answer 202
