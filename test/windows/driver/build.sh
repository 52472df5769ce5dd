#!/usr/bin/env bash
# Builds the stand-in driver: build.sh OUTPUT. Warnings are errors.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
x86_64-w64-mingw32-gcc -std=c11 -O2 -Wall -Wextra -Werror -Wno-unused-parameter -fno-builtin -D_WIN64 -D_AMD64_ \
  -isystem /usr/share/mingw-w64/include/ddk -shared -nostdlib -nostartfiles \
  -Wl,--subsystem,native -Wl,--entry,DriverEntry -o "$1" "$here/driver.c" "$here/model.c" "$here/connections.c" -lntoskrnl -lhal
