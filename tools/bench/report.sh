#!/usr/bin/env bash
# Compares benchmarks of this checkout with those of another revision: tools/bench/report.sh REVISION. Both are built
# first and run in turns, so that what else the machine does meets both alike; benchstat says which differences are more
# than noise. Its table is for people to read: no test depends on it.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${ROUNDS:-6}

# The benchmarks that most calls depend on: package, pattern, length.
selected() {
  cat <<'END'
quota/ledger ^BenchmarkPair$/^depth=4$/^live=10000$ 100ms
quota/ledger ^BenchmarkDenial$ 100ms
quota/ledger ^BenchmarkSoftTenth$/^nodes=100$/^live=10000$ 100ms
fsm ^Benchmark(Apply|DecodeEntry|EncodeCommands)$ 100ms
rpc ^BenchmarkAdmit$ 100ms
rpc/codec ^BenchmarkCodec$ 50ms
rpc/wire ^BenchmarkValidate$ 50ms
client ^Benchmark(Codec|Share)$ 50ms
cluster/clustertest ^BenchmarkPropose$/^store=wal$/^callers=(1|64)$ 500x
END
}

base=$(git rev-parse -q --verify "$1^{commit}") || { echo "tools/bench/report.sh: this clone has no revision $1"; exit 2; }
work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$base"

# Go compiles a package again for another folder, so the base is built in this one, with its files in place of those
# that differ: only what changed is compiled twice.
overlay() {
  { git diff --name-only --no-renames "$base"; git ls-files --others --exclude-standard; } | {
    local file separator=
    printf '{"Replace": {'
    while IFS= read -r file; do
      printf '%s\n"%s": "%s"' "$separator" "$PWD/$file" "$([ -e "$work/base/$file" ] && echo "$work/base/$file")"
      separator=,
    done
    printf '}}\n'
  }
}

# compile FOLDER NAME FLAG builds the test binaries of the packages that a checkout has.
compile() {
  local package
  while read -r package _; do
    [ -d "$1/$package" ] || continue
    GOWORK=$PWD/tools/make/go.work go test -c -vet=off -ldflags='-s -w' "${@:3}" -o "$work/$2-${package//\//-}.test" "./$package"
  done < <(selected)
}

# measure FOLDER NAME runs each of them once.
measure() {
  local package pattern length binary
  while read -r package pattern length; do
    binary=$work/$2-${package//\//-}.test
    [ -x "$binary" ] || continue
    (cd "$1/$package" && "$binary" -test.run '^$' -test.bench "$pattern" -test.benchtime "$length") \
      >>"$work/$2.txt"
  done < <(selected)
}

echo "comparing with ${base:0:12}, $rounds rounds"
overlay >"$work/overlay.json"
compile "$work/base" before -overlay "$work/overlay.json"
compile "$PWD" now
for _ in $(seq "$rounds"); do
  measure "$work/base" before
  measure "$PWD" now
done
benchstat before="$work/before.txt" now="$work/now.txt"
