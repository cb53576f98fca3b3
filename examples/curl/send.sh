#!/bin/sh
# Sends a message: sh send.sh FROM TO
set -eu
. "$(dirname "$0")/svc.sh"

message=$(jq -n --arg from "$1" --arg to "$2" '{
  from: $from,
  to: [$to],
  subject: "Your order",
  text: "It is on its way.",
  html: "<p>It is on its way.</p>",
  tags: ["order"]
}')
answer=$(svc_request POST /v1/messages "$message")
printf '%s\n' "$answer" | jq -r .id
