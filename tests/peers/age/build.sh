#!/usr/bin/env bash
# Build the stock age from its Go modules, and print the paths of the programs that are named: age,
# age-keygen, age-plugin-batchpass. They lie in one folder, so that age finds its plugin.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go age
  CGO_ENABLED=0 go build -trimpath -o "$2" -ldflags "-s -w" "filippo.io/age/cmd/$1"
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder age)
for program; do
  cached "$out/$program" "$program: building it from its Go module (once)" compile "$program"
done
