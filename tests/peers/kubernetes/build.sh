#!/usr/bin/env bash
# Build stock programs from their Go modules and print their paths, one a line:
#   build.sh etcd kube-apiserver kube-controller-manager capt
# None is published in a form that this could fetch, and a real one is what the box's API is
# compared with.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  local flags
  require_go "$1"
  flags=$(kubernetes_version "$(sed -n 's/^\tk8s.io\/kubernetes \(v.*\)/\1/p' go.mod)")
  flags+=" -X go.etcd.io/etcd/api/v3/version.GitSHA=module"
  CGO_ENABLED=0 go build -trimpath -o "$2" -ldflags "-s -w $flags" "$1"
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder kubernetes)
for program in "$@"; do
  case $program in
    etcd) package=go.etcd.io/etcd/server/v3 ;;
    kube-apiserver | kube-controller-manager) package=k8s.io/kubernetes/cmd/$program ;;
    capt) package=github.com/tinkerbell/cluster-api-provider-tinkerbell ;;
    *)
      echo "error: no program $program is pinned in tests/peers/kubernetes" >&2
      exit 64
      ;;
  esac
  words="$program: building it from its Go modules (once; up to some CPU minutes)"
  cached "$out/$program" "$words" compile "$package"
done
