package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// node is what a kubelet registers.
type node struct {
	name, providerID, version string
	controlPlane              bool
}

// clusters are the workload clusters by endpoint.
type clusters struct {
	manager    inmemory.Manager
	byEndpoint map[string]*cluster
}

// cluster is a workload cluster with at least one API server.
type cluster struct {
	endpoint string
	hash     string
	mux      *server.WorkloadClustersMux
	client   inmemory.Client
	members  map[string]bool
	remove   func()
}

func newClusters(ctx context.Context) (*clusters, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme,
		storagev1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	manager := inmemory.NewManager(scheme)
	return &clusters{manager, map[string]*cluster{}}, manager.Start(ctx)
}

// Returns the cluster of a machine: a new cluster for `kubeadm init`, else the cluster at the
// endpoint.
func (c *clusters) find(ctx context.Context, data *userData) (*cluster, error) {
	found := c.byEndpoint[data.endpoint]
	if data.init == nil {
		if found == nil {
			return nil, fmt.Errorf("no API server answers at %s", data.endpoint)
		}
		return found, found.checkJoin(ctx, data)
	}
	if found != nil && found.hash != hashOf(data.cluster) {
		return nil, fmt.Errorf("another cluster has the endpoint %s", data.endpoint)
	}
	if found != nil {
		return found, nil
	}
	host, text, err := net.SplitHostPort(data.endpoint)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, err
	}
	// The certificates of the members need an address.
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return nil, err
	}
	// Each cluster has its own server, because a server has only one host.
	ports := server.CustomPorts{MinPort: int32(port), MaxPort: int32(port)}
	mux, err := server.NewWorkloadClustersMux(c.manager, addresses[0].String(), ports)
	if err != nil {
		return nil, err
	}
	if _, err = mux.InitWorkloadClusterListenerWithPort(data.endpoint, int32(port)); err != nil {
		return nil, err
	}
	c.manager.AddResourceGroup(data.endpoint)
	if err := mux.RegisterResourceGroup(data.endpoint, data.endpoint); err != nil {
		return nil, err
	}
	made := &cluster{
		endpoint: data.endpoint,
		hash:     hashOf(data.cluster),
		mux:      mux,
		client:   c.manager.GetResourceGroup(data.endpoint).GetClient(),
		members:  map[string]bool{},
	}
	made.remove = func() {
		_ = mux.Shutdown(context.Background())
		c.manager.DeleteResourceGroup(data.endpoint)
		delete(c.byEndpoint, data.endpoint)
	}
	if err := made.initialize(ctx, *data.init); err != nil {
		made.remove()
		return nil, err
	}
	c.byEndpoint[data.endpoint] = made
	return made, nil
}

// Returns the hash of an authority's public key, as in `kubeadm join`.
func hashOf(authority *authority) string {
	sum := sha256.Sum256(authority.certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Checks what `kubeadm join` checks: the hash of the authority, and the bootstrap token.
func (c *cluster) checkJoin(ctx context.Context, data *userData) error {
	if data.hash != c.hash {
		return fmt.Errorf("the authority has the hash %s, expected %s", c.hash, data.hash)
	}
	id, secret, _ := strings.Cut(data.token, ".")
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id}
	var token corev1.Secret
	if err := c.client.Get(ctx, key, &token); err != nil {
		return fmt.Errorf("bootstrap token: %w", err)
	}
	if string(token.Data["token-secret"]) != secret {
		return errors.New("the secret of the bootstrap token is another one")
	}
	return nil
}

// Creates the objects that an API server and `kubeadm init` create.
func (c *cluster) initialize(ctx context.Context, configuration string) error {
	var all []client.Object
	for _, name := range []string{
		metav1.NamespaceDefault, metav1.NamespacePublic, metav1.NamespaceSystem,
	} {
		meta := metav1.ObjectMeta{Name: name}
		all = append(all, &corev1.Namespace{ObjectMeta: meta})
	}
	getNodes := metav1.ObjectMeta{Name: "kubeadm:get-nodes"}
	rule := rbacv1.PolicyRule{
		Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"},
	}
	role := rbacv1.RoleRef{
		APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: getNodes.Name,
	}
	subject := rbacv1.Subject{
		Kind: rbacv1.GroupKind, Name: "system:bootstrappers:kubeadm:default-node-token",
	}
	all = append(all,
		&rbacv1.ClusterRole{ObjectMeta: getNodes, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: getNodes, RoleRef: role, Subjects: []rbacv1.Subject{subject},
		},
		&corev1.ConfigMap{
			ObjectMeta: system("kubeadm-config"),
			Data:       map[string]string{"ClusterConfiguration": configuration},
		})
	return c.create(ctx, all...)
}

func system(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
}

// Creates objects that do not exist yet.
func (c *cluster) create(ctx context.Context, all ...client.Object) error {
	for _, object := range all {
		if err := c.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create %s: %w", object.GetName(), err)
		}
	}
	return nil
}
