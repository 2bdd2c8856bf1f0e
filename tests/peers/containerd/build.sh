#!/usr/bin/env bash
# Build a client of containerd's own code and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "containerd's client"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder containerd)
cached "$out/containerd-pull" "containerd: building a client from its Go modules (once)" compile
