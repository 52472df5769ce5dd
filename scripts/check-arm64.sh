#!/usr/bin/env bash
# Builds the HCA's transport for AArch64 with warnings as errors, and runs its tests and those of the ICRC in an emulator (qemu-user). An
# argument selects tests by a part of their name. Requires root on Debian or Ubuntu, for the compiler and the emulator. It takes a few
# minutes.
set -euo pipefail
cd "$(dirname "$0")/../test/native"

missing=()
command -v aarch64-linux-gnu-g++ >/dev/null || missing+=(g++-aarch64-linux-gnu)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]} (requires root and apt-get)" >&2
    exit 1
  fi
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" libstdc++6-arm64-cross >/dev/null
fi

# Tests that only fail in the emulator, because it reports unpopulated memory as populated.
declare -A beyond=([local_maps_every_size]=1 [local_maps_scattered_pieces]=1
  [local_maps_memory_given_back]=1 [local_maps_find_stays_inside]=1 [local_maps_refuse]=1
  [local_maps_nonsense_from_the_peer]=1)

build=build/arm64
make --silent -j"$(nproc)" CXX="${AARCH64_CXX:-aarch64-linux-gnu-g++}" BUILD=$build $build/engine $build/host_icrc
emulated() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"; }

emulated $build/host_icrc
for links in "" --single; do
  output=$(emulated $build/engine $links "$@" 2>&1) || true
  tail -n 1 <<<"$output"
  grep -Eq '^[0-9]+ tests, [0-9]+ checks' <<<"$(tail -n 1 <<<"$output")" || { echo "The tests did not finish." >&2; exit 1; }
  failed=0
  while read -r name; do
    [ -n "${beyond[$name]:-}" ] && continue
    grep -B 20 "^FAILED: $name$" <<<"$output" | grep "FAILED" >&2
    failed=1
  done < <(sed -n 's/^FAILED: //p' <<<"$output")
  [ $failed = 0 ] || exit 1
done
