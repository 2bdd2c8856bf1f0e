#!/usr/bin/env bash
# Build the pattern oracle (Quamina, asked in JSON lines) and print its path. Where the module
# cannot be fetched, QUAMINA_SOURCE names a folder with its source at the version of go.mod.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "the pattern oracle"
  local work
  work=$(mktemp -d)
  cp go.mod go.sum "$work"
  if [ -n "${QUAMINA_SOURCE:-}" ]; then
    go mod edit -replace "quamina.net/go/quamina=$QUAMINA_SOURCE" "$work/go.mod"
  fi
  CGO_ENABLED=0 go build -modfile "$work/go.mod" -trimpath -o "$1" -ldflags "-s -w" .
  rm -r "$work"
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder pattern-oracle)
cached "$out/pattern-oracle" "pattern-oracle: building it from its Go module (once)" compile
