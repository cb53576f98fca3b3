# One request to the API, tried again as the API asks for. A POSIX shell, curl 7.84 or newer and jq.
# Source it: . ./svc.sh

svc_most_retries=5
svc_base_ms=${SVC_RETRY_BASE_MS:-1000}
svc_ceiling_ms=30000

# svc_request METHOD PATH [JSON]: the body on stdout; what was refused on stderr, and 1.
# The Idempotency-Key is the same on every try, so that what is sent twice is done once. Set SVC_IDEMPOTENCY_KEY to one
# that you keep with your job, to be safe across a restart too.
svc_request() (
  method=$1 path=$2 json=${3-}
  set -- --silent --show-error --max-time 30 --request "$method"
  [ -z "${SVC_CA_FILE-}" ] || set -- "$@" --cacert "$SVC_CA_FILE" # a server with a certificate of its own
  set -- "$@" --header 'Accept: application/json, application/problem+json' # one form for all errors
  [ "$method" = GET ] || set -- "$@" --header "Idempotency-Key: ${SVC_IDEMPOTENCY_KEY:-$(svc_uuid)}"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  answer=$work/answer
  printf %s "$json" >"$work/body"
  [ -z "$json" ] || set -- "$@" --header 'Content-Type: application/json' --data-binary "@$work/body"
  retry=0
  while :; do
    # The key goes in by stdin: the arguments of a program are seen by everybody on the machine.
    told=$(printf 'header = "Authorization: Bearer %s"\n' "$SVC_API_KEY" |
      curl "$@" --config - --output "$answer" --write-out '%{http_code} %header{retry-after}' "$SVC_BASE_URL$path") ||
      told=000 # no answer: nobody knows whether it was done, so it is tried again
    status=${told%% *} asked=${told#* }
    case $status in
      2??) cat "$answer"; exit 0 ;;
      000 | 429 | 5??) [ "$retry" -lt "$svc_most_retries" ] || break ;;
      *) break ;;
    esac
    case $status:$asked in
      429:[1-9]* | 503:[1-9]*) sleep "$asked" ;; # what the server asks for
      *) svc_back_off "$retry" ;;
    esac
    retry=$((retry + 1))
  done
  [ "$status" != 000 ] || exit 1
  jq -r '"\(.status) \(.code): \(.detail) (\(.request_id))", (.errors[]? | "  \(.field): \(.issue)")' "$answer" >&2 ||
    echo "the server answered $status" >&2
  exit 1
)

# A growing delay with jitter.
svc_back_off() {
  random=$(od -An -N2 -tu2 /dev/urandom)
  ms=$(((svc_base_ms << $1) * (65536 + random) / 65536))
  [ "$ms" -le "$svc_ceiling_ms" ] || ms=$svc_ceiling_ms
  sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
}

svc_uuid() {
  cat /proc/sys/kernel/random/uuid 2>/dev/null || uuidgen
}
