#!/usr/bin/env bash
# Runs the two commands of the README with no more than the README requires: a copy of the checkout, an empty home folder and
# npm cache, an unprivileged user, and a PATH without ip, tc and tshark.
#
#   scripts/check-fresh.sh [--whole | --keep]
#
# By default, only the test files that may skip tests run, which takes seconds instead of minutes. --whole runs all. --keep copies
# the build of `npm ci` back to the checkout. If run as root, it switches to the user nobody. The tools are those of the OS, node and npm
# those of the caller.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=$(grep -rl 'helpers/needs\.js' --include='*.test.ts' test | sed 's|^test/||; s|ts$|js|')
[ "${1:-}" = --whole ] && tests=

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
mkdir "$fresh"/{bin,home,tmp,checkout}
git ls-files -z | tar --null --files-from=- --create | tar --extract --directory="$fresh/checkout"

# The contents of a plain image: a shell and its tools, and the compiler driver with the programs that it starts.
tools=(sh bash env cat ls mkdir rm cp mv ln touch chmod mktemp dirname basename realpath readlink uname nproc id date sleep
  true false test printf echo expr seq head tail cut sort tr wc tee sed grep awk find xargs tar gzip unshare nsenter setpriv taskset
  cc c++ gcc g++ as ld)
for tool in "${tools[@]}"; do
  path=$(PATH=/usr/local/bin:/usr/bin:/bin type -P "$tool") && ln -s "$path" "$fresh/bin/$tool"
done
for tool in node npm; do ln -s "$(readlink -f "$(type -P "$tool")")" "$fresh/bin/$tool"; done

# A clean environment, except for settings that depend on the machine: how packages and Node's headers are accessed.
environment=(HOME="$fresh/home" TMPDIR="$fresh/tmp" PATH="$fresh/bin" LANG=C.UTF-8)
for option in registry cafile proxy https-proxy noproxy nodedir; do
  value=$(npm config get "$option" 2>/dev/null)
  case "$value" in '' | null | undefined) ;; *) environment+=("npm_config_${option//-/_}=$value") ;; esac
done
for name in NODE_EXTRA_CA_CERTS SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
  [ -z "${!name:-}" ] || environment+=("$name=${!name}")
done

user=()
if [ "$(id -u)" = 0 ]; then
  user=(setpriv --reuid="$(id -u nobody)" --regid="$(id -g nobody)" --clear-groups --inh-caps=-all)
  chown --recursive --no-dereference "$(id -u nobody):$(id -g nobody)" "$fresh"
fi
as_newcomer() (
  cd "$fresh/checkout"
  env -i "${environment[@]}" "${user[@]}" sh -ec "$1"
)

for tool in ip tc tshark; do
  ! as_newcomer "command -v $tool" || { echo "$tool must not be on the PATH" >&2; exit 1; }
done
as_newcomer 'npm ci && npm start'
# `npm ci` has already built the addons.
# shellcheck disable=SC2086 # words
as_newcomer "npm test -- $(echo $tests)" | tee "$fresh/output"
# As a user sees it: nothing failed, and tests that the machine cannot run were skipped.
tail -n 1 "$fresh/output" | grep -Eq '^[0-9]+ passed, 0 failed, [1-9][0-9]* skipped$'
for tool in ip tshark; do grep -q "^SKIP .* $tool is not installed (apt-get install " "$fresh/output"; done
if [ "${1:-}" = --keep ]; then
  rm -rf node_modules dist build
  cp --recursive --preserve=mode,timestamps,links "$fresh/checkout"/{node_modules,dist,build} .
fi
