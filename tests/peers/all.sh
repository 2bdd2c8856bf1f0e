#!/usr/bin/env bash
# Build every stock program that the tests run against, where an earlier run has not: some 20 CPU
# minutes once. A test that finds one missing builds it itself, at the cost of its own time limit.
# The pattern oracle is not here: its answers are in pattern-answers.txt.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

{
  kubectl/build.sh
  kubernetes/build.sh etcd kube-apiserver kube-controller-manager capt
  cluster-api/build.sh core bootstrap control-plane core-1.8 bootstrap-1.8 control-plane-1.8 \
    core.yaml bootstrap.yaml control-plane.yaml tinkerbell.yaml \
    core-1.8.yaml bootstrap-1.8.yaml control-plane-1.8.yaml
  age/build.sh age age-keygen age-plugin-batchpass
  clusterctl/build.sh 1.8 1.12 1.13 1.14
  for peer in browser containerd controllers docker fabric8 framework-checks helm python registry \
    talos-config tink-agent tink-worker tootles workload-clusters merge-oracle protobuf-oracle \
    template-oracle amt-clients amt-meshcentral amt-python rufio sushy webdav; do
    "$peer/build.sh"
  done
  ../suites/apiextensions/build.sh test/integration
  packages=$(sed -n 's/^    holds("\(pkg\/.*\)")$/\1/p' \
    ../suites/tests/suites/controller_runtime.rs)
  # shellcheck disable=SC2086  # One word a package.
  ../suites/controller-runtime/build.sh $packages
  ../suites/kube-rs/build.sh watching kube kube-client kube-runtime
} >/dev/null
