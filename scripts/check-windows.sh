#!/usr/bin/env bash
# Builds the HCA's transport for Windows (mingw-w64) with warnings as errors, and runs its tests and those of the connections between
# processes under Wine. An argument selects tests by a part of their name. All other portable folders are compiled but not linked. If the
# compiler or Wine is missing, it prints that and succeeds; with --no-skips it fails.
set -euo pipefail
cd "$(dirname "$0")/../test/native"

skips=allowed
if [ "${1:-}" = --no-skips ]; then
  skips=none
  shift
fi
export PATH="$PATH:/usr/lib/wine"
missing=()
command -v x86_64-w64-mingw32-g++-posix >/dev/null || missing+=(g++-mingw-w64-x86-64)
command -v wine64 >/dev/null || missing+=(wine64)
if [ ${#missing[@]} -gt 0 ]; then
  echo "SKIPPED: the transport for Windows; it requires ${missing[*]} (apt-get install --no-install-recommends ${missing[*]})"
  [ "$skips" = allowed ]
  exit
fi

make -j"$(nproc)" --silent build-windows
# A separate Wine prefix, which is removed after the tests.
WINEPREFIX=$(mktemp -d)
export WINEPREFIX WINEARCH=win64 WINEDEBUG=-all
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe,winedbg.exe=d"
unset DISPLAY
output=$(mktemp)
trap 'wineserver -k || true; rm -rf "$WINEPREFIX" "$output"' EXIT
wineserver -p </dev/null >/dev/null 2>&1
timeout 60 setsid wine64 wineboot </dev/null >/dev/null 2>&1
timeout 60 wine64 winecfg -v win10 </dev/null >/dev/null 2>&1
run() {
  timeout 600 wine64 "$@" </dev/null >"$output" 2>&1 || { cat "$output"; exit 1; }
  echo "Windows (Wine): $(tail -n 1 "$output" | tr -d '\r')"
}
# A filter may match tests of one program only.
has() { [ $# = 1 ] || grep -qE "^TEST\\([a-z0-9_]*$2" "$1"_*.cc; }
if has windows "$@"; then run build/windows/system.exe "$@"; fi
# With direct access and in packets, as on Linux.
if has engine "$@"; then
  for links in "" --single; do run build/windows/engine.exe $links "$@"; done
fi
