//go:build tools

// Package age pins the stock age that backups are opened with.
package age

import (
	_ "filippo.io/age/cmd/age"
	_ "filippo.io/age/cmd/age-keygen"
	_ "filippo.io/age/cmd/age-plugin-batchpass"
)
