#!/usr/bin/env bash
# Build the stock helm from its Go modules and print its path. Debian has none.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  local version kubernetes symbols=helm.sh/helm/v3
  require_go helm
  version=$(sed -n 's/^require helm.sh\/helm\/v3 \(v.*\)/\1/p' go.mod)
  kubernetes=$(sed -n 's/^\tk8s.io\/client-go v0\.\([0-9]*\)\..*/\1/p' go.mod)
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w \
    -X $symbols/internal/version.version=$version -X $symbols/internal/version.metadata= \
    -X $symbols/pkg/lint/rules.k8sVersionMajor=1 \
    -X $symbols/pkg/lint/rules.k8sVersionMinor=$kubernetes \
    -X $symbols/pkg/chartutil.k8sVersionMajor=1 \
    -X $symbols/pkg/chartutil.k8sVersionMinor=$kubernetes" "$symbols/cmd/helm"
}

out=$(cat build.sh go.mod go.sum tools.go | cache_folder helm)
cached "$out/helm" "helm: building it from its Go modules (once; some CPU minutes)" compile
