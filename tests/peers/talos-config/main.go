// Program talos-config prints the machine configuration that Talos generates for a version of Talos
// and a type of machine, with strategic merge patches: a JSON list on standard input. It fails if
// Talos does not accept the result on bare metal.
//
//	talos-config v1.11 controlplane
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/generate"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"
)

// Values that do not change whether Talos accepts the result.
const (
	endpoint   = "https://10.77.0.9:6443"
	kubernetes = "1.33.0"
)

// metal is the mode of a machine whose disk already has Talos.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return false }
func (metal) InContainer() bool     { return false }

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(version, kind string) error {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return err
	}
	patches, err := configpatcher.LoadPatches(texts)
	if err != nil {
		return err
	}
	contract, err := config.ParseContractFromVersion(version)
	if err != nil {
		return err
	}
	option := generate.WithVersionContract(contract)
	input, err := generate.NewInput("demo", endpoint, kubernetes, option)
	if err != nil {
		return err
	}
	machineType, err := machine.ParseType(kind)
	if err != nil {
		return err
	}
	generated, err := input.Config(machineType)
	if err != nil {
		return err
	}
	patched, err := configpatcher.Apply(configpatcher.WithConfig(generated), patches)
	if err != nil {
		return err
	}
	provider, err := patched.Config()
	if err != nil {
		return err
	}
	// As Talos' bootstrap provider writes it.
	text, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return err
	}
	read, err := configloader.NewFromBytes(text)
	if err != nil {
		return err
	}
	warnings, err := read.Validate(metal{})
	if err != nil {
		return err
	}
	if len(warnings) > 0 {
		return fmt.Errorf("warnings: %v", warnings)
	}
	_, err = os.Stdout.Write(text)
	return err
}
