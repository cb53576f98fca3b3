#!/bin/sh
# Unit and end-to-end tests side by side: the ones compute, the others wait for programs most of the time. What the
# end-to-end tests print stands in one piece below the unit tests'.
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
vitest run --project e2e >"$printed" 2>&1 &
e2e=$!
trap 'kill "$e2e" 2>/dev/null; exit 130' INT TERM
vitest run --project unit
unit=$?
wait "$e2e"
e2e=$?
cat "$printed"
[ "$unit" -eq 0 ] && [ "$e2e" -eq 0 ]
