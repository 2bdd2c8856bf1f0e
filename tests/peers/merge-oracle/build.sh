#!/usr/bin/env bash
# Build the merge oracle (Kubernetes' own structured merge, asked in JSON lines) and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "the merge oracle"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum main.go | cache_folder merge-oracle)
cached "$out/merge-oracle" "merge-oracle: building it from its Go modules (once)" compile
