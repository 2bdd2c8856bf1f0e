// The controllers program works with the server of KUBECONFIG as two kinds of controllers do:
//
//	controllers flux        applies manifests, as Flux's kustomize-controller does
//	controllers operator    reconciles Widgets, as a manager of controller-runtime does
//
// The program prints one line for each result. After a line `restart` the server may be killed and
// started again; the line read from standard input says that the server is back.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// Longest wait for one condition.
	waitLimit = 100 * time.Second
	// Longest run of the program.
	runLimit = 5 * time.Minute
	// Requests a second. The default of 20 would be most of the test's time.
	requestRate = 200
	// Time between two looks at a condition.
	lookInterval = 100 * time.Millisecond
)

func main() {
	run := map[string]func(context.Context, *rest.Config) error{"flux": flux, "operator": operator}
	if len(os.Args) != 2 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: controllers flux|operator")
		os.Exit(64)
	}
	ctrl.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		config.QPS, config.Burst = requestRate, requestRate
		err = run[os.Args[1]](ctx, config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var replies = bufio.NewReader(os.Stdin)

// Lets the server be killed. Returns at once.
func restart() {
	fmt.Println("restart")
}

// Waits until the server is back.
func restarted() error {
	if _, err := replies.ReadString('\n'); err != nil {
		return fmt.Errorf("no line says that the server is back: %w", err)
	}
	return nil
}

// Waits until a condition holds. An error of the condition counts as false, since the server may
// be down; the last error is named when the time is up.
func until(ctx context.Context, what string, holds func(context.Context) (bool, error)) error {
	var last error
	look := func(ctx context.Context) (bool, error) {
		held, err := holds(ctx)
		last = err
		return held && err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, lookInterval, waitLimit, true, look); err != nil {
		return fmt.Errorf("%s: not within %s (last error: %v)", what, waitLimit, last)
	}
	return nil
}
