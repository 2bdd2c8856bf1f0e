#!/usr/bin/env bash
# Build tink-agent, Tinkerbell's agent of today, from its Go modules and print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "tink-agent"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" \
    github.com/tinkerbell/tinkerbell/cmd/agent
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder tink-agent)
words="tink-agent: building it from its Go modules (once; some CPU minutes)"
cached "$out/tink-agent" "$words" compile
