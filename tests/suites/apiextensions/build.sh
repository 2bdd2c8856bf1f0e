#!/usr/bin/env bash
# Compile the suite of a package of Kubernetes' apiextensions-apiserver, with server.go in place of
# its own server, and print the suite's path and then that of the package, where the files lie that
# its tests read:
#   build.sh test/integration
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

module=k8s.io/apiextensions-apiserver

compile() {
  local package=$1 out=$2 copy
  require_go "apiextensions-apiserver's suite"
  copy=$(mktemp -d)
  cp -r --no-preserve=mode "$(sources)/." "$copy"
  cp server.go "$copy/test/integration/fixtures/server.go"
  go -C "$copy" test -c -vet=off -o "$out" "./$package"
  rm -rf "$copy"
}

sources() {
  go mod download "$module"
  go list -m -f '{{.Dir}}' "$module"
}

out=$(cat build.sh go.mod go.sum server.go | cache_folder apiextensions)
for package in "$@"; do
  # By its base name, as Go's own runs have it: tests find their fields by their user agent.
  cached "$out/${package##*/}.test" "suites: compiling $module/$package (once; CPU minutes)" \
    compile "$package"
  echo "$(sources)/$package"
done
