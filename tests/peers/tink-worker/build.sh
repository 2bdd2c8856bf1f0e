#!/usr/bin/env bash
# Build tink-worker, Tinkerbell's agent before tink-agent, from its Go modules and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "tink-worker"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" \
    github.com/tinkerbell/tink/cmd/tink-worker
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder tink-worker)
words="tink-worker: building it from its Go modules (once; a CPU minute)"
cached "$out/tink-worker" "$words" compile
