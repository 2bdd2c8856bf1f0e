// Framework-checks runs checks of Cluster API's own end-to-end framework on a cluster of the box's
// provider: owner references and finalizers come back after their removal, and resource versions
// are stable.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/test/framework"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Finalizer of the provider.
const finalizer = "infrastructure.cluster.x-k8s.io/tinkerbellmachine"

// Owners of the provider's kinds, as the framework expects them of its own provider.
var owners = map[string]func(types.NamespacedName, []metav1.OwnerReference) error{
	"TinkerbellCluster": func(_ types.NamespacedName, all []metav1.OwnerReference) error {
		return framework.HasExactOwners(all, owner("Cluster", nil))
	},
	"TinkerbellMachine": func(_ types.NamespacedName, all []metav1.OwnerReference) error {
		yes := true
		return framework.HasExactOwners(all, owner("Machine", &yes))
	},
	"TinkerbellMachineTemplate": func(_ types.NamespacedName, all []metav1.OwnerReference) error {
		return framework.HasExactOwners(all, owner("Cluster", nil))
	},
}

var finalizers = map[string]func(types.NamespacedName) []string{
	"TinkerbellMachine": func(types.NamespacedName) []string { return []string{finalizer} },
}

func owner(kind string, controller *bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: "cluster.x-k8s.io/v1beta2", Kind: kind, Controller: controller,
	}
}

func main() {
	flags := flag.NewFlagSet("framework-checks", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the management cluster")
	cluster := flags.String("cluster", "", "name of the Cluster in the namespace default")
	// An object that a person created, and that has no owner.
	secret := flags.String("without-owner", "", "name of a Secret that no object owns")
	_ = flags.Parse(os.Args[1:])
	ctrl.SetLogger(klog.Background())
	is := func(object unstructured.Unstructured) bool {
		return object.GetKind() != "Secret" || object.GetName() != *secret
	}
	// The framework works only inside a spec of Ginkgo.
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.It("holds a cluster together", func() { check(*kubeconfig, *cluster, is) })
	if !ginkgo.RunSpecs(result{}, "framework checks") {
		os.Exit(1)
	}
	fmt.Println("all checks passed")
}

// result takes the place of a Go test: RunSpecs returns the result too.
type result struct{}

func (result) Fail() {}

func check(kubeconfig, cluster string, is func(unstructured.Unstructured) bool) {
	ctx := context.Background()
	scheme := runtime.NewScheme()
	framework.TryAddDefaultSchemes(scheme)
	proxy := framework.NewClusterProxy("management", kubeconfig, scheme)
	stable := framework.ValidateResourceVersionStableInput{
		ClusterProxy: proxy, Namespace: "default", OwnerGraphFilterFunction: is,
		WaitToBecomeStable: []any{"2m", "1s"}, WaitToRemainStable: []any{"10s", "1s"},
	}
	framework.ValidateResourceVersionStable(ctx, stable)
	framework.ValidateOwnerReferencesResilience(ctx, proxy, "default", cluster, is,
		framework.CoreOwnerReferenceAssertion,
		framework.KubeadmBootstrapOwnerReferenceAssertions,
		framework.KubeadmControlPlaneOwnerReferenceAssertions(false),
		framework.KubernetesReferenceAssertions, owners)
	framework.ValidateFinalizersResilience(ctx, proxy, "default", cluster, is,
		framework.CoreFinalizersAssertionWithLegacyClusters,
		framework.KubeadmControlPlaneFinalizersAssertion, finalizers)
	framework.ValidateResourceVersionStable(ctx, stable)
}
