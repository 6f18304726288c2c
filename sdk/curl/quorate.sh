# Functions for shell scripts that hold quota: bash on Linux, curl and jq, and nothing else. `quorate lease run` does
# more with less; this is for machines without that binary, and it shows what a client has to do in any language.
#
#   QUORATE_SERVERS="http://10.0.0.1:7101 http://10.0.0.2:7101"   # in this order
#   QUORATE_TOKEN, QUORATE_CURL                                   # a token; more options of curl, such as --cacert
#   QUORATE_NAMESPACE                                             # of ids; that of the caller without it
#   . sdk/curl/quorate.sh
#
# Every function prints the JSON of the answer and returns 0, or prints the JSON of the error and returns 3 if the
# request was denied, 8 if its time to wait is over, 6 if no server answered, and 1 for any other answer.

quorate_dir=$(mktemp -d) # the index of the server that calls go to, and a file for each event of a lease
echo 0 >"$quorate_dir/current"

# Milliseconds on a clock that no adjustment of the date moves.
quorate_now() {
  local up _
  read -r up _ </proc/uptime
  echo $((${up/./} * 10))
}

quorate_server() {
  local servers=($QUORATE_SERVERS)
  echo "${servers[$(<"$quorate_dir/current")]}"
}

# quorate_advance SERVER: selects the server after one that failed, unless another call has done so already.
quorate_advance() {
  local servers=($QUORATE_SERVERS) current
  current=$(<"$quorate_dir/current")
  [[ ${servers[$current]} != "$1" ]] || echo $(((current + 1) % ${#servers[@]})) >"$quorate_dir/current"
}

# quorate_attempt METHOD REQUEST MILLISECONDS: one attempt at the current server, and on to the next one if that fails.
# Services of other packages than quorate.v1 are named with theirs: admin.v1.ClusterService/GetStatus.
quorate_attempt() {
  local server answer status asked method=$1 failed=0 headers=$quorate_dir/headers.$BASHPID
  [[ $method == *.* ]] || method=v1.$method
  server=$(quorate_server)
  answer=$(curl -sS --max-time "$(quorate_seconds "$3")" --connect-timeout 2 -w '\n%{http_code}' -D "$headers" \
    ${QUORATE_CURL:-} --config <(quorate_headers application/json) --data-binary "$2" "$server/quorate.$method" \
    2>/dev/null) || failed=$?
  asked=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]\{1,4\}\)\r*$/\1/p' "$headers" 2>/dev/null)
  rm -f "$headers"
  if [[ $failed =~ ^(35|51|58|60|66|77)$ ]]; then # another attempt would meet the same
    echo "{\"code\":\"unavailable\",\"message\":\"TLS failed: curl ends with status $failed at $server\"}"
    return 1
  fi
  status=${answer##*$'\n'}
  answer=${answer%$'\n'*}
  if [[ $status =~ ^[1-9] && $status != 200 ]] && ! quorate_is_server_error "$answer"; then
    quorate_gateway "$status" "${asked:-0}" || failed=$?
    ((failed != 6)) || quorate_advance "$server"
    return "$failed"
  fi
  if [[ $status == 200 && $1 == */@(Allocate|Renew) ]] && ! quorate_is_about "$2" "$answer"; then
    echo '{"code":"unavailable","message":"the answer is about another allocation"}'
    return 6 # something mixes answers up, so that this one must not look like a grant
  fi
  printf '%s\n' "$answer"
  case $status in
    200) return 0 ;;
    429)
      [[ $answer == *'"quorate.v1.Decision"'* ]] || return 1 # a disk or a bound of the ledger is full
      return 3
      ;;
    000 | '' | 499 | 502 | 503 | 504) # no connection, no leader, too late: another attempt may succeed
      quorate_advance "$server"
      return 6
      ;;
    *) return 1 ;;
  esac
}

# quorate_is_about REQUEST ANSWER: true unless the answer has another id than the request.
quorate_is_about() {
  jq -en --argjson asked "$1" --argjson told "$2" '($told.allocation.id // $asked.id) == $asked.id' >/dev/null 2>&1
}

# quorate_is_server_error ANSWER: true if an error has a code of Connect, as those of servers have.
quorate_is_server_error() { jq -e '.code | type == "string" and test("^[a-z_]+$")' <<<"$1" >/dev/null 2>&1; }

# quorate_gateway STATUS SECONDS: prints the error that an answer of a gateway stands for, by the table of
# docs/clients.md, with the SECONDS that it asks to wait. mayBeDone is false if no server has seen the call.
quorate_gateway() {
  local code=unknown done=false
  case $1 in
    400) code=internal ;;
    401) code=unauthenticated ;;
    403) code=permission_denied ;;
    404 | 405 | 501) code=unimplemented ;;
    413 | 414 | 431) code=invalid_argument ;;
    408 | 425 | 429 | 502 | 503 | 504) code=unavailable ;;
  esac
  [[ $1 != 5?? || $1 == 501 ]] || done=true
  printf '{"code":"%s","message":"HTTP %s without an answer of a server","mayBeDone":%s,' "$code" "$1" $done
  printf '"details":[{"type":"google.rpc.RetryInfo","debug":{"retryDelay":"%ss"}}]}\n' "$(($2 < 60 ? $2 : 60))"
  [[ $code != unavailable ]] || return 6
  return 1
}

# The headers as a configuration of curl: as arguments, other users of the machine would see the token.
quorate_headers() {
  printf 'header = "Content-Type: %s"\nheader = "Connect-Protocol-Version: 1"\n' "$1"
  [[ -z ${QUORATE_TOKEN:-} ]] || printf 'header = "Authorization: Bearer %s"\n' "$QUORATE_TOKEN"
}

quorate_seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# quorate_call METHOD REQUEST [SECONDS]: calls until a server answers. Requests need an id of the caller, so that all
# attempts are one request: id of an allocation, requestId of a change of configuration.
quorate_call() {
  local until status answer asked pause=50 poll
  if [[ $1 == AllocationService/* && -n ${QUORATE_NAMESPACE:-} ]]; then
    set -- "$1" "$(jq -c --arg n "$QUORATE_NAMESPACE" 'if .id then .namespace //= $n else . end' <<<"$2")" "${3:-30}"
  fi
  poll=$(jq -r '.pollMs // 0' <<<"$2")
  until=$(($(quorate_now) + ${3:-30} * 1000))
  while :; do
    status=0
    answer=$(quorate_attempt "$1" "$2" $((5000 + poll))) || status=$?
    # An overloaded server or a gateway says how long to wait.
    asked=$(jq -r '[.details[]? | select(.type == "google.rpc.RetryInfo") | .debug.retryDelay | rtrimstr("s") | tonumber
      * 1000 | floor] | max // 0' <<<"$answer" 2>/dev/null) || asked=0
    if ((status != 6)) || (($(quorate_now) + (pause > ${asked:-0} ? pause : ${asked:-0}) >= until)); then
      printf '%s\n' "$answer"
      return "$status"
    fi
    sleep "$(quorate_seconds $((pause / 2 + RANDOM % pause > asked ? pause : ${asked:-0})))"
    pause=$((pause < 700 ? pause * 3 / 2 : 1000))
  done
}

# quorate_acquire REQUEST [SECONDS]: waits for a grant, and keeps the lease in the background if it has a TTL. The
# request needs an id. QUORATE_KEEPER is then the process that keeps it. A signal that ends the script, such as Ctrl-C,
# takes the request out of the queue first; traps of the script are put aside meanwhile.
quorate_acquire() {
  local traps status=0 signal id
  id=$(jq -r .id <<<"$1")
  traps=$(trap -p INT TERM HUP)
  for signal in INT TERM HUP; do
    trap "quorate_interrupted '$id' $signal $(printf %q "$traps")" "$signal"
  done
  quorate_wait "$@" || status=$?
  trap - INT TERM HUP
  eval "$traps"
  return "$status"
}

# quorate_interrupted ID SIGNAL TRAPS: takes a request out of the queue, and lets the signal take its course.
quorate_interrupted() {
  trap - INT TERM HUP
  quorate_call AllocationService/Release "{\"id\":\"$1\"}" 2 >/dev/null || true
  eval "$3"
  kill -s "$2" "$BASHPID"
}

# quorate_wait REQUEST [SECONDS]: what quorate_acquire does without signals.
quorate_wait() {
  local request until answer status sent state limit id
  id=$(jq -r .id <<<"$1")
  request=$(jq -c --argjson s "${2:-604800}" '.mode //= "MODE_WAIT" |
    if .mode == "MODE_WAIT" then .waitMs //= $s * 1000 else . end' <<<"$1")
  until=$(($(quorate_now) + ${2:-604800} * 1000))
  while :; do
    sent=$(quorate_now) status=0
    limit=$(((until - sent) / 1000 + 1))
    answer=$(quorate_call AllocationService/Allocate "$request" $((limit < 40 ? limit : 40))) || status=$?
    state=$(jq -r '.allocation.state // ""' <<<"$answer" 2>/dev/null) || state=
    if ((status == 0)) && [[ $state != ALLOCATION_STATE_WAITING ]]; then
      break
    fi
    if ((status != 0)) || (($(quorate_now) >= until)); then
      quorate_give_up "$id" "$status" "$answer"
      return
    fi
    request=$(jq -c '.pollMs = 2000' <<<"$request")
    sleep 0.1
  done
  printf '%s\n' "$answer"
  jq -r .allocation.fence <<<"$answer" >"$quorate_dir/$id.fence"
  if [[ $(jq -r '.allocation.ttlMs // 0' <<<"$answer") != 0 ]]; then
    quorate_keep "$answer" "$sent" </dev/null >/dev/null 2>&1 &
    QUORATE_KEEPER=$!
  fi
}

# quorate_give_up ID STATUS ANSWER: takes a request out of the queue, unless the servers have refused or ended it.
quorate_give_up() {
  local reason
  reason=$(jq -r '[.details[]?.debug.reason // empty][0] // ""' <<<"$3" 2>/dev/null) || reason=
  printf '%s\n' "$3"
  if [[ $2 == 0 || $2 == 6 ]]; then
    quorate_call AllocationService/Release "{\"id\":\"$1\"}" 2 >/dev/null || true
    return $(($2 == 0 ? 8 : 6))
  fi
  [[ $reason != ENDED ]] || return 8
  return "$2"
}

# quorate_keep ANSWER SENT: renews until the lease is released or lost. The lease ends for its holder a TTL after the
# last successful renewal was sent, less a margin: then, or when the servers say so, the file ID.lost appears with the
# reason and the time left, in milliseconds. The file ID.revoked appears when the lease is revoked.
quorate_keep() {
  local id fence ttl ends safe next answer=$1 sent=$2 status=0 now limit
  id=$(jq -r .allocation.id <<<"$answer") fence=$(jq -r .allocation.fence <<<"$answer")
  while [[ -d $quorate_dir && ! -e $quorate_dir/$id.released ]]; do
    if ((status == 0)); then
      ttl=$(jq -r .allocation.ttlMs <<<"$answer")
      ends=$((sent + $(jq -r '(.allocation.expiresLedgerMs | tonumber) - (.write.ledgerTimeMs | tonumber)' <<<"$answer")))
      safe=$((ends - (ttl / 10 < 3000 ? ttl / 10 : 3000)))
      next=$(($(quorate_now) + (ttl / 3 < 2000 ? ttl / 3 : 2000))) # a revocation is noticed by a renewal only
      [[ $(jq -r '.allocation | has("revokedBy")' <<<"$answer") == false ]] || : >"$quorate_dir/$id.revoked"
    elif ((status == 6)); then
      next=$(($(quorate_now) + 200))
    else # another answer: it has ended
      quorate_lost "$id" ended "$ends"
      return
    fi
    now=$(quorate_now)
    next=$((next < safe ? next : safe))
    ((next <= now)) || sleep "$(quorate_seconds $((next - now)))"
    sent=$(quorate_now)
    if ((sent >= safe)); then
      quorate_lost "$id" unrenewed "$ends"
      return
    fi
    limit=$((ttl / 6 < safe - sent ? ttl / 6 : safe - sent)) status=0
    answer=$(quorate_attempt AllocationService/Renew "{\"id\":\"$id\",\"fence\":\"$fence\"}" "$limit") || status=$?
  done
}

quorate_lost() {
  local how=$2
  [[ ! -e $quorate_dir/$1.revoked ]] || how=preempted
  echo "$how $(($3 - $(quorate_now)))" >"$quorate_dir/$1.lost.new"
  mv "$quorate_dir/$1.lost.new" "$quorate_dir/$1.lost"
}

# quorate_release ID: releases an allocation, and ends the renewals of its lease. What quorate_acquire was granted here
# is released by its fence: if another request has the id meanwhile, the answer is FENCE_MISMATCH.
quorate_release() {
  local fence=0
  : >"$quorate_dir/$1.released"
  [[ ! -e $quorate_dir/$1.fence ]] || fence=$(<"$quorate_dir/$1.fence")
  quorate_call AllocationService/Release "{\"id\":\"$1\",\"fence\":\"$fence\"}"
}

# quorate_watch REQUEST: prints what happens, one event a line, and continues at the next server if one fails.
quorate_watch() {
  local request=$1 server head length message
  while :; do
    server=$(quorate_server)
    # A stream consists of envelopes: a byte of flags, four bytes with the length, and a message. Flag 2 is the end.
    while head=($(head -c 5 | od -An -tu1)) && ((${#head[@]} == 5)); do
      length=$(((head[1] << 24) + (head[2] << 16) + (head[3] << 8) + head[4]))
      message=$(head -c "$length")
      if ((head[0] & 2)); then
        jq -e '.error.code == "out_of_range" | not' <<<"$message" >/dev/null || return 1
        break
      fi
      request=$(jq -c --argjson m "$message" '.afterIndex = ($m.index // "0") | .afterNumber = ($m.number // 0)' \
        <<<"$request")
      jq -c 'select(.change // .crossing // .revision // .event)' <<<"$message"
    done < <(quorate_envelope "$request" | curl -sSN --connect-timeout 2 --speed-limit 1 --speed-time 20 \
      ${QUORATE_CURL:-} --config <(quorate_headers application/connect+json) --data-binary @- \
      "$server/quorate.v1.EventService/WatchEvents" 2>/dev/null)
    quorate_advance "$server"
    sleep 0.2
  done
}

quorate_envelope() {
  local length
  length=$(printf '%s' "$1" | wc -c)
  printf "\\x00\\x$(printf %02x $((length >> 24)))\\x$(printf %02x $((length >> 16 & 255)))"
  printf "\\x$(printf %02x $((length >> 8 & 255)))\\x$(printf %02x $((length & 255)))%s" "$1"
}
