#!/usr/bin/env bash
# Allocates, is denied, waits in the queue, renews and releases with curl and jq: queue.sh http://HOST:PORT TREE NODE.
# Against servers with certificates and rights, add --cacert FILE and -H "Authorization: Bearer TOKEN" to curl.
set -euo pipefail
server=$1 tree=$2 node=$3

# call SERVICE/METHOD BODY prints the answer, or the error with status 1. All requests here have ids, so a repetition is
# never counted twice.
call() {
  local answer status
  for _ in {1..300}; do
    answer=$(curl -s -m 15 -w '\n%{http_code}' -H 'Content-Type: application/json' -d "$2" \
      "$server/quorate.v1.$1") || { sleep 0.2; continue; }
    status=${answer##*$'\n'} answer=${answer%$'\n'*}
    case $status in
      200) printf '%s\n' "$answer"; return ;;
      503 | 504) sleep 0.2 ;; # unavailable, deadline_exceeded: another attempt may succeed
      *) printf '%s\n' "$answer"; return 1 ;;
    esac
  done
  echo "no server answers" >&2
  return 1
}

# allocate ID CORES MORE, where MORE is more fields of the request.
allocate() {
  call AllocationService/Allocate "$(jq -nc --arg id "$1" --argjson cores "$2" --arg tree "$tree" --arg node "$node" \
    '{id: $id, ttlMs: 60000, claims: [{tree: $tree, node: $node, amounts: {cores: $cores}}]}'"+ $3")"
}

release() { call AllocationService/Release "{\"id\": \"$1\", \"fence\": \"$2\"}"; }

first=$(allocate curl-1 6 '{mode: "MODE_REJECT"}')
fence=$(jq -r .allocation.fence <<<"$first")
echo "granted $(jq -r .allocation.id <<<"$first")"

if denied=$(allocate curl-2 6 '{mode: "MODE_REJECT"}'); then echo "curl-2 was granted" >&2; exit 1; fi
jq -er '.details[] | select(.type == "quorate.v1.Decision") | .debug |
  "denied: " + (if .neverFits then "it can never fit" else "it may fit later" end),
  (.violations[] | "  \(.tree):\(.node) \(.resource): limit \(.limit), used \(.used), requested \(.requested)")
  ' <<<"$denied"

second=$(allocate curl-2 6 '{mode: "MODE_WAIT"}')
echo "waits at position $(jq -r .allocation.waiting.position <<<"$second")"

renewed=$(call AllocationService/Renew "{\"id\": \"curl-1\", \"fence\": \"$fence\"}")
jq -r '(.allocation.expiresLedgerMs | tonumber) - (.write.ledgerTimeMs | tonumber) |
  "renewed for \(. / 1000 | floor) s"' <<<"$renewed"

release curl-1 "$fence" >/dev/null
echo "released curl-1"

while [[ $(jq -r .allocation.state <<<"$second") == ALLOCATION_STATE_WAITING ]]; do # each call keeps its place
  second=$(allocate curl-2 6 '{mode: "MODE_WAIT", pollMs: 5000}')
done
fence2=$(jq -r .allocation.fence <<<"$second")
if [[ $(jq -r .allocation.state <<<"$second") != ALLOCATION_STATE_HELD ]] || ((fence2 <= fence)); then
  echo "curl-2 left the queue, or has an old fence: $second" >&2
  exit 1
fi
echo "granted curl-2"

third=$(allocate curl-3 1 '{mode: "MODE_REJECT"}')
echo "granted curl-3"
# The fence of another grant: a late call must not end this one.
if refused=$(release curl-3 "$fence2"); then echo "curl-3 was released" >&2; exit 1; fi
echo "refused: $(jq -r '.details[] | select(.type == "quorate.v1.Problem") | .debug.reason' <<<"$refused")"

token='' pages=0
while [[ $token || $pages -eq 0 ]]; do
  page=$(call AllocationService/ListAllocations \
    "{\"tree\": \"$tree\", \"idPrefix\": \"curl-\", \"pageSize\": 1, \"pageToken\": \"$token\"}")
  token=$(jq -r .nextPageToken <<<"$page") pages=$((pages + 1))
  jq -r --arg n "$pages" '.allocations[] | "page \($n): \(.id) \(.state)"' <<<"$page"
done

release curl-2 "$fence2" >/dev/null
release curl-3 "$(jq -r .allocation.fence <<<"$third")" >/dev/null
echo "released curl-2 curl-3"
