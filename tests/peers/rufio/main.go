// Rufio, the controllers of Tinkerbell for Machines, Jobs and Tasks, unmodified:
//
//	rufio KUBECONFIG POWER_CHECK_INTERVAL
//
// Reconciles the objects of the API server of KUBECONFIG until a signal. Its log goes to standard
// error.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/go-logr/stdr"
	"github.com/tinkerbell/tinkerbell/rufio"
	"k8s.io/client-go/tools/clientcmd"
	controllerruntime "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: rufio KUBECONFIG POWER_CHECK_INTERVAL")
	}
	client, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		return err
	}
	interval, err := time.ParseDuration(os.Args[2])
	if err != nil {
		return err
	}
	log := stdr.New(nil)
	controllerruntime.SetLogger(log)
	config := rufio.NewConfig(
		rufio.WithClient(client),
		rufio.WithEnableLeaderElection(false),
		rufio.WithPowerCheckInterval(interval),
	)
	return config.Start(controllerruntime.SetupSignalHandler(), log)
}
