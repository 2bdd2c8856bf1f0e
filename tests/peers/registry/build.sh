#!/usr/bin/env bash
# Build the registry (the distribution project's, with ORAS to push) and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "the registry"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go image.go | cache_folder registry)
cached "$out/registry" "registry: building it from its Go modules (once)" compile
