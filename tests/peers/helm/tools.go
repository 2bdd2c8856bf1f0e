//go:build tools

// Package helm pins the stock helm that the box is tested with.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
