//! Kinds that conformance test suites create, such as pods, served as plain objects without a
//! controller. Only tests serve these kinds.

use std::sync::Arc;

use schema::FieldError;
use serde_json::{Value, json};

use super::native;
use crate::definition::{ResourceDefinition, Scale};

/// Group, kind, plural and short names of namespaced kinds. One star marks a kind with a status;
/// two stars mark a kind with a status and a scale.
const NAMESPACED: [(&str, &str, &str, &[&str]); 22] = [
    ("", "Pod*", "pods", &["po"]),
    ("", "PodTemplate", "podtemplates", &[]),
    ("", "ReplicationController**", "replicationcontrollers", &["rc"]),
    ("", "Endpoints", "endpoints", &["ep"]),
    ("", "ResourceQuota*", "resourcequotas", &["quota"]),
    ("", "LimitRange", "limitranges", &["limits"]),
    ("", "PersistentVolumeClaim*", "persistentvolumeclaims", &["pvc"]),
    ("apps", "Deployment**", "deployments", &["deploy"]),
    ("apps", "ReplicaSet**", "replicasets", &["rs"]),
    ("apps", "StatefulSet**", "statefulsets", &["sts"]),
    ("apps", "DaemonSet*", "daemonsets", &["ds"]),
    ("apps", "ControllerRevision", "controllerrevisions", &[]),
    ("batch", "Job*", "jobs", &[]),
    ("batch", "CronJob*", "cronjobs", &["cj"]),
    ("policy", "PodDisruptionBudget*", "poddisruptionbudgets", &["pdb"]),
    ("networking.k8s.io", "Ingress*", "ingresses", &["ing"]),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies", &["netpol"]),
    ("autoscaling", "HorizontalPodAutoscaler*", "horizontalpodautoscalers", &["hpa"]),
    ("discovery.k8s.io", "EndpointSlice", "endpointslices", &[]),
    ("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", &[]),
    ("resource.k8s.io", "ResourceClaim*", "resourceclaims", &[]),
    ("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", &[]),
];

/// Group, kind, plural and short names of cluster-scoped kinds, with stars as in [`NAMESPACED`].
const GLOBAL: [(&str, &str, &str, &[&str]); 15] = [
    ("", "Node*", "nodes", &["no"]),
    ("", "PersistentVolume*", "persistentvolumes", &["pv"]),
    ("scheduling.k8s.io", "PriorityClass", "priorityclasses", &["pc"]),
    ("storage.k8s.io", "StorageClass", "storageclasses", &["sc"]),
    ("storage.k8s.io", "CSIDriver", "csidrivers", &[]),
    ("storage.k8s.io", "CSINode", "csinodes", &[]),
    ("storage.k8s.io", "VolumeAttachment*", "volumeattachments", &[]),
    ("networking.k8s.io", "IngressClass", "ingressclasses", &[]),
    ("certificates.k8s.io", "CertificateSigningRequest*", "certificatesigningrequests", &["csr"]),
    ("apiregistration.k8s.io", "APIService*", "apiservices", &[]),
    (ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", &[]),
    (ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", &[]),
    (ADMISSION, "ValidatingAdmissionPolicy*", "validatingadmissionpolicies", &[]),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema*", "flowschemas", &[]),
    ("node.k8s.io", "RuntimeClass", "runtimeclasses", &[]),
];

const ADMISSION: &str = "admissionregistration.k8s.io";

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    let placed = NAMESPACED.iter().map(|one| (one, true));
    let all = placed.chain(GLOBAL.iter().map(|one| (one, false))).map(inert);
    all.flat_map(|one| second_version(&one).into_iter().chain([one])).collect()
}

/// Returns version v2 of `autoscaling`, the only second version that test suites request.
fn second_version(one: &ResourceDefinition) -> Option<ResourceDefinition> {
    let version = "v2".to_owned();
    (one.group == "autoscaling").then(|| ResourceDefinition { version, ..one.clone() })
}

fn inert(
    ((group, kind, plural, short), namespaced): (&(&str, &str, &str, &[&str]), bool),
) -> ResourceDefinition {
    let scaled = kind.ends_with("**").then(|| Scale {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: None,
    });
    ResourceDefinition {
        namespaced,
        status_subresource: kind.ends_with('*'),
        tracks_generation: kind.ends_with('*'),
        scale: scaled,
        prepare: Some(Arc::new(if kind.ends_with('*') { told } else { stdx::json::drop_nulls })),
        validate: Some(Arc::new(containers)),
        ..native(group, kind.trim_end_matches('*'), plural, short)
    }
}

/// Removes nulls and adds a missing `status: {}`, which Go's encoder always writes.
fn told(object: &mut Value) {
    stdx::json::drop_nulls(object);
    if let Some(map) = object.as_object_mut() {
        map.entry("status").or_insert_with(|| json!({}));
    }
}

/// Requires containers in the pod specification, which each kind has at a different path.
fn containers(object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let (spec, at) = match object["kind"].as_str() {
        Some("Pod") => (&object["spec"], "spec"),
        Some("Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job") => {
            (&object["spec"]["template"]["spec"], "spec.template.spec")
        }
        _ => return Vec::new(),
    };
    match spec["containers"].as_array() {
        Some(containers) if !containers.is_empty() => Vec::new(),
        _ => vec![FieldError::required(format!("{at}.containers"), "")],
    }
}
