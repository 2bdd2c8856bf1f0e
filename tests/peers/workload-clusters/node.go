package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Label and taint of Nodes of the control plane.
const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// Static Pods of a machine of the control plane.
var staticPods = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
}

var errNodeExists = errors.New("the Node of an earlier machine with this name still exists")

// Starts the API server and the etcd member of a machine of the control plane, and creates the
// Node.
func (c *cluster) run(ctx context.Context, data *userData, node node) error {
	// A machine of metal needs minutes to boot. Cluster API has then deleted the Node of the
	// machine that had the host before.
	err := c.client.Get(ctx, client.ObjectKey{Name: node.name}, &corev1.Node{})
	if err == nil {
		return errNodeExists
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	if node.controlPlane {
		if err := c.addMember(ctx, data, node); err != nil {
			return err
		}
	}
	return c.create(ctx, nodeObject(node))
}

func (c *cluster) addMember(ctx context.Context, data *userData, node node) error {
	annotations, err := c.memberAnnotations(ctx)
	if err != nil {
		return err
	}
	for _, name := range staticPods {
		pod := staticPod(name, node.name)
		if name == "etcd" {
			for key, value := range annotations {
				pod.Annotations[key] = value
			}
		}
		if err := c.create(ctx, pod); err != nil {
			return err
		}
	}
	if err := c.create(ctx, kubeProxy(node.version)); err != nil {
		return err
	}
	err = c.mux.AddEtcdMember(
		c.endpoint, "etcd-"+node.name, data.etcd.certificate, data.etcd.key)
	if err != nil {
		return err
	}
	c.members[node.name] = true
	return c.mux.AddAPIServer(
		c.endpoint, "kube-apiserver-"+node.name, data.cluster.certificate, data.cluster.key)
}

// Stops the API server and the etcd member of a machine. The last member takes the cluster with it.
func (c *cluster) removeMember(ctx context.Context, name string) error {
	for _, pod := range staticPods {
		err := c.client.Delete(ctx, staticPod(pod, name))
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	if err := c.mux.DeleteEtcdMember(c.endpoint, "etcd-"+name); err != nil {
		return err
	}
	if err := c.mux.DeleteAPIServer(c.endpoint, "kube-apiserver-"+name); err != nil {
		return err
	}
	delete(c.members, name)
	if len(c.members) == 0 {
		c.remove()
	}
	return nil
}

// Returns the annotations by which the in-memory etcd knows its members: the ID of the cluster, the
// ID of the new member, and for the first member the time since when it is the leader.
func (c *cluster) memberAnnotations(ctx context.Context) (map[string]string, error) {
	var pods corev1.PodList
	err := c.client.List(ctx, &pods, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{"component": "etcd"})
	if err != nil {
		return nil, fmt.Errorf("cannot list the etcd members: %w", err)
	}
	// An ID of zero means no ID in etcd.
	id := func() string { return strconv.FormatUint(uint64(rand.Uint32())+1, 10) }
	annotations := map[string]string{v1alpha1.EtcdMemberIDAnnotationName: id()}
	for _, pod := range pods.Items {
		cluster := pod.Annotations[v1alpha1.EtcdClusterIDAnnotationName]
		annotations[v1alpha1.EtcdClusterIDAnnotationName] = cluster
	}
	if len(pods.Items) == 0 {
		annotations[v1alpha1.EtcdClusterIDAnnotationName] = id()
		now := time.Now().Format(time.RFC3339)
		annotations[v1alpha1.EtcdLeaderFromAnnotationName] = now
	}
	return annotations, nil
}

func staticPod(component, node string) *corev1.Pod {
	meta := system(component + "-" + node)
	meta.Labels = map[string]string{"component": component, "tier": "control-plane"}
	// A drain leaves the mirrors of static Pods alone.
	meta.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "static"}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	return &corev1.Pod{
		ObjectMeta: meta,
		Spec:       corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready},
		},
	}
}

func kubeProxy(version string) *appsv1.DaemonSet {
	container := corev1.Container{
		Name: "kube-proxy", Image: "registry.k8s.io/kube-proxy:" + version,
	}
	template := corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{Containers: []corev1.Container{container}},
	}
	return &appsv1.DaemonSet{
		ObjectMeta: system("kube-proxy"), Spec: appsv1.DaemonSetSpec{Template: template},
	}
}

func nodeObject(node node) *corev1.Node {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus,
		reason string,
	) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now(),
		}
	}
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.name, Labels: map[string]string{
			corev1.LabelHostname: node.name,
		}},
		Spec: corev1.NodeSpec{ProviderID: node.providerID},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: node.version},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse,
					"KubeletHasSufficientMemory"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse,
					"KubeletHasNoDiskPressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse,
					"KubeletHasSufficientPID"),
			},
		},
	}
	if node.controlPlane {
		object.Labels[controlPlaneRole] = ""
		object.Spec.Taints = []corev1.Taint{
			{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule},
		}
	}
	return object
}
