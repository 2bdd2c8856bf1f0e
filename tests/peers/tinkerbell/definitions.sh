#!/usr/bin/env bash
# Print the files of the CustomResourceDefinitions that Tinkerbell publishes, from its Go module:
# definitions.sh v1alpha1
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
module=github.com/tinkerbell/tinkerbell
go mod download "$module"
ls "$(go list -m -f '{{.Dir}}' "$module")/crd/bases/$1"/*.yaml
