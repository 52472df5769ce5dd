#!/bin/sh
# The HCA's native tests under AddressSanitizer with UndefinedBehaviorSanitizer, then under ThreadSanitizer.
set -e
cd "$(dirname "$0")"
make asan
make tsan
