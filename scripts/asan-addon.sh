#!/usr/bin/env bash
# Runs the tests of the door, the kernel and the layers above with an addon built for AddressSanitizer and UBSan. Leak detection is off,
# because V8 does not free everything at exit. `npm run test:asan-addon`.
set -euo pipefail
cd "$(dirname "$0")/.."
make --silent -j2 -C test/native asan-addon
export NETWORKDIRECT_HCA_ADDON="$PWD/test/native/build/asan/networkdirect_hca.node"
export ASAN_OPTIONS=detect_leaks=0:handle_segv=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1
# The runtime must be loaded before Node's own libraries.
runtime="$(${CXX:-g++} -print-file-name=libasan.so) $(${CXX:-g++} -print-file-name=libstdc++.so.6)"
LD_PRELOAD="$runtime" node scripts/run-tests.mjs --jobs 2 "$@" \
  unit/door integration/detach integration/winverbs-loopback integration/nd-loopback integration/kernel conformance/v1 fuzz/door
