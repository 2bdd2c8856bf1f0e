// Package fixtures has the functions by which the suite starts a server for a test. Here they use
// the server of KUBECONFIG. build.sh replaces the suite's own file, which starts an API server
// inside the test, by this file.
package fixtures

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	serveroptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	servertesting "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
)

// Namespaces that the tests use. The suite's own server accepts any namespace without creating it.
var namespaces = []string{"not-the-default", "the-cruel-default", "test", "namespace-1", "namespace-2"}

var errEtcd = errors.New("this test reaches into the server's etcd, and the box has none")

// StartDefaultServer returns the client configuration of the server.
func StartDefaultServer(_ servertesting.Logger, flags ...string) (func(), *rest.Config, *serveroptions.CustomResourceDefinitionsServerOptions, error) {
	for _, flag := range flags {
		if !strings.HasPrefix(flag, "--watch-cache=") {
			return nil, nil, nil, fmt.Errorf("this test wants a server with %s", flag)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, nil, nil, err
	}
	config.QPS = -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, name := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := core.CoreV1().Namespaces().Create(context.Background(), namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, nil, nil, err
		}
	}
	return func() {}, config, nil, nil
}

// StartDefaultServerWithConfigAccess is for tests that read the server's storage.
func StartDefaultServerWithConfigAccess(_ servertesting.Logger, _ ...string) (func(), *rest.Config, apiserver.CompletedConfig, error) {
	return nil, nil, apiserver.CompletedConfig{}, errEtcd
}

// StartDefaultServerWithClients returns clients of the server.
func StartDefaultServerWithClients(t servertesting.Logger, flags ...string) (func(), clientset.Interface, dynamic.Interface, error) {
	tearDown, config, _, err := StartDefaultServer(t, flags...)
	if err != nil {
		return nil, nil, nil, err
	}
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, nil, err
	}
	return tearDown, definitions, objects, nil
}

// StartDefaultServerWithClientsAndEtcd is for tests that read or write what is stored.
func StartDefaultServerWithClientsAndEtcd(_ servertesting.Logger, _ ...string) (func(), clientset.Interface, dynamic.Interface, *clientv3.Client, string, error) {
	return nil, nil, nil, nil, "", errEtcd
}
