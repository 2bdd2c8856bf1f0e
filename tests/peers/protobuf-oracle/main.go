// Command protobuf-oracle writes tables of Kubernetes' types, encodes random objects with
// Kubernetes' own encoders, and decodes objects.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "protobuf-oracle:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 3 && arguments[0] == "tables":
		return writeTables(arguments[1], arguments[2])
	case len(arguments) == 3 && arguments[0] == "cases":
		return writeCases(arguments[1], arguments[2])
	case len(arguments) == 1 && arguments[0] == "decode":
		return decodeLines()
	}
	return fmt.Errorf(
		"usage: protobuf-oracle tables SPECIFICATIONS FOLDER | cases SEED COUNT | decode")
}
