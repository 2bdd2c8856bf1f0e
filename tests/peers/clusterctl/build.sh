#!/usr/bin/env bash
# Build stock clusterctls from their Go modules and print their paths, one a line:
#   build.sh          the version of go.mod
#   build.sh 1.8 …    the versions of 1.8.mod …
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh
module=sigs.k8s.io/cluster-api
version_of() { sed -n "s|^.*$module v\([0-9.]*\).*|\1|p" "$1" | head -n 1; }
own=$(version_of go.mod | cut -d . -f 1,2)
[ $# -gt 0 ] || set -- "$own"

compile() {
  local version
  require_go clusterctl "$1"
  version=$(version_of "$1")
  CGO_ENABLED=0 go build -modfile="$1" -trimpath -o "$2" -ldflags "-s -w \
    -X $module/version.gitVersion=v$version -X $module/version.gitMajor=1 \
    -X $module/version.gitMinor=$(cut -d . -f 2 <<<"$version") \
    -X $module/version.gitTreeState=clean" $module/cmd/clusterctl
}

for minor in "$@"; do
  pins=$minor.mod
  [ "$minor" != "$own" ] || pins=go.mod
  if [ ! -f "$pins" ]; then
    echo "error: no clusterctl $minor is pinned in tests/peers/clusterctl" >&2
    exit 64
  fi
  out=$(cat build.sh "$pins" "${pins%.mod}.sum" tools.go | cache_folder clusterctl)
  words="clusterctl $minor: building it from its Go modules (once; some CPU minutes)"
  cached "$out/clusterctl" "$words" compile "$pins"
done
