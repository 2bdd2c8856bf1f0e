#!/usr/bin/env bash
# Build the program that says what Kubernetes' own encoders make of random objects, and print its
# path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "Kubernetes' own encoders"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum ./*.go | cache_folder protobuf-oracle)
words="protobuf-oracle: building it from its Go modules (once)"
cached "$out/protobuf-oracle" "$words" compile
