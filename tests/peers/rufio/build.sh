#!/usr/bin/env bash
# Build Rufio, Tinkerbell's controllers of Machines, Jobs and Tasks, from its Go modules and print
# its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "Rufio"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder rufio)
cached "$out/rufio" "rufio: building it from its Go modules (once)" compile
