#!/usr/bin/env bash
# Build the clients of Intel AMT (Intel's go-wsman-messages and Rufio's iamt) and print the path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "the clients of Intel AMT"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder amt-clients)
cached "$out/amt-clients" "amt-clients: building them from their Go modules (once)" compile
