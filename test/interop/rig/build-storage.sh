#!/bin/bash
# Build what cases with disks need in an interop guest: Debian's nvme, mkfs.ext4, fsck.ext4 and fio, with
# their shared libraries, as an archive that is unpacked in a running guest.
# Packages are downloaded with apt-get and unpacked into the cache folder. Root is not needed.
#
#   build-storage.sh [CACHE_DIR]      (as in build-guest.sh)
#
# Result: CACHE_DIR/storage.tar, whose path is the last line of the output
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${1:-${ROCE_CACHE:-${XDG_CACHE_HOME:-${TMPDIR:-/tmp}}/roce-interop}}
say() { printf 'build-storage: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
recipe=$(sha256sum < "$here/build-storage.sh" | cut -d' ' -f1)
if [ -s "$cache/storage.tar" ] && [ "$(cat "$cache/storage.recipe" 2>/dev/null)" = "$recipe" ]; then
    echo "$cache/storage.tar"
    exit 0
fi
debs=$cache/storage-debs stage=$cache/storage-stage root=$cache/storage-root
rm -rf "$stage" "$root"
mkdir -p "$debs" "$stage" "$root"/{bin,lib/x86_64-linux-gnu}

# The packages and all their dependencies, except those without a library.
cd "$debs"
apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances nvme-cli fio e2fsprogs | grep -E '^[a-z0-9]' | sort -u |
    grep -E '^(lib|zlib1g|nvme-cli|fio|e2fsprogs)' | grep -Ev '^lib(python|perl|gcc-.*-dev|pam)' > list
say "downloading $(wc -l < list) packages"
missing=()
while read -r p; do compgen -G "${p}_*.deb" >/dev/null || missing+=("$p"); done < list
[ ${#missing[@]} = 0 ] || apt-get -q download "${missing[@]}" >download.log 2>&1 ||
    die "cannot download the packages (see $debs/download.log)"
for f in *.deb; do dpkg-deb -x "$f" "$stage"; done

ld=$(readlink -f "$stage/lib64/ld-linux-x86-64.so.2")
[ -f "$ld" ] || ld=$stage/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
libpath=$stage/lib/x86_64-linux-gnu:$stage/usr/lib/x86_64-linux-gnu:$stage/usr/lib/x86_64-linux-gnu/ceph
for program in usr/sbin/nvme usr/bin/fio sbin/mke2fs sbin/e2fsck; do
    [ -f "$stage/$program" ] || die "the packages have no $program"
    cp -L "$stage/$program" "$root/bin/"
    "$ld" --inhibit-cache --library-path "$libpath" --list "$stage/$program"
done | sort -u | while read -r name arrow path _; do
    [ "$arrow" = "=>" ] || continue
    case $path in
        "$stage"/*) cp -Lu "$path" "$root/lib/x86_64-linux-gnu/$name" ;;
        *ld-linux*) ;;
        *) say "missing library: $name"; exit 1 ;;
    esac
done || die "a program would lack shared libraries"
# The guest has the C library already.
rm -f "$root"/lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libpthread.so.0,libdl.so.2,librt.so.1}
ln -s mke2fs "$root/bin/mkfs.ext4"
ln -s e2fsck "$root/bin/fsck.ext4"
tar c -C "$root" . > "$cache/storage.tar.tmp"
mv "$cache/storage.tar.tmp" "$cache/storage.tar"
echo "$recipe" > "$cache/storage.recipe"
rm -rf "$stage" "$root"
say "built, $(du -m "$cache/storage.tar" | cut -f1) MB"
echo "$cache/storage.tar"
