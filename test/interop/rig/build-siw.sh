#!/bin/bash
# Build siw, the kernel's software iWARP device, for a kernel of Debian, which leaves it out: its folder of the kernel's
# source as a module of its own. Nothing is installed: packages are unpacked into the cache folder.
#
#   build-siw.sh KERNEL_DEB CACHE_DIR
#
# Result: CACHE_DIR/siw-VERSION.ko, kept over builds, and its path on stdout. Needs gcc and make, a download of 150 MB
# once, and 500 MB of the cache folder while it builds.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
kdeb=$1 cache=$2
die() { printf 'build-siw: %s\n' "$*" >&2; exit 1; }

image=$(dpkg-deb -f "$kdeb" Package) version=$(dpkg-deb -f "$kdeb" Version)
kver=${image#linux-image-} series=$(cut -d. -f1,2 <<<"$version")
ko=$cache/siw-$kver-$version.ko
[ -s "$ko" ] && { echo "$ko"; exit 0; }
for t in gcc make xz; do command -v "$t" >/dev/null || die "missing tool: $t"; done

work=$cache/siw
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
cd "$work"
fetch() { # fetch PACKAGE : of the kernel's own version
    apt-get -q download "$1=$version" >>download.log 2>&1 || die "cannot download $1 $version: $(tail -n1 download.log)"
}
fetch "linux-headers-$kver"
common=$(dpkg-deb -f linux-headers-*.deb Depends | tr ',' '\n' | sed -n 's/^ *\(linux-headers-[^ ]*-common[^ ]*\).*/\1/p')
fetch "$common"
fetch "linux-kbuild-$series"
fetch "linux-source-$series"
for f in *.deb; do dpkg-deb -x "$f" .; done
tar -xJf usr/src/linux-source-*.tar.xz --strip-components=4 --wildcards '*/drivers/infiniband/sw/siw' ||
    die "no siw in linux-source-$series"
# The headers include each other as if they were installed.
sed -i "s#/usr/src/#$work/usr/src/#" "usr/src/linux-headers-$kver/Makefile"
make -C "usr/src/linux-headers-$kver" M="$work/siw" CONFIG_RDMA_SIW=m CC=gcc modules > make.log 2>&1 ||
    die "siw does not build: $(grep -m3 -i error make.log || tail -n3 make.log)"
strip --strip-debug siw/siw.ko
mv siw/siw.ko "$ko"
echo "$ko"
