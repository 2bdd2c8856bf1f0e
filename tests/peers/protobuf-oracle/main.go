// Command protobuf-oracle writes down what Kubernetes' types look like, and what their encoders
// make of random objects.
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
