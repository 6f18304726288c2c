#!/usr/bin/env bash
# Acquires a lease of a few cores, works while it is held, and says why if it is denied. The status is 0 after the work,
# 3 if the request was denied, and 7 if the lease was lost.
#
#   sdk/curl/example.sh http://127.0.0.1:7101 cern:atlas/operations/web cores=4
#
# QUORATE_TOKEN has a token, and QUORATE_CURL options such as --cacert.
set -euo pipefail
QUORATE_SERVERS=${1//,/ }
. "$(dirname "$0")/quorate.sh"

id=example-$$-$RANDOM
request=$(jq -nc --arg id "$id" --arg place "$2" --arg amount "$3" '{id: $id, ttlMs: 30000, mode: "MODE_REJECT",
  claims: [{tree: ($place / ":")[0], node: ($place / ":")[1], amounts: {(($amount / "=")[0]): ($amount / "=")[1]}}]}')

status=0
quorate_acquire "$request" >"$quorate_dir/answer" || status=$?
answer=$(<"$quorate_dir/answer")
if ((status == 3)); then
  jq -r '.details[] | select(.type == "quorate.v1.Decision") | .debug | "denied: \(.explanation)", (.violations[] |
    "  \(.tree):\(.node // "") \(.resource): limit \(.limit // 0), used \(.used // 0), " +
    "requested \(.requested), missing \(.missing)")' <<<"$answer"
fi
if ((status != 0)); then
  ((status == 3)) || printf '%s\n' "$answer" >&2
  exit "$status"
fi
echo "granted $id with fence $(jq -r .fence <<<"$answer")"
trap 'quorate_release "$id" >/dev/null; rm -rf "$quorate_dir"' EXIT
for _ in 1 2 3; do
  if [[ -e $quorate_dir/$id.lost ]]; then # it appears at the safe moment
    echo "the lease is lost: $(<"$quorate_dir/$id.lost")"
    exit 7
  fi
  sleep 0.1 # the work
done
echo released
