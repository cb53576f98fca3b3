#!/usr/bin/env bash
# Installs Haraka from npm, in the one version that tests and bench use, into the folder given, never among the
# project's own packages. Further arguments go to npm.
set -euo pipefail
version=3.3.4
folder=$1
shift
[ "$(node -p "require('$folder/node_modules/haraka/package.json').version" 2>/dev/null)" != "$version" ] || exit 0
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || npm init -y >/dev/null
npm install --no-audit --no-fund --loglevel=error "$@" "haraka@$version" >&2
