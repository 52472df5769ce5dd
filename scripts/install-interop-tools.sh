#!/usr/bin/env bash
# Installs the programs that `npm run test:interop` uses: QEMU and tools for its guests. Requires root on Debian or Ubuntu; elsewhere, the
# interop tests report why they were skipped.
set -euo pipefail
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
