#!/usr/bin/env bash
# Compile the suites of packages of controller-runtime and print, one a line, each suite's path and
# then that of its package, where the files lie that its tests read:
#   build.sh pkg/client pkg/cache
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "controller-runtime's suites"
  go test -c -vet=off -o "$2" "$1"
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder controller-runtime)
for package in "$@"; do
  whole=sigs.k8s.io/controller-runtime/$package
  cached "$out/${package//\//-}" "suites: compiling $whole (once; CPU minutes)" compile "$whole"
  go list -f '{{.Dir}}' "$whole"
done
