#!/usr/bin/env bash
# Checks the models of this folder with spin: each model as it is must hold, and each
# planted fault must be found. Prints a table; exit code 1 where one is not so.
set -euo pipefail
cd "$(dirname "$0")"
../../tools/deps.sh spin gcc
tmp="$(mktemp -d)"
trap 'rm -rf "$tmp"' EXIT
bad=0

# check NAME WANT(holds|found) MODEL -D…
check() {
  local name=$1 want=$2 model=$3 optimise=-O2 dir out verdict start seconds states
  shift 3
  dir="$tmp/$name"; mkdir "$dir"
  [ "$want" = holds ] || optimise=-O0 # few states: compiling would take longer than looking
  (cd "$dir" && spin -a "$@" "$OLDPWD/$model.pml" >spin.out 2>&1 && gcc $optimise -w -DSAFETY -DMEMLIM=2048 -o pan pan.c) ||
    { cat "$dir/spin.out"; echo "$name: the model does not compile"; exit 1; }
  start=$(date +%s.%N)
  out=$(cd "$dir" && ./pan -m200000 -n) || true
  seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  states=$(awk '/states, stored/ { print $1 }' <<<"$out")
  case "$(grep -o 'errors: [0-9]*' <<<"$out")/$(grep -cE 'reached -DMEMLIM|max search depth too small|out of memory' <<<"$out")" in
    "errors: 0/0") verdict=holds ;;
    "errors: 0/"*) verdict=unfinished ;;
    *) verdict=found ;;
  esac
  printf '%-8s  %-30s  %10s  %6s  %s\n' "$model" "$name" "$states" "$seconds" "$verdict"
  if [ "$verdict" != "$want" ]; then
    bad=1
    grep -E '^pan:' <<<"$out" || true
    [ ! -e "$dir/$model.pml.trail" ] || (cd "$dir" && spin -t -p -g "$@" "$OLDPWD/$model.pml" | tail -n 60)
    echo "^ $name: wanted $want; see README.md for how to read this"
  fi
  rm -rf "$dir"
}

printf '%-8s  %-30s  %10s  %6s  %s\n' model property-set states s verdict
check concurrent holds barrier -DPERIODIC=2 -DCRASHES=0 -DEXPIRES=0
check crash holds barrier -DPERIODIC=1 -DEXPIRES=0
check crash-and-timeout holds barrier -DPERIODIC=1
check savepoint-beside holds barrier -DPERIODIC=1 -DSAVEPOINTS=1 -DCRASHES=0 -DEXPIRES=0
check savepoint-and-crash holds barrier -DPERIODIC=0 -DSAVEPOINTS=1 -DEXPIRES=0
check at-least-once holds barrier -DAT_LEAST_ONCE -DPERIODIC=1 -DEXPIRES=0
check three-at-a-time holds decide -DPERIODIC=3 -DCONCURRENT=3 -DATTEMPTS=1
check zombie holds decide -DPERIODIC=2 -DLOST=0
check zombie-and-lost-answer holds decide -DPERIODIC=2 -DREPEATS=0
check zombie-and-savepoint holds decide -DPERIODIC=1 -DSAVEPOINTS=1 -DREPEATS=0
check zombie-and-timeout holds decide -DPERIODIC=2 -DEXPIRES=1 -DLOST=0 -DREPEATS=0
check rollback holds decide -DPERIODIC=2 -DROLLBACKS=1 -DLOST=0 -DREPEATS=0

echo
fault() { local name=$1 model=$2; shift 2; check "$name" found "$model" "-DFAULT_$(tr a-z- A-Z_ <<<"$name")" "$@"; }
fault not-aligned barrier -DPERIODIC=1 -DEXPIRES=0
fault reads-held barrier -DPERIODIC=1 -DEXPIRES=0
fault barrier-before-flush barrier -DPERIODIC=1 -DEXPIRES=0
fault commit-before-decision barrier -DPERIODIC=1 -DEXPIRES=0
fault no-marker barrier -DPERIODIC=1 -DEXPIRES=0
fault savepoint-commits barrier -DPERIODIC=1 -DSAVEPOINTS=1 -DCRASHES=0 -DEXPIRES=0
fault newest-segment-first barrier -DPERIODIC=2 -DCRASHES=0 -DEXPIRES=0
fault superseded-segment-dropped barrier -DPERIODIC=2 -DCRASHES=0 -DEXPIRES=0
fault latest-row barrier -DPERIODIC=1 -DEXPIRES=0
fault acks-counted decide -DPERIODIC=2 -DATTEMPTS=1
fault no-fence decide -DPERIODIC=2 -DLOST=0
fault fence-exists decide -DPERIODIC=2 -DLOST=0
fault no-turn decide -DPERIODIC=2 -DATTEMPTS=1
fault older-beside-newer decide -DPERIODIC=2 -DATTEMPTS=1
fault commit-overtakes decide -DPERIODIC=2 -DLOST=0
fault guessed-not-done decide -DPERIODIC=2 -DATTEMPTS=1
fault guessed-done decide -DPERIODIC=2 -DATTEMPTS=1
exit $bad
