#!/usr/bin/env bash
# Build the template oracle (Go's own text/template, asked in JSON lines) and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "the template oracle"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder template-oracle)
cached "$out/template-oracle" "template-oracle: building it from its Go modules (once)" compile
