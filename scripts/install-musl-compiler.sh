#!/usr/bin/env bash
# Builds a C++ compiler for musl in ~/.cache/networkdirect/musl and prints its path. Requires root on Debian or Ubuntu.
#
# Debian packages musl for C (musl-tools) but not a C++ library for it. Its package gcc-12-source contains the sources of libstdc++, which
# Debian's g++ 12 compiles once with musl's headers, in one to five minutes. Programs built with this compiler contain libstdc++.
set -euo pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/networkdirect
musl=$cache/musl
triplet=x86_64-linux-musl
specs=/usr/lib/$triplet/musl-gcc.specs
compiler=$musl/bin/c++
# musl has all thread functions, so none has to be looked up at run time.
threads=-DGTHREAD_USE_WEAK=0

fail() {
  echo "$*" >&2
  exit 1
}
[ "$(uname -m)" = x86_64 ] || fail "The compiler for musl can only be built on x86_64; this is $(uname -m)."

missing=()
for package in g++-12 gcc-12-source musl-tools linux-libc-dev make xz-utils; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || fail "missing: ${missing[*]} (requires root and apt-get)"
  echo "Installing ${missing[*]} …" >&2
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "Cannot install ${missing[*]}. gcc-12-source is in Debian 12; newer releases have other versions."
fi

# Another compiler or another version of this script produces another library.
made_of=$(g++-12 -dumpfullversion; cksum <"${BASH_SOURCE[0]}")
if [ "$(cat "$musl/complete" 2>/dev/null)" = "$made_of" ]; then
  echo "$compiler"
  exit
fi

rm -rf "$musl"
mkdir -p "$musl"/{source,build,bin}
log=$musl/build.log
failed() { fail "$1; see $log."; }

archives=(/usr/src/gcc-12/gcc-12.*.tar.xz)
[ -f "${archives[0]}" ] || fail "No source archive of the package gcc-12-source in /usr/src/gcc-12."
echo "Unpacking the sources of libstdc++ …" >&2
top=$(basename "${archives[0]}" .tar.xz)
top=${top%-dfsg}
# Its configuration requires these files of other folders.
parts=(libstdc++-v3 libgcc libiberty include config gcc/BASE-VER gcc/DATESTAMP config.guess config.sub config-ml.in install-sh ltmain.sh
  missing mkinstalldirs depcomp compile move-if-change)
tar -xf "${archives[0]}" -C "$musl/source" --strip-components=1 "${parts[@]/#/$top/}" >"$log" 2>&1 ||
  failed "Cannot unpack the sources of libstdc++"
# GCC's build creates this link when it configures libgcc: POSIX threads.
cp "$musl/source/libgcc/gthr-posix.h" "$musl/source/libgcc/gthr-default.h"

echo "Configuring libstdc++ for musl …" >&2
(
  cd "$musl/build"
  ../source/libstdc++-v3/configure --build=x86_64-linux-gnu --host=$triplet --prefix="$musl" --disable-shared \
    --disable-nls --disable-libstdcxx-pch --disable-multilib --enable-threads=posix \
    CC="gcc-12 -specs $specs" CXX="g++-12 -specs $specs" CPP="gcc-12 -specs $specs -E" \
    CFLAGS="-O2 -fPIC $threads" CXXFLAGS="-O2 -fPIC -ffunction-sections -fdata-sections $threads"
) >>"$log" 2>&1 || failed "Cannot configure libstdc++"
echo "Compiling libstdc++ for musl, which takes some minutes …" >&2
make -C "$musl/build" -j"$(nproc)" >>"$log" 2>&1 || failed "Cannot compile libstdc++"
make -C "$musl/build" install >>"$log" 2>&1 || failed "Cannot install libstdc++"

# Debian's libgcc_eh finds stack frames with a function that only glibc has. Its source also supports dl_iterate_phdr, and then needs almost
# none of the headers that GCC's build generates.
stubs=$musl/build/stubs
mkdir "$stubs"
for header in tconfig coretypes tm libgcc_tm; do : >"$stubs/$header.h"; done
cat >"$stubs/tsystem.h" <<'HEADER'
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#define gcc_assert(condition) ((condition) ? (void)0 : abort())
#define gcc_unreachable() abort()
HEADER
(
  cd "$musl/build"
  gcc-12 -specs $specs -O2 -fPIC -fexceptions -DIN_LIBGCC2 -DHAVE_LD_EH_FRAME_HDR -DTARGET_DL_ITERATE_PHDR $threads \
    -I"$stubs" -I"$musl/source/libgcc" -I"$musl/source/include" -c "$musl/source/libgcc/unwind-dw2-fde-dip.c"
  cp "$(gcc-12 -print-file-name=libgcc_eh.a)" "$musl/lib/libgcc_eh.a"
  ar r "$musl/lib/libgcc_eh.a" unwind-dw2-fde-dip.o
) >>"$log" 2>&1 || failed "Cannot build libgcc_eh"

# The kernel headers, which musl lacks, without glibc's headers, which are in the same folder.
mkdir "$musl/kernel"
ln -s /usr/include/{linux,asm-generic,rdma} /usr/include/x86_64-linux-gnu/asm "$musl/kernel/"

# musl's specs for C, extended for C++: the headers and libraries built here come first, and exceptions get a frame table.
headers=$musl/include/c++/$(g++-12 -dumpfullversion)
sed -e "s|-nostdinc |-nostdinc $threads -isystem $headers -isystem $headers/$triplet -isystem $headers/backward -idirafter $musl/kernel |" \
  -e "s|^-L/usr/lib/$triplet|-L$musl/lib &|" -e "s|^-dynamic-linker|--eh-frame-hdr &|" -e "s|^libgcc.a%s .*|libgcc.a%s $musl/lib/libgcc_eh.a|" "$specs" >"$musl/g++.specs"
cat >"$compiler" <<COMPILER
#!/bin/sh
exec g++-12 -specs "$musl/g++.specs" "\$@"
COMPILER
chmod +x "$compiler"

# A program that starts a thread and catches an exception thrown by another function shows that all parts work together.
cat >"$musl/build/try.cc" <<'PROGRAM'
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <thread>
static std::mutex mutex;
__attribute__((noinline)) static void fails() { throw std::runtime_error("caught"); }
int main() {
  std::thread([] {
    std::lock_guard<std::mutex> guard(mutex);
    try {
      fails();
    } catch (const std::exception &error) {
      std::puts(error.what());
    }
  }).join();
}
PROGRAM
"$compiler" -std=c++17 -pthread -o "$musl/build/try" "$musl/build/try.cc" >>"$log" 2>&1 || failed "The compiler for musl does not work"
said=$("$musl/build/try" 2>>"$log") || true
[ "$said" = caught ] || fail "A program built with the compiler for musl does not run; see $log."

rm -rf "$musl/source" "$musl/build"
printf '%s\n' "$made_of" >"$musl/complete"
echo "$compiler"
