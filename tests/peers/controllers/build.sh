#!/usr/bin/env bash
# Build the program of controllers (Flux's applier, a manager of controller-runtime) from its Go
# modules and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "controllers of others"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum ./*.go manifests.yaml | cache_folder controllers)
words="controllers: building them from their Go modules (once; some CPU minutes)"
cached "$out/controllers" "$words" compile
