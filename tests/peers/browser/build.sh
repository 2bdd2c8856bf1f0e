#!/usr/bin/env bash
# Fetch the library that drives the browser and the accessibility checker axe-core, as
# package-lock.json pins them, and print the entry of the library. The
# browser itself is Debian's (tests/setup.sh).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

fetch() {
  if ! command -v npm >/dev/null; then
    echo "error: cannot fetch playwright-core: npm is missing" >&2
    echo "hint: install Node.js 20 or newer, with npm" >&2
    exit 1
  fi
  rm -rf "$1"
  mkdir "$1"
  cp package.json package-lock.json "$1"
  npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
}

out=$(cat build.sh package.json package-lock.json | cache_folder browser)
cached "$out/library" "browser: fetching playwright-core and axe-core (once)" fetch >/dev/null
echo "$out/library/node_modules/playwright-core/index.mjs"
