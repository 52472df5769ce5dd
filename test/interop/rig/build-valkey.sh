#!/bin/bash
# Build what cases with Valkey need in an interop guest: valkey-server with RDMA, and upstream's own test client
# (rdma-test), from Debian's source of it, as an archive that is unpacked in a running guest. Nothing is installed:
# packages are unpacked into the cache folder. Root is not needed.
#
#   build-valkey.sh [CACHE_DIR]      (as in build-guest.sh)
#
# Result: CACHE_DIR/valkey.tar, whose path is the last line of the output. Needs gcc and make, a download of 13 MB once, and 2 to 4
# minutes. The source is kept in CACHE_DIR over builds.
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${1:-${ROCE_CACHE:-${XDG_CACHE_HOME:-${TMPDIR:-/tmp}}/roce-interop}}
say() { printf 'build-valkey: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

version=8.1.1
source=valkey_$version+dfsg1.orig.tar.xz
sha256=d9bbd82eecb82f359e649a0007ad3dc1b47cc15afa626348ca86b73c4ae2c7ee
# The release of Debian that has this version.
suite=trixie

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
exec {lock}>"$cache/valkey.lock"
flock "$lock"
recipe=$(sha256sum < "$here/build-valkey.sh" | cut -d' ' -f1)
if [ -s "$cache/valkey.tar" ] && [ "$(cat "$cache/valkey.recipe" 2>/dev/null)" = "$recipe" ]; then
    echo "$cache/valkey.tar"
    exit 0
fi
for t in apt-get dpkg-deb flock gcc make xz; do command -v "$t" >/dev/null || die "missing tool: $t"; done

work=$cache/valkey
rm -rf "$work"
mkdir -p "$work"/{lists,apt,stage,source,root/bin}
trap 'rm -rf "$work"' EXIT
cd "$work"

# The source, kept over builds: with a separate list for apt, which verifies its downloads, and the checksum of what was
# tested.
is_right() { echo "$sha256  $cache/$source" | sha256sum --check --status 2>/dev/null; }
if ! is_right; then
    say "downloading $source"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" > sources.list
    options=(-q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/apt")
    apt-get "${options[@]}" update >download.log 2>&1 &&
        apt-get "${options[@]}" source --download-only --tar-only valkey >>download.log 2>&1 || die "cannot download: $(tail -n1 download.log)"
    [ -s "$source" ] || die "Debian's $suite has another version than $version: $(echo valkey_*)"
    mv "$source" "$cache/"
    is_right || die "$source has not the sum that it had"
fi
tar -xJf "$cache/$source" -C source --strip-components=1

# Headers and libraries to link with.
(cd apt && apt-get -q download libibverbs-dev librdmacm-dev libibverbs1 librdmacm1 libnl-3-200 libnl-route-3-200) >download.log 2>&1 ||
    die "cannot download: $(tail -n1 download.log)"
for f in apt/*.deb; do dpkg-deb -x "$f" stage; done
libraries=$work/stage/usr/lib/x86_64-linux-gnu:$work/stage/lib/x86_64-linux-gnu
export C_INCLUDE_PATH=$work/stage/usr/include LIBRARY_PATH=$libraries LDFLAGS="-Wl,-rpath-link,$libraries"
say "building valkey-server and rdma-test"
make -j"$(nproc)" -C source/src valkey-server BUILD_RDMA=yes MALLOC=libc >make.log 2>&1 &&
    make -C source/tests/rdma rdma-test >>make.log 2>&1 ||
    die "valkey does not build: $(grep -m3 -i error make.log || tail -n3 make.log)"
strip --strip-debug -o root/bin/valkey-server source/src/valkey-server
strip --strip-debug -o root/bin/rdma-test source/tests/rdma/rdma-test
tar c -C root . > "$cache/valkey.tar.tmp"
mv "$cache/valkey.tar.tmp" "$cache/valkey.tar"
echo "$recipe" > "$cache/valkey.recipe"
say "built, $(du -m "$cache/valkey.tar" | cut -f1) MB"
echo "$cache/valkey.tar"
