#!/usr/bin/env bash
# Installs the programs that some tests use besides Node.js and a C++ compiler: tshark (decodes captures), iproute2 (network namespaces),
# clang-format, zsh and fish (completion), and Wine with compilers for Windows. Requires root on Debian or Ubuntu. Elsewhere, those tests
# report that they were skipped.
set -euo pipefail
missing=()
command -v tshark >/dev/null || missing+=(tshark)
command -v ip >/dev/null || missing+=(iproute2)
command -v pkill >/dev/null || missing+=(procps)
for shell in zsh fish; do command -v "$shell" >/dev/null || missing+=("$shell"); done
command -v clang-format-14 >/dev/null || missing+=(clang-format-14)
command -v x86_64-w64-mingw32-g++-posix >/dev/null || missing+=(g++-mingw-w64-x86-64)
command -v i686-w64-mingw32-gcc >/dev/null || missing+=(gcc-mingw-w64-i686)
[ -x /usr/lib/wine/wine64 ] || missing+=(wine64 wine)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "not installed: ${missing[*]} (requires root and apt-get); the tests that use them will be skipped" >&2
  exit 0
fi
apt-get update -q >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
