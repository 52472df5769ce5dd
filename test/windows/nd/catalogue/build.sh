#!/usr/bin/env bash
# Builds the stand-in for the Winsock catalogue: build.sh OUTPUT. Warnings are errors.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
x86_64-w64-mingw32-g++ -std=c++17 -O2 -fno-exceptions -fno-rtti -Wall -Wextra -Werror -Wshadow -shared -static \
  -o "$1" "$here/catalogue.cc" -lws2_32
