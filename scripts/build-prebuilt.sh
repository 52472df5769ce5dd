#!/usr/bin/env bash
# Builds the addons that the platform packages have: scripts/build-prebuilt.sh [PLATFORM …]. Platforms: linux-x64-gnu,
# linux-arm64-gnu, linux-x64-musl and win32-x64. They come into build/prebuilt/PLATFORM.
#
# Those for glibc are compiled in a Debian 11 of their own, so that they run with its glibc (2.31) and anything newer. libstdc++ is
# linked into all of them. That for musl is compiled by scripts/install-musl-compiler.sh's compiler, that for Windows by mingw-w64, whose
# libraries are linked into it. Needs root on Debian or Ubuntu, for debootstrap and a mount namespace. What was installed stays in
# ~/.cache/networkdirect; remove it to begin anew.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
platforms=("$@")
[ $# -gt 0 ] || platforms=(linux-x64-gnu linux-arm64-gnu linux-x64-musl win32-x64)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/networkdirect
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
mkdir -p "$cache" build/prebuilt

fail() {
  echo "$*" >&2
  exit 1
}
[ "$(id -u)" = 0 ] || fail "Needs root, for debootstrap and chroot."

# Installs Debian packages that are missing.
needs() {
  local package missing=()
  for package in "$@"; do dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# A Debian 11 with the compilers for both processors.
bullseye() {
  [ -e "$cache/bullseye.complete" ] && return
  needs debootstrap
  rm -rf "$cache/bullseye"
  echo "Installing Debian 11 into $cache/bullseye …"
  debootstrap --variant=minbase --include=g++,g++-aarch64-linux-gnu bullseye "$cache/bullseye" "$mirror" >"$cache/bullseye.log" 2>&1 ||
    fail "debootstrap has failed; see $cache/bullseye.log."
  touch "$cache/bullseye.complete"
}

# Writes a compiler that is one of Debian 11, and sees this folder at its own path.
compiler_of_bullseye() {
  cat >build/prebuilt/c++-"$1" <<END
#!/bin/sh
exec unshare --mount -- sh -c '
  mkdir -p "$cache/bullseye$root" && mount --bind "$root" "$cache/bullseye$root" &&
  exec chroot "$cache/bullseye" sh -c "cd \"\\\$0\" && exec \"\\\$@\"" "\$0" $1 "\$@"' "\$PWD" "\$@"
END
  chmod +x build/prebuilt/c++-"$1"
  echo "$root/build/prebuilt/c++-$1"
}

node scripts/stage-source.mjs
for platform in "${platforms[@]}"; do
  echo "── $platform"
  flags='-ffunction-sections -fdata-sections'
  libraries='-static-libstdc++ -static-libgcc -Wl,-s'
  case $platform in
    linux-x64-gnu)
      bullseye
      compiler=$(compiler_of_bullseye g++)
      ;;
    linux-arm64-gnu)
      bullseye
      compiler=$(compiler_of_bullseye aarch64-linux-gnu-g++)
      ;;
    linux-x64-musl)
      compiler=$(scripts/install-musl-compiler.sh)
      # Node.js for musl has a libstdc++ of its own, perhaps another version: the names of this one are not for it.
      libraries="$libraries -Wl,--exclude-libs,ALL"
      ;;
    win32-x64)
      needs g++-mingw-w64-x86-64
      CXXFLAGS=$flags LDFLAGS=-Wl,-s node scripts/build-native.mjs --target win32-x64 --strict --out "$root/build/prebuilt/$platform"
      node scripts/check-prebuilt.mjs "$platform"
      continue
      ;;
    *) fail "No platform is named $platform; there are linux-x64-gnu, linux-arm64-gnu, linux-x64-musl and win32-x64." ;;
  esac
  CXX=$compiler CXXFLAGS=$flags LDFLAGS=$libraries node build/source/scripts/build-native.mjs --strict --out "$root/build/prebuilt/$platform"
  node scripts/check-prebuilt.mjs "$platform"
done
