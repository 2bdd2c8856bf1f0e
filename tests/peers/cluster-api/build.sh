#!/usr/bin/env bash
# Build Cluster API's managers from their Go modules, and the manifests that a release of them and
# of the Tinkerbell provider would carry, and print their paths, one a line:
#   build.sh core core.yaml tinkerbell.yaml      the version of go.mod
#   build.sh core-1.8 core-1.8.yaml              the version of 1.8.mod
# The manifests are what `kubectl kustomize` makes of a module's config/default, as its makefile
# does for a release.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh
core=sigs.k8s.io/cluster-api
capt=github.com/tinkerbell/cluster-api-provider-tinkerbell

# Make $4 what `kubectl kustomize` makes of $3/config/default in module $2, pinned by the file $1.
kustomize() (
  require_go "manifests of Cluster API"
  kubectl=$(../kubectl/build.sh 1.35)
  cd "$(dirname "$1")"
  pins=$(basename "$1")
  go mod download -modfile="$pins" "$2"
  source=$(go list -modfile="$pins" -m -f '{{.Dir}}' "$2")
  "$kubectl" kustomize "$source$3/config/default" >"$4"
)

compile() {
  local version minor
  require_go "a manager of Cluster API"
  version=$(go list -modfile="$2" -m -f '{{.Version}}' $core)
  minor=${version#v1.}
  CGO_ENABLED=0 go build -modfile="$2" -trimpath -o "$3" -ldflags "-s -w \
    -X $core/version.gitVersion=$version -X $core/version.gitMajor=1 \
    -X $core/version.gitMinor=${minor%%.*} -X $core/version.gitTreeState=clean" "$1"
}

for one in "$@"; do
  pins=go.mod
  [[ $one != *-1.8* ]] || pins=1.8.mod
  sources=(build.sh "$pins" "${pins%.mod}.sum" tools.go ../kubernetes/go.mod)
  out=$(cat "${sources[@]}" | cache_folder cluster-api)
  case ${one/-1.8/} in
    core) how=(compile $core $pins) ;;
    bootstrap) how=(compile $core/bootstrap/kubeadm $pins) ;;
    control-plane) how=(compile $core/controlplane/kubeadm $pins) ;;
    core.yaml) how=(kustomize $pins $core "") ;;
    bootstrap.yaml) how=(kustomize $pins $core /bootstrap/kubeadm) ;;
    control-plane.yaml) how=(kustomize $pins $core /controlplane/kubeadm) ;;
    tinkerbell.yaml) how=(kustomize ../kubernetes/go.mod $capt "") ;;
    *)
      echo "error: nothing named $one is pinned in tests/peers/cluster-api" >&2
      exit 64
      ;;
  esac
  words="cluster-api: building $one from its Go modules (once; up to some CPU minutes)"
  cached "$out/$one" "$words" "${how[@]}"
done
