#!/usr/bin/env bash
# One would believe: the end of a lease is part of the replicated state, so that a restart neither lengthens nor
# shortens what is left of it.
# What happens (etcd 3.4.23 of Debian 12, one server): a lease of 60 s with at most 55 s left has more than 55 s left
# after the server was stopped in order and started again. What is left is kept in the memory of the leader alone, and a
# new leader begins with the whole TTL. So a dead holder keeps its lease for as long as leaders change more often than
# once in a TTL.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q etcd-server=3.4.23-4+b4 etcd-client=3.4.23-4+b4 >/dev/null
for package in *.deb; do dpkg -x "$package" .; done
export ETCDCTL_API=3

client() { usr/bin/etcdctl --endpoints=http://127.0.0.1:23790 "$@"; }
start() {
  usr/bin/etcd --name n --data-dir data --initial-cluster n=http://127.0.0.1:23800 \
    --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 \
    --listen-peer-urls http://127.0.0.1:23800 --initial-advertise-peer-urls http://127.0.0.1:23800 >>log 2>&1 &
  server=$!
  for _ in $(seq 300); do client endpoint health >/dev/null 2>&1 && return; sleep 0.1; done
  echo "etcd does not answer"; exit 1
}
left() { client lease timetolive "$lease" | sed -E 's/.*remaining\(([0-9]+)s\).*/\1/'; }

start
lease=$(client lease grant 60 | awk '{print $2}')
sleep 8
before=$(left)
kill "$server"; wait "$server" || true
start
after=$(left)
echo "of 60 s left before the restart: $before, after it: $after"
[ "$before" -le 55 ] && [ "$after" -gt 55 ]
echo "as described"
