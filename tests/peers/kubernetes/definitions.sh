#!/usr/bin/env bash
# Print the files of the CustomResourceDefinitions that CAPT publishes, from its Go module.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
module=github.com/tinkerbell/cluster-api-provider-tinkerbell
go mod download "$module"
ls "$(go list -m -f '{{.Dir}}' "$module")"/config/crd/bases/*.yaml
