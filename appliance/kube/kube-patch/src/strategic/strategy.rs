//! Merge strategies of the lists of Kubernetes' own kinds: the `patchStrategy` and `patchMergeKey`
//! tags of the types of `k8s.io/api` 0.35, as paths. Other lists are replaced as a whole.

/// Merge strategy of a patched list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// The patch's list replaces the old list.
    Replace,
    /// Objects with the same value of this key are merged.
    Merge(&'static str),
    /// New scalars are added to the list.
    Union,
}

/// Paths of lists in a pod specification, with their merge keys.
const POD_SPEC: [(&str, &str); 18] = [
    ("containers", "name"),
    ("containers.env", "name"),
    ("containers.ports", "containerPort"),
    ("containers.volumeDevices", "devicePath"),
    ("containers.volumeMounts", "mountPath"),
    ("ephemeralContainers", "name"),
    ("ephemeralContainers.env", "name"),
    ("ephemeralContainers.ports", "containerPort"),
    ("ephemeralContainers.volumeDevices", "devicePath"),
    ("ephemeralContainers.volumeMounts", "mountPath"),
    ("hostAliases", "ip"),
    ("imagePullSecrets", "name"),
    ("initContainers", "name"),
    ("resourceClaims", "name"),
    ("schedulingGates", "name"),
    ("tolerations", ""),
    ("topologySpreadConstraints", "topologyKey"),
    ("volumes", "name"),
];

/// Path prefix of init containers, whose lists have the same merge keys as those of containers.
const CONTAINER_LISTS: &str = "initContainers.";

/// Lists outside pod specifications: kind, path and merge key.
const KINDS: [(&str, &str, &str); 22] = [
    ("APIService", "status.conditions", "type"),
    ("CSINode", "spec.drivers", "name"),
    ("DaemonSet", "status.conditions", "type"),
    ("Deployment", "status.conditions", "type"),
    ("FlowSchema", "status.conditions", "type"),
    ("Job", "status.conditions", "type"),
    ("MutatingWebhookConfiguration", "webhooks", "name"),
    ("MutatingWebhookConfiguration", "webhooks.matchConditions", "name"),
    ("Namespace", "status.conditions", "type"),
    ("Node", "status.addresses", "type"),
    ("Node", "status.conditions", "type"),
    ("PersistentVolumeClaim", "status.conditions", "type"),
    ("Pod", "status.conditions", "type"),
    ("Pod", "status.hostIPs", "ip"),
    ("Pod", "status.podIPs", "ip"),
    ("PodDisruptionBudget", "status.conditions", "type"),
    ("PriorityLevelConfiguration", "status.conditions", "type"),
    ("ReplicaSet", "status.conditions", "type"),
    ("Service", "spec.ports", "port"),
    ("Service", "status.conditions", "type"),
    ("ServiceAccount", "secrets", "name"),
    ("ValidatingWebhookConfiguration", "webhooks", "name"),
];

/// Returns the merge strategy of the list at `path` (names joined by dots, no indexes) in `kind`.
pub(super) fn of_list(kind: &str, path: &str) -> Strategy {
    let inner = path.rsplit_once("metadata.").filter(|(before, _)| is_object(kind, before));
    if let Some((_, field)) = inner {
        return match field {
            "ownerReferences" => Strategy::Merge("uid"),
            "finalizers" => Strategy::Union,
            _ => Strategy::Replace,
        };
    }
    if (kind, path) == ("Node", "spec.podCIDRs") {
        return Strategy::Union;
    }
    let in_pod = pod_spec(kind).and_then(|spec| path.strip_prefix(spec));
    let found = match in_pod {
        Some(field) => {
            let of_container = field.strip_prefix(CONTAINER_LISTS);
            let field = of_container.map(|list| format!("containers.{list}"));
            let field = field.as_deref().unwrap_or(in_pod.unwrap_or_default());
            POD_SPEC.iter().find(|(name, _)| *name == field).map(|(_, key)| *key)
        }
        None => {
            let mut rows = KINDS.iter();
            rows.find(|(of, at, _)| *of == kind && *at == path).map(|(.., key)| *key)
        }
    };
    found.filter(|key| !key.is_empty()).map_or(Strategy::Replace, Strategy::Merge)
}

/// Returns true if a patch replaces the object at `path` in the kind `kind` as a whole.
pub(super) fn replaces_object(kind: &str, path: &str) -> bool {
    (kind, path) == ("PodDisruptionBudget", "spec.selector")
}

/// Returns true if the object at `before` has metadata: the root object or a pod template.
fn is_object(kind: &str, before: &str) -> bool {
    before.is_empty()
        || pod_spec(kind).is_some_and(|spec| spec.strip_suffix("spec.") == Some(before))
}

fn pod_spec(kind: &str) -> Option<&'static str> {
    match kind {
        "Pod" => Some("spec."),
        "PodTemplate" => Some("template.spec."),
        "CronJob" => Some("spec.jobTemplate.spec.template.spec."),
        "DaemonSet"
        | "Deployment"
        | "Job"
        | "ReplicaSet"
        | "ReplicationController"
        | "StatefulSet" => Some("spec.template.spec."),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Strategy, of_list};

    #[test]
    fn lists_have_their_strategies() {
        for (kind, path, expected) in [
            ("Secret", "metadata.finalizers", Strategy::Union),
            ("Secret", "metadata.ownerReferences", Strategy::Merge("uid")),
            ("Secret", "metadata.managedFields", Strategy::Replace),
            ("Deployment", "spec.template.metadata.finalizers", Strategy::Union),
            ("ConfigMap", "data.metadata.finalizers", Strategy::Replace),
            ("Pod", "spec.containers", Strategy::Merge("name")),
            ("Pod", "spec.initContainers.env", Strategy::Merge("name")),
            ("Pod", "spec.tolerations", Strategy::Replace),
            ("Deployment", "spec.template.spec.containers.ports", Strategy::Merge("containerPort")),
            ("Deployment", "spec.containers", Strategy::Replace),
            ("CronJob", "spec.jobTemplate.spec.template.spec.volumes", Strategy::Merge("name")),
            ("Service", "spec.ports", Strategy::Merge("port")),
            ("Role", "rules", Strategy::Replace),
            ("Namespace", "status.conditions", Strategy::Merge("type")),
            ("Namespace", "spec.finalizers", Strategy::Replace),
            ("Node", "spec.podCIDRs", Strategy::Union),
        ] {
            assert_eq!(of_list(kind, path), expected, "{kind} {path}");
        }
    }
}
