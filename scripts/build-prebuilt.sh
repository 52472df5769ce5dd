#!/usr/bin/env bash
# Builds the addons of the platform packages: scripts/build-prebuilt.sh [PLATFORM …]. Platforms: linux-x64-gnu, linux-arm64-gnu,
# linux-x64-musl and win32-x64. They are written to build/prebuilt/PLATFORM.
#
# Those for glibc are compiled in a separate Debian 11, so that they run with its glibc (2.31) and newer ones. libstdc++ is linked
# statically into all of them. The addon for musl is compiled with the compiler of scripts/install-musl-compiler.sh. The addon for Windows
# is compiled with mingw-w64, whose libraries are linked statically. Requires root on Debian or Ubuntu, for debootstrap and a mount
# namespace. Installed files remain in ~/.cache/networkdirect; remove it to start from scratch.
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
[ "$(id -u)" = 0 ] || fail "Requires root, for debootstrap and chroot."

# Installs missing Debian packages.
needs() {
  local package missing=()
  for package in "$@"; do dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs a Debian 11 with compilers for both architectures.
bullseye() {
  [ -e "$cache/bullseye.complete" ] && return
  needs debootstrap
  rm -rf "$cache/bullseye"
  echo "Installing Debian 11 into $cache/bullseye …"
  debootstrap --variant=minbase --include=g++,g++-aarch64-linux-gnu bullseye "$cache/bullseye" "$mirror" >"$cache/bullseye.log" 2>&1 ||
    fail "debootstrap failed; see $cache/bullseye.log."
  touch "$cache/bullseye.complete"
}

# Writes a wrapper that runs a compiler of the Debian 11, where this folder has the same path.
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
      # Node.js for musl has its own libstdc++, perhaps of another version, so the symbols of this one must stay hidden.
      libraries="$libraries -Wl,--exclude-libs,ALL"
      ;;
    win32-x64)
      needs g++-mingw-w64-x86-64
      CXXFLAGS=$flags LDFLAGS=-Wl,-s node scripts/build-native.mjs --target win32-x64 --strict --out "$root/build/prebuilt/$platform"
      node scripts/check-prebuilt.mjs "$platform"
      continue
      ;;
    *) fail "Unknown platform $platform; available: linux-x64-gnu, linux-arm64-gnu, linux-x64-musl and win32-x64." ;;
  esac
  CXX=$compiler CXXFLAGS=$flags LDFLAGS=$libraries node build/source/scripts/build-native.mjs --strict --out "$root/build/prebuilt/$platform"
  node scripts/check-prebuilt.mjs "$platform"
done
