#!/usr/bin/env bash
# Three real servers on this machine replay a quota scenario of a physics laboratory (cern.yaml), lose their leader in the
# middle, and go on. Every outcome is checked: the exit code is 0 only if each of them is what it must be. No process and no
# file is left behind.
#
#   make demo, or quorate server dev --demo, or QUORATE=path/to/quorate examples/demo.sh
#
# With KEEP=1 (make demo KEEP=1) the servers go on at the end, with the dashboard, until Ctrl-C.
set -euo pipefail
if ((BASH_VERSINFO[0] < 5)); then
  echo "the demo needs bash 5 or newer, this is $BASH_VERSION" >&2
  exit 1
fi

quorate=${QUORATE:-quorate}
steps=18
patience=30s # an election takes a few seconds
nodes=(n1 n2 n3)

# --- Output -----------------------------------------------------------------------------------------------------------

bold='' dim='' red='' green='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
  bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
fi

chapter() { printf '\n%s── %s%s\n' "$bold" "$1" "$plain"; }
fact() { printf '   %s\n' "$1"; }
fail() {
  printf '%s\n' "the demo went wrong: $1" >&2
  exit 1
}

# step N TITLE begins a step of the scenario.
step() {
  number=$1
  printf '%s%2d. %s%s\n' "$bold" "$1" "$2" "$plain"
}

# --- Servers ----------------------------------------------------------------------------------------------------------

dir=''
declare -A http raft gossip pid

# clean_up ends the servers that still run and removes the data, also after a signal. One can arrive between the start of a
# server and the note of its process, so it ends the jobs of this shell too.
clean_up() {
  trap '' INT TERM HUP
  local process processes
  read -ra processes <<<"${pid[*]} $(jobs -p | tr '\n' ' ')"
  disown -a # the shell need not report that they were killed
  for process in "${processes[@]}"; do kill -9 "$process" 2>/dev/null || true; done
  for process in "${processes[@]}"; do
    while kill -0 "$process" 2>/dev/null; do sleep 0.02; done
  done
  [[ -z $dir ]] || rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP # untrapped, bash drops an interrupt that the command it waits for survives
dir=$(mktemp -d "${TMPDIR:-/tmp}/quorate-demo-XXXXXX") # after the trap, which removes it

# free_ports sets ports to nine addresses on loopback at which nothing listens.
free_ports() {
  local port first=$((10000 + RANDOM % 6000))
  ports=()
  for ((port = first; ${#ports[@]} < 9; port++)); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || ports+=("127.0.0.1:$port")
  done
}

# start ID starts a server on its data folder.
start() {
  "$quorate" server run --id "$1" --data-dir "$dir/$1" --cluster-name demo --log-level warn \
    --http-addr "${http[$1]}" --raft-addr "${raft[$1]}" --gossip-addr "${gossip[$1]}" \
    --ui write --bootstrap-expect 3 --join "${gossip[n1]},${gossip[n2]},${gossip[n3]}" >>"$dir/$1.log" 2>&1 &
  pid[$1]=$!
  disown "${pid[$1]}" # the shell need not report that it was killed
}

# kill_hard ID ends a server as a power cut would.
kill_hard() {
  kill -9 "${pid[$1]}"
  while kill -0 "${pid[$1]}" 2>/dev/null; do sleep 0.02; done
  unset "pid[$1]"
}

# stop ID ends a server in order: it hands over what it leads.
stop() {
  local waited=0
  kill "${pid[$1]}"
  while kill -0 "${pid[$1]}" 2>/dev/null; do
    ((waited++ < 750)) || fail "$1 does not stop within 15 s: $(tail -n 10 "$dir/$1.log")"
    sleep 0.02
  done
  unset "pid[$1]"
}

# ask ARG... runs a command of quorate, each time at another server: all of them take every call. It sets
# out, err and code, and via, the server.
turn=0
ask() {
  local i id servers=''
  turn=$((turn + 1)) via=''
  for ((i = 0; i < 3; i++)); do
    id=${nodes[(turn + i) % 3]}
    [[ -n ${pid[$id]:-} ]] || continue
    servers+=${servers:+,}http://${http[$id]}
    via=${via:-$id}
  done
  code=0
  "$quorate" --server "$servers" --timeout "$patience" "$@" >"$dir/out" 2>"$dir/err" || code=$?
  out=$(<"$dir/out") err=$(grep -v '^no answer yet' "$dir/err" || true) # it tries again by itself
}

# must ARG... is ask for what cannot be refused.
must() {
  ask "$@"
  ((code == 0)) || fail "quorate $*: $err"
}

# find_leader sets leader to the server that leads.
find_leader() {
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    ask status
    leader=$(awk '$1 == "leader" {print $2}' <<<"$out")
    [[ -z ${pid[$leader]:-} ]] || return 0
    sleep 0.1
  done
  fail "no server knows a leader"
}

seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}'; }

# --- Checks -----------------------------------------------------------------------------------------------------------

show_usage() {
  must usage cern
  sed 's/^/   /' <<<"$out"
}

# used NODE... sets used to what each of the subtrees holds.
used() {
  local node
  must usage cern
  used=''
  for node; do
    used+="${used:+ }$node=$(sed 's/ ([0-9]*)//' <<<"$out" | awk -v node="$node" '
      {name = $1; sub(/.*[:\/]/, "", name)} name == node {print $5}')"
  done
}

# everything sets all to the limits, with their revision, and the allocations that the cluster has acknowledged, and held to
# the number of allocations.
everything() {
  must manifest export
  all="$err"$'\n'"$out"
  must allocation list
  all+=$'\n'"$out"
  held=$(($(wc -l <<<"$out") - 1))
}

# verdict prints how the call that was asked ended, and fails unless these levels, and no others, refused it.
verdict() { # WHAT LEVEL...
  local what=$1 got levels
  shift
  levels=$(sed -n 's/^  cern:\([^ ]*\) .*/\1/p' <<<"$err" | sed 's,.*/,,' | tr '\n' ' ')
  case $code in
    0) got="${green}accepted$plain" ;;
    3) got="${red}refused$plain" ;;
    *) fail "step ${number:-0}, $what: $err" ;;
  esac
  printf '    %-44s %s %s\n' "$what" "$got" "${dim}via $via$plain"
  if ((code == 3)); then
    printf '%s      “%s”%s\n' "$dim" "$(head -n 1 <<<"$err" | sed 's/^quorate: //; s/ ([a-z_]*)$//')" "$plain"
  fi
  [[ ${levels% } == "$*" ]] || fail "step ${number:-0}, $what: must be refused by \"$*\", and was by \"${levels% }\""
}

# limit NODE AMOUNT [LEVEL...] sets a limit; levels are those that must refuse it.
limit() {
  local node=$1 amount=$2
  shift 2
  ask limit set "cern:$node" "cores=$amount" --actor demo --reason "the CERN script"
  verdict "limit of ${node#atlas/} := $amount" "$@"
}

# claim ID NODE AMOUNT [LEVEL...] claims cores; levels are those that must refuse them.
claim() {
  local id=$1 node=$2 amount=$3
  shift 3
  ask allocate --id "$id" --at "cern:$node" --amount "cores=$amount" --label demo=cern
  verdict "claim $amount at ${node#atlas/}" "$@"
}

release() {
  ask release "$1"
  verdict "release $1"
}

# over NODE AMOUNT checks by how much the last call left a node over its limit.
over() {
  grep -q "^! cern:$1  cores: .* $2 over" <<<"$out" || fail "step $number: $1 must be $2 over its limit"
  printf '%s      %s is now %s over its limit; it keeps what it has%s\n' "$dim" "$1" "$2" "$plain"
}

# holds NODE=AMOUNT... checks what subtrees hold.
holds() {
  used "${@%=*}"
  [[ $used == "$*" ]] || fail "step ${number:-0}: must hold $*, and holds $used"
}

# --- The play ---------------------------------------------------------------------------------------------------------

physics=atlas/physics higgs=atlas/physics/higgs simulation=atlas/physics/simulation
operations=atlas/operations workflow=atlas/operations/workflow web=atlas/operations/web

echo "${bold}Quorate demo: three servers, one ledger, and a laboratory that shares 100 cores$plain"
began=$EPOCHREALTIME
free_ports
for i in 0 1 2; do
  http[${nodes[i]}]=${ports[i]} raft[${nodes[i]}]=${ports[i + 3]} gossip[${nodes[i]}]=${ports[i + 6]}
done

chapter "start n1, n2 and n3, each a process with a log on disk"
for id in "${nodes[@]}"; do
  start "$id"
  fact "$id  http://${http[$id]}  process ${pid[$id]}"
done
ask cluster wait --voters 3 --healthy
((code == 0)) || fail "the servers do not form a cluster: $err"$'\n'"$(tail -n 10 "$dir"/n?.log)"
find_leader
fact "ready after $(seconds_since "$began") s; $leader leads; data in $dir"

chapter "load examples/cern.yaml and let the first jobs in"
if [[ -n ${CERN_YAML:-} ]]; then # quorate server dev --demo brings the file along
  printf '%s' "$CERN_YAML" >"$dir/cern.yaml"
else
  cp "$(dirname "${BASH_SOURCE[0]}")/cern.yaml" "$dir/cern.yaml"
fi
must apply -f "$dir/cern.yaml" --actor demo --reason "the CERN example"
claim simulation-1 $simulation 5
claim simulation-2 $simulation 5
claim workflow-1 $workflow 30
claim web-1 $web 5
holds simulation=10 physics=10 operations=35 atlas=45
show_usage

chapter "play the script; each call goes to another server"
step 1 "ATLAS has allotted all it has, so Physics cannot get more"
limit $physics 21 atlas
step 2 "... and Operations cannot either"
limit $operations 81 atlas
step 3 "Physics has 10 left for Higgs, not 11"
limit $higgs 11 physics
step 4 "10 fit"
limit $higgs 10
step 5 "Operations has nothing left for Workflow or Web"
limit $workflow 51 operations
limit $web 31 operations
step 6 "Operations cannot shrink below what it has allotted"
limit $operations 50 operations
step 7 "The limit of Simulation may go below its use: nothing is evicted"
limit $simulation 5
over $simulation 5
step 8 "... but Simulation cannot grow while it is over its limit"
claim simulation-3 $simulation 1 simulation
step 9 "What Simulation gave up, Higgs can have"
limit $higgs 15

everything
before=$all
find_leader
killed=$leader
chapter "kill -9 $killed, the leader, as a power cut would"
kill_hard "$killed"
began_crash=$EPOCHREALTIME
everything # a linearizable read: it is answered once there is a new leader
find_leader
fact "$leader leads after $(seconds_since "$began_crash") s, without any intervention"
[[ $all == "$before" ]] || fail "something was lost with the leader: $(diff <(echo "$before") <(echo "$all"))"
fact "all $held allocations and all limits are there, at the same revision as before"
must allocate --id simulation-1 --at cern:$simulation --amount cores=5 --label demo=cern
grep -q "granted before" <<<"$err" || fail "simulation-1 was granted a second time: $err"
holds atlas=45
fact "simulation-1 is requested once more under the same id: the first grant again, nothing is charged twice"

chapter "go on with the script on the two that are left"
step 10 "Higgs takes 10, which fills Physics"
claim higgs-1 $higgs 10
holds higgs=10 physics=20 atlas=55
step 11 "Higgs has 5 left of its own, and still cannot grow: Physics is full"
claim higgs-2 $higgs 1 physics
step 12 "Web has 25 left, not 26"
claim web-2 $web 26 web
step 13 "25 fit"
claim web-3 $web 25
holds web=30 operations=60 atlas=80
step 14 "Now Web is full"
claim web-4 $web 1 web
step 15 "A claim that is too large for every level names every level"
claim workflow-2 $workflow 21 workflow operations atlas
step 16 "A group in the middle may hold something itself"
claim operations-1 $operations 21 operations atlas
claim operations-2 $operations 20
holds operations=80 atlas=100
release operations-2
holds operations=60 atlas=80
step 17 "Simulation gives 5 back, and Higgs can have exactly these"
release simulation-2
holds simulation=5 physics=15
claim higgs-3 $higgs 6 higgs physics
claim higgs-4 $higgs 5
holds higgs=15 physics=20
release higgs-4
holds higgs=10 physics=15
step 18 "Simulation is no longer over its limit, but at it"
claim simulation-4 $simulation 1 simulation
[[ $number == "$steps" ]] || fail "the script has $number steps, not $steps"

everything
before=$all
chapter "start $killed again on the data that it left"
began_start=$EPOCHREALTIME
start "$killed"
nodes_running=("${nodes[@]}")
nodes=("$killed" "$killed" "$killed") # ask this one only
everything
nodes=("${nodes_running[@]}")
[[ $all == "$before" ]] || fail "$killed did not catch up: $(diff <(echo "$before") <(echo "$all"))"
fact "$killed has caught up after $(seconds_since "$began_start") s, and answers like the others"

chapter "who holds what in the end"
show_usage
printf '\n%sAll %d steps came out as they must, in %.0f s.%s\n' "$green" "$steps" "$(seconds_since "$began")" "$plain"
if [[ -n ${KEEP:-} && ${KEEP:-} != 0 ]]; then
  printf '\nThe servers go on. The dashboard:  http://%s/ui/\n' "${http[n1]}"
  printf 'In another terminal:               export QUORATE_SERVER=http://%s && quorate usage cern\n' "${http[n1]}"
  printf 'Ctrl-C stops them and removes their data.\n'
  trap 'exit 0' INT TERM HUP
  while :; do
    sleep 3600 &
    wait $! || true
  done
fi
for id in "${nodes[@]}"; do stop "$id"; done
printf 'The servers are stopped. KEEP=1 keeps them, with the dashboard of all this at http://ADDRESS/ui/.\n'
