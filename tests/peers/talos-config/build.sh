#!/usr/bin/env bash
# Build talos-config (Talos' own generator of machine configuration) and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "talos-config"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder talos-config)
cached "$out/talos-config" "talos-config: building it from its Go modules (once)" compile
