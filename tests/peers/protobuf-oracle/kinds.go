package main

import (
	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authenticationv1alpha1 "k8s.io/api/authentication/v1alpha1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// Returns the kinds that the box reads and writes in protobuf, by API version.
func kinds() *runtime.Scheme {
	all := runtime.NewScheme()
	add := func(version schema.GroupVersion, objects ...runtime.Object) {
		all.AddKnownTypes(version, objects...)
	}
	add(core.SchemeGroupVersion,
		&core.Namespace{}, &core.Secret{}, &core.ConfigMap{}, &core.Event{},
		&core.ServiceAccount{}, &core.Service{}, &core.Endpoints{}, &core.Pod{}, &core.Node{},
		&core.PodTemplate{}, &core.ResourceQuota{}, &core.LimitRange{}, &core.Binding{},
		&core.PersistentVolume{}, &core.PersistentVolumeClaim{}, &core.ReplicationController{})
	add(schema.GroupVersion{Version: "v1"}, &meta.DeleteOptions{}, &meta.Status{})
	add(events.SchemeGroupVersion, &events.Event{})
	add(coordination.SchemeGroupVersion, &coordination.Lease{})
	add(authorization.SchemeGroupVersion,
		&authorization.SelfSubjectAccessReview{}, &authorization.SelfSubjectRulesReview{},
		&authorization.SubjectAccessReview{}, &authorization.LocalSubjectAccessReview{})
	add(authentication.SchemeGroupVersion,
		&authentication.SelfSubjectReview{}, &authentication.TokenReview{},
		&authentication.TokenRequest{})
	add(authenticationv1beta1.SchemeGroupVersion, &authenticationv1beta1.SelfSubjectReview{})
	add(authenticationv1alpha1.SchemeGroupVersion, &authenticationv1alpha1.SelfSubjectReview{})
	add(rbac.SchemeGroupVersion,
		&rbac.Role{}, &rbac.RoleBinding{}, &rbac.ClusterRole{}, &rbac.ClusterRoleBinding{})
	add(apiextensions.SchemeGroupVersion, &apiextensions.CustomResourceDefinition{})
	add(admissionregistration.SchemeGroupVersion,
		&admissionregistration.MutatingWebhookConfiguration{},
		&admissionregistration.ValidatingWebhookConfiguration{},
		&admissionregistration.ValidatingAdmissionPolicy{},
		&admissionregistration.ValidatingAdmissionPolicyBinding{})
	add(apps.SchemeGroupVersion,
		&apps.Deployment{}, &apps.ReplicaSet{}, &apps.StatefulSet{}, &apps.DaemonSet{},
		&apps.ControllerRevision{})
	add(autoscaling.SchemeGroupVersion, &autoscaling.Scale{}, &autoscaling.HorizontalPodAutoscaler{})
	add(batch.SchemeGroupVersion, &batch.Job{}, &batch.CronJob{})
	add(policy.SchemeGroupVersion, &policy.PodDisruptionBudget{}, &policy.Eviction{})
	add(networking.SchemeGroupVersion,
		&networking.Ingress{}, &networking.IngressClass{}, &networking.NetworkPolicy{})
	add(certificates.SchemeGroupVersion, &certificates.CertificateSigningRequest{})
	add(flowcontrol.SchemeGroupVersion,
		&flowcontrol.FlowSchema{}, &flowcontrol.PriorityLevelConfiguration{})
	add(apiregistration.SchemeGroupVersion, &apiregistration.APIService{})
	add(scheduling.SchemeGroupVersion, &scheduling.PriorityClass{})
	add(discovery.SchemeGroupVersion, &discovery.EndpointSlice{})
	return all
}
