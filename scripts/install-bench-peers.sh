#!/usr/bin/env bash
# Installs what `npm run bench` compares with besides Node and baselines in C: libfabric's fi_pingpong and UCX'
# ucx_perftest. Needs root on Debian or Ubuntu; elsewhere the benchmark says that they are missing.
set -euo pipefail
missing=()
command -v fi_pingpong >/dev/null || missing+=(libfabric-bin)
command -v ucx_perftest >/dev/null || missing+=(ucx-utils)
command -v taskset >/dev/null || missing+=(util-linux)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]} (needs root and apt-get); the benchmark will leave out what needs them" >&2
  exit 0
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
