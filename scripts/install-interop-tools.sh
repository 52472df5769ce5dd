#!/usr/bin/env bash
# Installs the dependencies of `npm run test:interop` and `npm run test:rdma`: iovalkey from npm into .cache/interop, without its install
# scripts, and QEMU with tools for the guests. Installing QEMU requires root on Debian or Ubuntu. Elsewhere, the tests report why they were
# skipped.
set -euo pipefail
cache=$(dirname "$0")/../.cache/interop
client=iovalkey@0.4.0
if [ ! -d "$cache/node_modules/${client%@*}" ]; then
  mkdir -p "$cache"
  npm install --prefix "$cache" --ignore-scripts --no-save --no-audit --no-fund --silent "$client" ||
    echo "not installed: $client; cases with it will fail" >&2
fi
declare -A package=(
  [qemu-system-x86_64]=qemu-system-x86 [ip]=iproute2 [pgrep]=procps [cpio]=cpio [modprobe]=kmod [xz]=xz-utils
  [tshark]=tshark
)
missing=()
for tool in "${!package[@]}"; do command -v "$tool" >/dev/null || missing+=("${package[$tool]}"); done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]} (requires root and apt-get); the interop tests will be skipped" >&2
  exit 0
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
