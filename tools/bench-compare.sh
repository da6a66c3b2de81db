#!/usr/bin/env bash
# Measures the stages of a row (bench/stage) at a commit and in the working tree, alternately,
# and has benchstat say what differs:
#
#   tools/bench-compare.sh BASE [COUNT [BENCH]]
#   tools/bench-compare.sh '' 1 [BENCH]          the working tree alone, once, as a table
#
# Both are measured by the benchmarks of the working tree; where these do not compile at BASE,
# it is by BASE's own, and the names that both have are compared. Nothing stays behind but what
# Go keeps in its cache, also when interrupted.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${1-} count=${2:-6} bench=${3:-.}
time=${BENCHTIME:-100ms}

work=$(mktemp -d)
export TMPDIR=$work GOTMPDIR=$work
child=
clean() {
  if [[ -n $child ]]; then
    kill -KILL -- "-$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# alone runs a command in a process group of its own, so that it can be ended with all it started,
# and waits so that a signal is heard meanwhile.
set -m
alone() {
  "$@" &
  child=$!
  local status=0
  wait "$child" || status=$?
  child=
  return "$status"
}

# take runs a test binary once, in a folder that is empty.
take() {
  (cd "$work/run" && exec "$work/$1.test" -test.run '^$' -test.bench "$bench" -test.benchtime "$time" -test.timeout 10m)
}

# Without paths, what is the same at both is compiled once, and the same to the byte.
mkdir "$work/run" "$work/base"
alone go test -trimpath -c -o "$work/now.test" ./bench/stage

if [[ -z $base ]]; then
  alone take now >"$work/now.txt"
  awk '
    BEGIN { printf "%-36s %10s %12s %10s %8s\n", "stage", "ns/row", "allocs/row", "MB/s", "B/row" }
    /^Benchmark/ {
      split("", of)
      for (i = 3; i < NF; i += 2) of[$(i+1)] = $i
      name = $1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$/, "", name)
      printf "%-36s %10.2f %12s %10s %8s\n", name, of["ns/row"], of["allocs/row"], of["MB/s"], of["B/row"]
    }' "$work/now.txt"
  exit
fi

at=$(git rev-parse --verify --short "$base^{commit}")
git archive "$at" | tar -x -C "$work/base"
own=$work/base/bench/stage
mkdir -p "$work/kept" "$own"
cp -r "$own/." "$work/kept"
rm -rf "$own"
cp -r bench/stage "$own"
build() { (cd "$work/base" && exec go test -trimpath -c -o "$work/base.test" ./bench/stage); }
if ! alone build 2>"$work/errors"; then
  sed 's/^/  /' "$work/errors" >&2
  if [[ -z $(ls -A "$work/kept") ]]; then
    echo "bench-compare: the benchmarks do not compile at $at, which has none of its own" >&2
    exit 1
  fi
  echo "bench-compare: the benchmarks do not compile at $at: it is measured by its own, whose stages may be others" >&2
  rm -rf "$own"
  cp -r "$work/kept" "$own"
  alone build
fi

began=$SECONDS
for ((i = 1; i <= count; i++)); do
  order="base now"
  ((i % 2)) || order="now base"
  for side in $order; do
    alone take "$side" >>"$work/$side.txt" || { cat "$work/$side.txt" >&2; exit 1; }
  done
  echo "bench-compare: $i of $count, $((SECONDS - began)) s" >&2
done
alone go tool -modfile=tools/go.mod benchstat -filter '.unit:(ns/row OR allocs/row OR B/row)' "$at=$work/base.txt" "working tree=$work/now.txt"
