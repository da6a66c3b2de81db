#!/usr/bin/env bash
# Installs from Debian's packages what the tests need and this machine lacks: a
# PostgreSQL server, Chromium, ip and nft for networks, and a C compiler for the race
# detector; or, given names, the packages of those commands.
# Does nothing, and needs no root, when all are here.
set -euo pipefail
missing=()
if [ $# -eq 0 ]; then
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
  command -v ip >/dev/null 2>&1 || missing+=(iproute2)
  command -v nft >/dev/null 2>&1 || missing+=(nftables)
  command -v gcc >/dev/null 2>&1 || missing+=(gcc libc6-dev)
  set -- chromium
fi
for name in "$@"; do
  command -v "$name" >/dev/null 2>&1 || missing+=("$name")
done
[ ${#missing[@]} -eq 0 ] && exit 0
command -v apt-get >/dev/null 2>&1 || { echo "missing: ${missing[*]}; install them and run again" >&2; exit 1; }
sudo=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || { echo "missing: ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2; exit 1; }
  sudo=sudo
fi
# The package must not start a cluster of its own: the tests start theirs.
if [[ " ${missing[*]} " == *" postgresql "* ]]; then
  $sudo mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
$sudo apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
