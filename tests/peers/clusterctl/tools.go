//go:build tools

// Package tools names the program that build.sh builds.
package tools

import _ "sigs.k8s.io/cluster-api/cmd/clusterctl"
