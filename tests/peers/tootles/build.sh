#!/usr/bin/env bash
# Build Tootles, Tinkerbell's metadata service, as main.go serves it, and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "Tootles"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder tootles)
cached "$out/tootles" "tootles: building it from its Go modules (once; a CPU minute)" compile
