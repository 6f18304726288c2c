#!/usr/bin/env bash
# Plays "Three nodes" of deploy/README.md on one machine: three hosts, which are network namespaces of their own, each
# with deploy/quorate.yaml and the command line of deploy/quorate.service. They form a cluster, lose a host, and get it
# back. It needs root and Linux, and leaves nothing behind.
#
#   sudo deploy/hosts/three.sh .bin/quorate
set -euo pipefail

quorate=$(realpath "${1:?name the binary: three.sh .bin/quorate}")
deploy=$(realpath "$(dirname "$0")/..")
if [[ -z ${INSIDE:-} ]]; then
  # All hosts end with this process, because they are in its namespaces.
  INSIDE=yes exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$quorate"
fi

work=$(mktemp -d)
pids=()
clean_up() {
  kill -9 "${pids[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap clean_up EXIT
mkdir -p /run/netns
mount -t tmpfs hosts /run/netns
ip link set lo up
ip link add hosts type bridge
ip address add 10.0.0.254/24 dev hosts
ip link set hosts up

cd "$work"
"$quorate" tls create certs --nodes n1=10.0.0.1,n2=10.0.0.2,n3=10.0.0.3 >/dev/null 2>&1

# make_host gives a host its address and its files: those of n1, with its own id, addresses and certificate.
make_host() {
  local n=$1
  ip netns add "n$n"
  ip link add "to-n$n" type veth peer name eth0 netns "n$n"
  ip link set "to-n$n" master hosts up
  ip -n "n$n" address add "10.0.0.$n/24" dev eth0
  ip -n "n$n" link set eth0 up
  ip -n "n$n" link set lo up
  mkdir -p "n$n/etc/tls" "n$n/data"
  cp certs/ca.crt certs/gossip.keys certs/bootstrap.secret "certs/n$n.crt" "certs/n$n.key" "n$n/etc/tls"
  sed -E "s/^id: n1$/id: n$n/; s/^((http|raft|gossip)-addr: 10\.0\.0\.)1:/\1$n:/; s/\/n1\.(crt|key)$/\/n$n.\1/
    s/^bootstrap-secret-file: .*/bootstrap-secret-file: \/etc\/quorate\/tls\/bootstrap.secret/
    s|/etc/quorate|$work/n$n/etc|; s|/var/lib/quorate|$work/n$n/data|" "$deploy/quorate.yaml" > "n$n/etc/quorate.yaml"
}

# start_host runs what the unit runs.
start_host() {
  local n=$1 line
  line=$(sed -n 's/^ExecStart=//p' "$deploy/quorate.service")
  line=${line//\/usr\/bin\/quorate/$quorate}
  line=${line//\/etc\/quorate/$work/n$n/etc}
  # shellcheck disable=SC2086 # the unit has words without quotes
  ip netns exec "n$n" $line >> "n$n/log" 2>&1 &
  pids[n]=$!
}

fail() {
  echo "three.sh: $1" >&2
  tail -n 20 n?/log >&2
  exit 1
}

for n in 1 2 3; do make_host $n; done
for n in 3 1 2; do start_host $n; done

export QUORATE_SERVER=https://10.0.0.1:7101,https://10.0.0.2:7101,https://10.0.0.3:7101
export QUORATE_TLS_CA=$work/certs/ca.crt QUORATE_TLS_CERT=$work/certs/client.crt QUORATE_TLS_KEY=$work/certs/client.key
patience=(--timeout 5m)

until "$quorate" token create --secret-file certs/bootstrap.secret --out admin.token >token.txt 2>&1; do
  for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || fail "a server ended"; done
  ((SECONDS < 600)) || fail "no token can be created: $(cat token.txt)"
  sleep 1
done
export QUORATE_TOKEN_FILE=$work/admin.token
"$quorate" cluster wait --voters 3 --healthy "${patience[@]}" >/dev/null || fail "the hosts form no cluster"
echo "formed"

printf 'trees:\n  lab:\n    policy: open\n    resources: {cores: {unit: count}}\n    limits: {cores: 10}\n' > lab.yaml
"$quorate" apply -f lab.yaml >/dev/null 2>&1
"$quorate" allocate --id before --at lab --amount cores=4 >/dev/null 2>&1

kill -9 "${pids[3]}"
wait "${pids[3]}" 2>/dev/null || true
"$quorate" allocate --id without --at lab --amount cores=4 "${patience[@]}" >/dev/null 2>&1 || fail "two of three do not serve"
echo "served without n3"
for log in n1/log n2/log; do # raft tries several times a second, and logs it once a minute
  lines=$(grep -c "failed to heartbeat to: peer=10.0.0.3:" $log || true)
  ((lines <= 1 + SECONDS / 60)) || fail "$log has $lines lines about a heartbeat to n3"
done

start_host 3
"$quorate" cluster wait --voters 3 --healthy "${patience[@]}" >/dev/null || fail "n3 does not come back"
held=$("$quorate" allocation list --server https://10.0.0.3:7101 -o name | sort | xargs)
[[ $held == "account/admin before account/admin without" ]] || fail "n3 has the allocations $held"
echo "n3 is back"
