#!/usr/bin/env bash
# Build the program that runs checks of Cluster API's end-to-end framework from its Go modules and
# print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "checks of Cluster API's framework"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum ./*.go | cache_folder framework-checks)
words="framework-checks: building it from its Go modules (once; some CPU minutes)"
cached "$out/framework-checks" "$words" compile
