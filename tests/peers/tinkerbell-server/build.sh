#!/usr/bin/env bash
# Build Tinkerbell's own server, which the bench of Cluster API compares the box with, from its Go
# modules and print its path. Where the module of Quamina cannot be fetched, QUAMINA_SOURCE names a
# folder with its source at the version of go.mod.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "Tinkerbell's server"
  local work
  work=$(mktemp -d)
  cp go.mod go.sum "$work"
  if [ -n "${QUAMINA_SOURCE:-}" ]; then
    go mod edit -replace "quamina.net/go/quamina=$QUAMINA_SOURCE" "$work/go.mod"
  fi
  CGO_ENABLED=0 go build -modfile "$work/go.mod" -trimpath -o "$1" -ldflags "-s -w" \
    github.com/tinkerbell/tinkerbell/cmd/tinkerbell
  rm -r "$work"
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder tinkerbell-server)
words="tinkerbell: building it from its Go modules (once; some CPU minutes)"
cached "$out/tinkerbell" "$words" compile
