#!/usr/bin/env bash
# Plays the scenarios of sdk/scenarios with curl: reads a step a line, and writes its outcome.
set -uo pipefail
QUORATE_SERVERS=${1//,/ }
. "$(dirname "$0")/quorate.sh"
trap 'rm -rf "$quorate_dir"' EXIT # leases are not kept any longer
declare -A ids

# acquire REQUEST SECONDS: prints the outcome.
acquire() {
  local answer status=0
  answer=$(mktemp -p "$quorate_dir")
  quorate_acquire "$1" ${2:+"$2"} >"$answer" || status=$?
  case $status in
    0) jq -c '{outcome: "granted", id: .allocation.id, fence: .allocation.fence,
      items: [.allocation.claims[].items[]?.name]}' "$answer" ;;
    3) jq -c '.details[] | select(.type == "quorate.v1.Decision") | .debug |
      {outcome: "denied", neverFits: (.neverFits // false), violations}' "$answer" ;;
    8) echo '{"outcome":"timed-out"}' ;;
    6) jq -c '{outcome: "unavailable", mayBeDone}' "$answer" 2>/dev/null || echo '{"outcome":"unavailable"}' ;;
    *) jq -c '{outcome: "failed", code, reason: ([.details[]?.debug.reason // empty][0]), text: .message,
      mayBeDone: (.mayBeDone // false)}' "$answer" ;;
  esac
}

# await SECONDS CONDITION...: polls until a command succeeds.
await() {
  local until=$(($(quorate_now) + $1 * 1000))
  shift
  until "$@"; do
    (($(quorate_now) < until)) || return 1
    sleep 0.02
  done
}

field() { jq -r --arg name "$1" '.[$name] // ""' <<<"$step"; }

# take FILE SECONDS: prints the next line of a file that grows, as the outcome of a change.
take() {
  local seen
  seen=$(<"$1.seen")
  more() { (($(wc -l <"$1") > seen)); }
  await "$2" more "$1" || { echo '{"outcome":"silent"}'; return; }
  echo $((seen + 1)) >"$1.seen"
  sed -n "$((seen + 1))p" "$1" | jq -c '{outcome: "change", id: .change.allocation.id,
    change: (.change.kind | sub("ALLOCATION_CHANGE_KIND_"; "") | ascii_downcase)}'
}

play() {
  local name id within
  name=$(field as) within=$(field within)
  id=${ids[$name]:-}
  case $(field 'do') in
    acquire)
      ids[$name]=$(jq -r .request.id <<<"$step")
      if [[ $(field background) == true ]]; then
        acquire "$(jq -c .request <<<"$step")" "$(field timeout)" >"$quorate_dir/$name.new" && \
          mv "$quorate_dir/$name.new" "$quorate_dir/$name.outcome" &
        echo '{"outcome":"started"}'
      else
        acquire "$(jq -c .request <<<"$step")" "$(field timeout)"
      fi
      ;;
    await)
      await "$within" test -e "$quorate_dir/$name.outcome" || { echo '{"outcome":"waiting"}'; return; }
      cat "$quorate_dir/$name.outcome"
      ;;
    release)
      if quorate_release "$id" >/dev/null; then echo '{"outcome":"released"}'; else echo '{"outcome":"error"}'; fi
      ;;
    await-loss)
      await "$within" test -e "$quorate_dir/$id.lost" || { echo '{"outcome":"held"}'; return; }
      jq -Rc 'split(" ") | {outcome: "lost", how: .[0], earlyMs: .[1] | tonumber}' "$quorate_dir/$id.lost"
      ;;
    await-revoked)
      await "$within" test -e "$quorate_dir/$id.revoked" || { echo '{"outcome":"held"}'; return; }
      echo '{"outcome":"revoked"}'
      ;;
    state)
      quorate_call AllocationService/GetAllocation "$(jq -c '{id}' <<<"$step")" |
        jq -c '{outcome: "state", state: .allocation.state | sub("ALLOCATION_STATE_"; "") | ascii_downcase}'
      ;;
    set-limit)
      quorate_call TreeService/SetLimits "$(jq -c --arg id "set-$$-$RANDOM" '{tree, node, reason: "scenario",
        requestId: $id, limits: {(.resource): {amount}}}' <<<"$step")" |
        jq -c '{outcome: (if .result then "set" else "error" end), text: .message}'
      ;;
    watch)
      echo 0 >"$quorate_dir/$name.changes.seen"
      quorate_watch "$(jq -c .request <<<"$step")" >"$quorate_dir/$name.changes" &
      sleep 2 # curl does not tell when the stream begins
      echo '{"outcome":"watching"}'
      ;;
    next) take "$quorate_dir/$name.changes" "$within" ;;
    many) echo '{"outcome":"unsupported","text":"a script starts several processes for each call"}' ;;
    *) jq -c '{outcome: "unsupported", text: .do}' <<<"$step" ;;
  esac
}

while read -r step; do
  play
done
