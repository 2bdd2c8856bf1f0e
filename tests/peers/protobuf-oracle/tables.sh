#!/usr/bin/env bash
# Write appliance/kube/kube-protobuf/types from Kubernetes' types: after a change of the version in
# go.mod. The specification beside them says what merges how.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
version=$(sed -n 's/.*k8s.io\/api v0\.\(.*\)/v1.\1/p' "$here/go.mod")
source=$(cd "$here" && go mod download -json "k8s.io/kubernetes@$version" |
  sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
program=$("$here/build.sh")
cd "$here"
"$program" tables "$source/api/openapi-spec/v3" ../../../appliance/kube/kube-protobuf/types
