#!/usr/bin/env bash
# Print the files of the definitions of Talos' providers for Cluster API: those of the bootstrap
# provider from its Go module, and that of the control-plane provider, whose module the Go proxy
# does not serve.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
module=github.com/siderolabs/cluster-api-bootstrap-provider-talos
go mod download "$module"
ls "$(go list -m -f '{{.Dir}}' "$module")"/config/crd/bases/*.yaml "$PWD/control-plane.yaml"
