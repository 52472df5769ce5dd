#!/usr/bin/env bash
# Installs the programs that `npm run bench` compares with, besides Node.js and the baselines in C: zeromq, lmdb and redis (a client) from
# npm to .cache/bench, without their install scripts (they contain addons); libfabric's fi_pingpong, UCX's ucx_perftest and redis-server,
# which require root on Debian or Ubuntu. The benchmark reports programs that are missing.
set -euo pipefail
cache=$(dirname "$0")/../.cache/bench
packages=(zeromq@6.8.0 lmdb@3.5.6 redis@6.3.1)
for package in "${packages[@]}"; do
  [ -d "$cache/node_modules/${package%@*}" ] && continue
  mkdir -p "$cache"
  npm install --prefix "$cache" --ignore-scripts --no-save --no-audit --no-fund --silent "${packages[@]}" ||
    echo "not installed: ${packages[*]}; the benchmark will omit them" >&2
  break
done
missing=()
command -v fi_pingpong >/dev/null || missing+=(libfabric-bin)
command -v ucx_perftest >/dev/null || missing+=(ucx-utils)
command -v redis-server >/dev/null || missing+=(redis-server)
command -v taskset >/dev/null || missing+=(util-linux)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]} (requires root and apt-get); the benchmark will omit rows that use them" >&2
  exit 0
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
