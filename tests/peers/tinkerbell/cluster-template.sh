#!/usr/bin/env bash
# Print the path of the cluster template that a release of Cluster API Provider Tinkerbell carries,
# from its Go module, in the version of ../kubernetes/go.mod.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../kubernetes"
source ../../cached.sh
module=github.com/tinkerbell/cluster-api-provider-tinkerbell
require_go "a cluster template"
go mod download "$module"
echo "$(go list -m -f '{{.Dir}}' "$module")/templates/cluster-template.yaml"
