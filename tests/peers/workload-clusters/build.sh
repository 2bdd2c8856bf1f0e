#!/usr/bin/env bash
# Build the program that stands in for the kubelets of provisioned machines from its Go modules and
# print its path.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
source ../../cached.sh

compile() {
  require_go "workload clusters in memory"
  CGO_ENABLED=0 go build -trimpath -o "$1" -ldflags "-s -w" .
}

out=$(cat build.sh go.mod go.sum ./*.go | cache_folder workload-clusters)
words="workload-clusters: building it from its Go modules (once; some CPU minutes)"
cached "$out/workload-clusters" "$words" compile
