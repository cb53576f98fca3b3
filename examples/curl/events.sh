#!/bin/sh
# Prints the events, oldest first, one a line: sh events.sh [--follow] [CURSOR]
# The cursor goes to stderr: keep it, and the next run begins behind what this one has printed.
set -eu
. "$(dirname "$0")/svc.sh"

follow=
[ "${1-}" != --follow ] || { follow=yes; shift; }
cursor=${1-}

while :; do
  page=$(svc_request GET "/v1/events?limit=1000${cursor:+&cursor=$(jq -rn --arg c "$cursor" '$c | @uri')}")
  printf '%s\n' "$page" | jq -c '.data[]'
  next=$(printf '%s\n' "$page" | jq -r '.next_cursor // ""')
  cursor=${next:-$cursor} # the last page has one too: what happens later comes behind it
  [ "$(printf '%s\n' "$page" | jq .has_more)" = false ] || continue
  [ -n "$follow" ] || break
  sleep 2
done
[ -z "$cursor" ] || printf '%s\n' "$cursor" >&2
