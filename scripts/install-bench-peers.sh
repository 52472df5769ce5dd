#!/usr/bin/env bash
# Installs what `npm run bench` compares with besides Node and baselines in C: zeromq, lmdb and redis (a client) from npm into .cache/bench,
# without their install scripts (they come with addons); libfabric's fi_pingpong, UCX' ucx_perftest and redis-server, which need root on Debian
# or Ubuntu. The benchmark says what is missing.
set -euo pipefail
cache=$(dirname "$0")/../.cache/bench
packages=(zeromq@6.8.0 lmdb@3.5.6 redis@6.3.1)
for package in "${packages[@]}"; do
  [ -d "$cache/node_modules/${package%@*}" ] && continue
  mkdir -p "$cache"
  npm install --prefix "$cache" --ignore-scripts --no-save --no-audit --no-fund --silent "${packages[@]}" ||
    echo "not installed: ${packages[*]}; the benchmark will leave them out" >&2
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
  echo "not installed: ${missing[*]} (needs root and apt-get); the benchmark will leave out what needs them" >&2
  exit 0
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
