#!/usr/bin/env bash
# Builds the HCA's tests for musl (x86_64) with warnings as errors, and runs them. An argument selects tests by a part of their name and
# omits the host_* programs. Requires root on Debian or Ubuntu, for the compiler. It takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=${MUSL_CXX:-$(scripts/install-musl-compiler.sh)}
cd test/native
build=build/musl
programs=(engine door verbs_tests)
[ $# -gt 0 ] || for file in $(grep -l '^int main' host_*.cc); do programs+=("${file%.cc}"); done
make --silent -j"$(nproc)" CXX="$compiler" BUILD=$build "${programs[@]/#/$build/}"

failed=()
run() {
  "$@" || failed+=("$*")
}
run $build/engine "$@"
run $build/engine --single "$@"
run $build/door "$@"
run $build/verbs_tests "$@"
for program in "${programs[@]:3}"; do run $build/"$program"; done
[ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
