// Workload-clusters stands in for the kubelets of the machines that a box provisions. It watches
// the Hardware of the box. For a provisioned machine it runs the kubeadm configuration in the user
// data against the in-memory workload API of Cluster API: API server, etcd member, static Pods and
// Node. For a released machine it stops them. It never deletes a Node: Cluster API does.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Annotation of a Hardware whose installation completed.
const provisioned = "v1alpha1.tinkerbell.org/provisioned"

// Interval at which a machine that cannot join yet tries again.
const retry = 500 * time.Millisecond

var hardwareResource = schema.GroupVersionResource{
	Group: "tinkerbell.org", Version: "v1alpha1", Resource: "hardware",
}

func main() {
	// A package of controller-runtime defines a flag of this name in the default set.
	flags := flag.NewFlagSet("workload-clusters", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the box")
	disks := flags.String("disks", "", "folder with the Kubernetes version of each machine")
	_ = flags.Parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctrl.SetLogger(klog.Background())
	if err := run(ctx, *kubeconfig, *disks); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, disks string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	clusters, err := newClusters(ctx)
	if err != nil {
		return err
	}
	// One pending signal is enough: each pass reads all Hardware.
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	informers := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := informers.ForResource(hardwareResource).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { signal() },
		UpdateFunc: func(any, any) { signal() },
		DeleteFunc: func(any) { signal() },
	})
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	machines := &machines{clusters: clusters, disks: disks, running: map[string]*machine{}}
	for {
		wait := time.Hour
		if !machines.reconcile(ctx, hardwareOf(informer.GetStore())) {
			wait = retry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-time.After(wait):
		}
	}
}

func hardwareOf(store cache.Store) map[string]*unstructured.Unstructured {
	all := map[string]*unstructured.Unstructured{}
	for _, object := range store.List() {
		hardware := object.(*unstructured.Unstructured)
		all[hardware.GetNamespace()+"/"+hardware.GetName()] = hardware
	}
	return all
}
