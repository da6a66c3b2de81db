#!/usr/bin/env bash
# Counts the real rows with the classic example and checks the answers:
# accept.sh PATH of user_behavior.csv (10,000 rows).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/data"
ln -s "$data" "$work/data/user_behavior.csv"
cd "$work"
failed=0
expect() { # what, wanted rows, got rows
  if [ "$2" == "$3" ]; then echo "ok    $1: $(tr '\n' ' ' <<<"$3")"; else echo "FAIL  $1: wanted $2; got $3"; failed=1; fi
}
count() { "$here/../bin/weir" run -o json "$1" | LC_ALL=C sort; }

expect "buys and carts" $'{"behavior":"buy","n":206}\n{"behavior":"cart","n":536}' "$(count "$here/user_behavior.sql")"
sed '/^WHERE/d' "$here/user_behavior.sql" >all.sql
expect "all behaviours" $'{"behavior":"buy","n":206}\n{"behavior":"cart","n":536}\n{"behavior":"fav","n":212}\n{"behavior":"pv","n":9046}' "$(count all.sql)"
exit $failed
