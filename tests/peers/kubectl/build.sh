#!/usr/bin/env bash
# Build stock kubectls from their Go modules and print their paths, one a line:
#   build.sh           the version of go.mod
#   build.sh 1.27 …    the versions of 1.27.mod …
# Debian's is too old.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh
own=$(sed -n 's/^\tk8s.io\/kubectl v0\.\([0-9]*\)\..*/1.\1/p' go.mod)
[ $# -gt 0 ] || set -- "$own"

compile() {
  local flags
  require_go kubectl "$1"
  flags=$(kubernetes_version "v1.$(sed -n 's/^\tk8s.io\/kubectl v0\.\(.*\)/\1/p' "$1")")
  CGO_ENABLED=0 go build -modfile="$1" -trimpath -o "$2" -ldflags "-s -w $flags" .
}

for minor in "$@"; do
  pins=$minor.mod
  [ "$minor" != "$own" ] || pins=go.mod
  if [ ! -f "$pins" ]; then
    echo "error: no kubectl $minor is pinned in tests/peers/kubectl" >&2
    exit 64
  fi
  out=$(cat build.sh "$pins" "${pins%.mod}.sum" main.go | cache_folder kubectl)
  words="kubectl $minor: building it from its Go modules (once; a few CPU minutes)"
  cached "$out/kubectl" "$words" compile "$pins"
done
