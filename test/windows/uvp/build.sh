#!/usr/bin/env bash
# Builds the stand-in provider: build.sh OUTPUT. Warnings are errors.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
x86_64-w64-mingw32-gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -o "$1" "$here/uvp.c" "$here/hca.c"
