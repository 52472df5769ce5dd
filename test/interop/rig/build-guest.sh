#!/bin/bash
# Build the interop guest: Debian's own kernel plus a small initramfs with the
# kernel's software RoCEv2 driver (rdma_rxe) and Debian's rdma-core user space.
# Nothing is installed on the host: packages are downloaded with apt-get and
# unpacked into a cache folder. Root is not needed.
#
#   build-guest.sh [--force] [--with-python] [CACHE_DIR]
#
#   CACHE_DIR      default: ${ROCE_CACHE:-${XDG_CACHE_HOME:-${TMPDIR:-/tmp}}/roce-interop}
#   --force        rebuild even if the images are already there
#   --with-python  also put Python 3 and pyverbs (with rdma-core's own test
#                  suite, under /tests) into the guest
#   --with-node    also put this host's Node.js into the guest, and siw with
#                  rdma-core's provider for it; such a guest needs ROCE_MEM=1024.
#                  Where siw cannot be built, the guest has a file /etc/no-siw
#                  that says why.
#
#   KERNEL_PKG     kernel (meta) package, default linux-image-amd64
#   KERNEL_DEB     use this kernel .deb file instead of downloading one
#
# Result: CACHE_DIR/vmlinuz, CACHE_DIR/initrd.cpio, CACHE_DIR/versions.txt
set -euo pipefail
umask 022

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
force=0 python=0 node=0 cache=
for a in "$@"; do
    case $a in
        --force) force=1 ;;
        --with-python) python=1 ;;
        --with-node) node=1 ;;
        -*) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
        *) cache=$a ;;
    esac
done
cache=${cache:-${ROCE_CACHE:-${XDG_CACHE_HOME:-${TMPDIR:-/tmp}}/roce-interop}}
kernel_pkg=${KERNEL_PKG:-linux-image-amd64}

say() { printf 'build-guest: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

for t in apt-get dpkg dpkg-deb cpio modprobe depmod; do
    command -v "$t" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
    command -v "$t" >/dev/null || die "missing tool: $t"
done

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
# An image counts only if exactly these scripts have created it.
recipe=$(cat "$here"/{build-guest,build-siw,guest-init,guest-exec}.sh | sha256sum | cut -d' ' -f1)
[ $node = 1 ] && recipe="$recipe $(node --version)"
if [ $force = 0 ] && [ -s "$cache/initrd.cpio" ] && [ -s "$cache/vmlinuz" ] &&
    [ "$(cat "$cache/recipe" 2>/dev/null)" = "$recipe" ]; then
    say "already built in $cache (use --force to rebuild)"
    exit 0
fi
debs=$cache/debs stage=$cache/stage root=$cache/root
rm -rf "$stage" "$root"
mkdir -p "$debs" "$stage" "$root"

# ---- packages ---------------------------------------------------------------
pkgs=(
    # the programs
    busybox-static iproute2 rdma-core ibverbs-utils ibverbs-providers
    rdmacm-utils perftest qperf coreutils dash
    # the shared libraries they need
    libc6 libgcc-s1 libibverbs1 librdmacm1 libibumad3 libnl-3-200
    libnl-route-3-200 libmnl0 libbpf1 libelf1 libcap2 zlib1g libbsd0 libmd0
    libselinux1 libpcre2-8-0 libpci3 libudev1 libkmod2 libzstd1 liblzma5
    libssl3 libxtables12 libtirpc3 libdb5.3
)
[ $python = 1 ] && pkgs+=(
    python3-pyverbs python3.11-minimal libpython3.11-minimal libpython3.11-stdlib
    libpython3.11 libexpat1 libffi8 libbz2-1.0 libuuid1
)

[ $node = 1 ] && pkgs+=(libstdc++6)

cd "$debs"
if [ -n "${KERNEL_DEB:-}" ]; then
    kdeb=$KERNEL_DEB
else
    # linux-image-amd64 only depends on the versioned image: follow it.
    img=$(apt-cache depends "$kernel_pkg" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n1)
    img=${img:-$kernel_pkg}
    kdeb=
    pkgs+=("$img")
fi
say "downloading ${#pkgs[@]} packages"
for p in "${pkgs[@]}"; do
    compgen -G "${p}_*.deb" >/dev/null && continue      # kept from an earlier build
    apt-get -q download "$p" >>download.log 2>&1 || die "cannot download $p (see $debs/download.log)"
done
if [ -z "$kdeb" ]; then
    for f in "${img}"_*.deb; do kdeb=$f; done
fi
say "unpacking"
for f in *.deb; do
    case $f in linux-image-*) continue ;; esac
    for p in "${pkgs[@]}"; do                           # ignore leftovers of other builds
        case $f in "${p}"_*) dpkg-deb -x "$f" "$stage"; break ;; esac
    done
done
dpkg-deb -x "$kdeb" "$cache/kernel.tmp"
rm -rf "$cache/kernel"; mv "$cache/kernel.tmp" "$cache/kernel"

kver=$(basename "$cache"/kernel/boot/vmlinuz-*); kver=${kver#vmlinuz-}
mods=$(echo "$cache"/kernel/{lib,usr/lib}/modules/"$kver"/kernel | tr ' ' '\n' | while read -r d; do [ -d "$d" ] && echo "$d" && break; done)
[ -n "$mods" ] || die "no modules in $kdeb"
kbase=${mods%/lib/modules/*}
cp "$cache/kernel/boot/vmlinuz-$kver" "$cache/vmlinuz"

# ---- root file system -------------------------------------------------------
mkdir -p "$root"/{bin,dev,etc,proc,sys,run,tmp,share,root,usr/lib,lib64,lib/modules/"$kver"}
ln -s bin "$root/sbin"
ln -s ../bin "$root/usr/bin"
ln -s ../bin "$root/usr/sbin"
ln -s ../tmp "$root/var"

cp "$stage/bin/busybox" "$root/bin/busybox"
for a in $("$stage/bin/busybox" --list); do
    [ "$a" = busybox ] || ln -s busybox "$root/bin/$a"
done
rm -f "$root"/bin/{ip,tc}                    # iproute2's are used

bins=()
add() { # add NAME... : take these programs from the unpacked packages
    local n d
    for n in "$@"; do
        for d in bin sbin usr/bin usr/sbin; do
            if [ -f "$stage/$d/$n" ]; then
                rm -f "$root/bin/$n"
                cp -L "$stage/$d/$n" "$root/bin/$n"; bins+=("$root/bin/$n"); continue 2
            fi
        done
        say "note: program $n not found in the packages"
    done
}
add ip bridge tc rdma nstat stdbuf dash
ln -sf dash "$root/bin/sh"       # busybox's shell would prefer its own ip to iproute2's
add ibv_devices ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong \
    ibv_srq_pingpong ibv_xsrq_pingpong ibv_asyncwatch
add rping ucmatose udaddy mckey rstream riostream rcopy cmtime udpong \
    rdma_client rdma_server rdma_xclient rdma_xserver
add ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat \
    ib_atomic_bw ib_atomic_lat
add qperf

# rdma-core's user-space drivers are dlopen()ed: take librxe and its config.
libdir=usr/lib/x86_64-linux-gnu
mkdir -p "$root/$libdir/libibverbs" "$root/etc/libibverbs.d"
cp "$stage/$libdir"/libibverbs/librxe-rdmav*.so "$root/$libdir/libibverbs/"
cp "$stage/etc/libibverbs.d/rxe.driver" "$root/etc/libibverbs.d/"
bins+=("$root/$libdir"/libibverbs/*.so)
# rsockets preload (lets ordinary socket programs run over RDMA) and stdbuf's half
mkdir -p "$root/$libdir/rsocket" "$root/usr/libexec/coreutils"
cp -L "$stage/$libdir"/rsocket/librspreload.so "$root/$libdir/rsocket/" 2>/dev/null &&
    bins+=("$root/$libdir/rsocket/librspreload.so")
cp "$stage/usr/libexec/coreutils/libstdbuf.so" "$root/usr/libexec/coreutils/"

if [ $python = 1 ]; then
    add python3.11
    ln -sf python3.11 "$root/bin/python3"
    mkdir -p "$root/usr/lib/python3/dist-packages" "$root/tests"
    cp -r "$stage/usr/lib/python3.11" "$root/usr/lib/"
    cp -r "$stage/usr/lib/python3/dist-packages/pyverbs" "$root/usr/lib/python3/dist-packages/"
    rm -rf "$root"/usr/lib/python3.11/{idlelib,lib2to3,test,tkinter,ensurepip,pydoc_data,turtledemo}
    cp "$stage"/usr/share/doc/rdma-core/tests/* "$root/tests/"
    rm -f "$root"/tests/test_{mlx5,efa,cuda}*           # other hardware
    gunzip -f "$root"/tests/*.gz
    # Extension modules that would pull in more libraries and are of no use here.
    find "$root/usr/lib/python3.11/lib-dynload" -name '_*.so' | grep -E \
        '/_(ssl|hashlib|curses|curses_panel|dbm|gdbm|sqlite3|tkinter|crypt)\.' | xargs rm -f
    rm -f "$root"/usr/lib/python3.11/lib-dynload/{readline,nis}.*.so
    while read -r so; do bins+=("$so"); done < <(find "$root"/usr/lib/python3* -name '*.so')
fi

if [ $node = 1 ]; then
    cp -L "$(command -v node)" "$root/bin/node"; bins+=("$root/bin/node")
    cp "$stage/$libdir"/libibverbs/libsiw-rdmav*.so "$root/$libdir/libibverbs/"
    cp "$stage/etc/libibverbs.d/siw.driver" "$root/etc/libibverbs.d/"
fi

# Shared libraries: run the unpacked dynamic loader, with only unpacked folders.
ld=$(readlink -f "$stage/lib64/ld-linux-x86-64.so.2")
[ -f "$ld" ] || ld=$stage/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
libpath=$stage/lib/x86_64-linux-gnu:$stage/$libdir
mkdir -p "$root/lib/x86_64-linux-gnu"
cp "$ld" "$root/lib64/ld-linux-x86-64.so.2"
for b in "${bins[@]}"; do
    "$ld" --inhibit-cache --library-path "$libpath" --list "$b" 2>/dev/null || true
done | sort -u | while read -r name arrow path _; do
    [ "$arrow" = "=>" ] || continue
    case $path in
        "$stage"/*) cp -Lu "$path" "$root/lib/x86_64-linux-gnu/$name" ;;
        *ld-linux*) ;;
        *) say "missing library: $name"; exit 1 ;;
    esac
done || die "the guest would lack shared libraries: add their packages to the list"
# glibc loads this one by itself, when a thread is cancelled.
cp -L "$stage/lib/x86_64-linux-gnu/libgcc_s.so.1" "$root/lib/x86_64-linux-gnu/"

# ---- kernel modules ---------------------------------------------------------
extra=()
if [ $node = 1 ]; then
    say "building siw"
    if siw=$("$here/build-siw.sh" "$(realpath "$kdeb")" "$cache" 2>"$cache/siw.log"); then
        cp "$siw" "$mods/siw.ko"; extra+=(siw)
    else
        say "$(cat "$cache/siw.log")"; cp "$cache/siw.log" "$root/etc/no-siw"
    fi
fi
depmod -b "$kbase" "$kver" 2>/dev/null
want=(
    virtio_pci virtio_net virtio_console virtio_rng 9p 9pnet_virtio
    ib_core ib_cm iw_cm ib_uverbs ib_umad rdma_cm rdma_ucm rdma_rxe
    crc32_generic crc32-pclmul
    dummy veth 8021q sch_netem                          # rxe on other links, loss
    sch_ingress cls_u32 act_gact                        # tc: drop chosen packets
    ifb act_mirred sch_red sch_tbf                      # tc: queues for what comes in, marks
    nvme-rdma nvmet-rdma null_blk rds_rdma              # kernel users of RDMA
    ext4                                                # a file system on NVMe
    "${extra[@]}"
)
for m in "${want[@]}"; do
    modprobe -d "$kbase" -S "$kver" --show-depends "$m" 2>/dev/null | awk '$1=="insmod"{print $2}' ||
        say "note: no module $m in $kver"
done | sort -u | while read -r f; do
    d=$root/lib/modules/$kver/${f#*/modules/"$kver"/}
    mkdir -p "${d%/*}"
    case $f in
        *.xz) xz -dc "$f" > "${d%.xz}" ;;
        *.zst) zstd -qdc "$f" > "${d%.zst}" ;;
        *) cp "$f" "$d" ;;
    esac
done
cp "${mods%/kernel}"/modules.{builtin,order} "$root/lib/modules/$kver/" 2>/dev/null || true
depmod -b "$root" "$kver" 2>/dev/null
[ -n "$(find "$root/lib/modules" -name 'rdma_rxe.ko')" ] || die "$kver has no rdma_rxe module"

# ---- init, command runner, small configuration ------------------------------
install -m 755 "$here/guest-init.sh" "$root/init"
install -m 755 "$here/guest-exec.sh" "$root/bin/guest-exec"
printf 'root:x:0:0:root:/root:/bin/sh\n' > "$root/etc/passwd"
printf 'root:x:0:\n' > "$root/etc/group"
printf '127.0.0.1 localhost\n::1 localhost\n' > "$root/etc/hosts"
printf 'hosts: files\n' > "$root/etc/nsswitch.conf"

{
    echo "kernel $(dpkg-deb -f "$kdeb" Package Version | sed 's/^[A-Za-z]*: //' | paste -sd' ')"
    for p in rdma-core ibverbs-providers rdmacm-utils perftest qperf iproute2 busybox-static; do
        for f in "${p}"_*.deb; do echo "$p $(dpkg-deb -f "$f" Version)"; done
    done
    [ $python = 1 ] && echo "python3-pyverbs included"
    [ $node = 1 ] && echo "node $(node --version)"
} > "$root/etc/versions.txt" || true
cp "$root/etc/versions.txt" "$cache/versions.txt"

# Uncompressed: under emulation, unpacking costs more than loading.
(cd "$root" && find . | LC_ALL=C sort | cpio -o -H newc -R 0:0 --quiet) > "$cache/initrd.cpio.tmp"
mv "$cache/initrd.cpio.tmp" "$cache/initrd.cpio"
# A guest without siw is not kept: the next build may have what this one lacked.
if [ -e "$root/etc/no-siw" ]; then rm -f "$cache/recipe"; else echo "$recipe" > "$cache/recipe"; fi
rm -rf "$stage" "$cache/kernel"
say "built in $cache:"
sed 's/^/  /' "$cache/versions.txt" >&2
ls -l "$cache/vmlinuz" "$cache/initrd.cpio" | awk '{printf "  %s %.1f MB\n", $NF, $5/1e6}' >&2
