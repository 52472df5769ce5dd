#!/usr/bin/env bash
# Runs the tests of a built tree on another version of Node.js from npm: scripts/check-node.sh 24 [filter …]
set -euo pipefail
version=${1:?which version of Node.js, for example 24}
shift
cd "$(dirname "$0")/.."
package="node-linux-$(node -p process.arch)"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
npm install --silent --no-save --no-audit --no-fund --prefix "$folder" "$package@$version"
node="$folder/node_modules/$package/bin/node"
echo "Node.js $("$node" --version)"
"$node" scripts/run-tests.mjs "$@"
