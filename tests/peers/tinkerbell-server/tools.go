//go:build tools

// Package tools names the program that build.sh builds.
package tools

import _ "github.com/tinkerbell/tinkerbell/cmd/tinkerbell"
