//! Compiled-in custom kinds: their manifests, and checks by Rust types beyond the schemas.

use std::sync::Arc;

use api::bmc::{JobSpec, MachineSpec, TaskSpec};
use api::infrastructure::TinkerbellMachineTemplateSpec;
use api::management_cluster::ManagementClusterSpec;
use api::network::NetworkSpec;
use api::os_image::OsImageSpec;
use api::tinkerbell::{HardwareSpec, RuleSetSpec, TemplateSpec, WorkflowSpec};
use schema::{FieldError, Schema, superset};
use serde_json::Value;

use super::{advice, rules, typed::validated};
use crate::definition::{ResourceDefinition, StoredForm, UniqueValues, Validate, crd};

/// Manifests in the order of discovery. kubectl uses the first of two kinds with the same plural,
/// so `machines` means `machines.cluster.x-k8s.io`.
const MANIFESTS: [&str; 18] = [
    include_str!("manifests/clusters.json"),
    include_str!("manifests/machines.cluster.json"),
    include_str!("manifests/kubeadmconfigs.json"),
    api::infrastructure::CLUSTERS,
    api::infrastructure::CLUSTER_TEMPLATES,
    api::infrastructure::MACHINES,
    api::infrastructure::MACHINE_TEMPLATES,
    include_str!("manifests/hardware.json"),
    include_str!("manifests/templates.json"),
    include_str!("manifests/workflows.json"),
    include_str!("manifests/workflowrulesets.json"),
    include_str!("manifests/machines.bmc.json"),
    include_str!("manifests/jobs.bmc.json"),
    include_str!("manifests/tasks.bmc.json"),
    include_str!("manifests/networks.json"),
    api::os_image::OS_IMAGES,
    api::management_cluster::MANAGEMENT_CLUSTERS,
    api::network::control_plane_endpoint::CONTROL_PLANE_ENDPOINTS,
];

/// Parses every compiled-in CustomResourceDefinition.
pub(super) fn manifests() -> Vec<Value> {
    let read = |text: &&str| serde_json::from_str(text).expect("a test reads every manifest");
    MANIFESTS.iter().map(read).collect()
}

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    let mut all = Vec::new();
    for mut manifest in manifests() {
        crd::complete(&mut manifest);
        let read = crd::definitions(&manifest).expect("a test reads every manifest");
        let form = lossless_form(&read);
        all.extend(read.into_iter().map(|definition| ResourceDefinition {
            validate: readable(&definition),
            unique: unique(&definition),
            stored_form: form.clone(),
            advise: advice::of(&definition),
            ..definition
        }));
    }
    all
}

/// Returns the unique-value function of Hardware (MAC and IP addresses); `None` for other kinds.
fn unique(definition: &ResourceDefinition) -> Option<UniqueValues> {
    let is_hardware = definition.group == "tinkerbell.org" && definition.plural == "hardware";
    is_hardware.then(|| Arc::new(rules::hardware_values) as UniqueValues)
}

/// Returns the stored form of a compiled-in kind, whose schema has the fields of every version.
fn lossless_form(versions: &[ResourceDefinition]) -> Option<StoredForm> {
    let form = versions.first()?.stored_form.clone()?;
    let schemas = versions.iter().filter_map(|one| one.schema.as_ref());
    let source = |schema: &Arc<Schema>| superset(schema.source(), []);
    let own = source(form.schema());
    if schemas.clone().all(|schema| source(schema) == own) {
        return Some(form);
    }
    let wide = superset(form.schema().source(), schemas.map(|schema| schema.source()));
    let wide = Schema::parse(&wide).expect("a test reads every manifest");
    Some(StoredForm::new(Arc::new(wide), u64::MAX))
}

/// Returns a check that an object has the Rust type by which controllers read its kind. In a few
/// places, the schemas allow more than the types. `None` for other kinds.
fn readable(definition: &ResourceDefinition) -> Option<Validate> {
    Some(match (definition.group.as_str(), definition.plural.as_str()) {
        ("tinkerbell.org", "hardware") => validated::<HardwareSpec>(rules::nothing),
        ("tinkerbell.org", "templates") => validated::<TemplateSpec>(rules::nothing),
        ("tinkerbell.org", "workflows") => validated::<WorkflowSpec>(rules::workflow),
        ("tinkerbell.org", "workflowrulesets") => validated::<RuleSetSpec>(rules::rule_set),
        ("bmc.tinkerbell.org", "machines") => validated::<MachineSpec>(rules::nothing),
        ("bmc.tinkerbell.org", "jobs") => validated::<JobSpec>(rules::nothing),
        ("bmc.tinkerbell.org", "tasks") => validated::<TaskSpec>(rules::nothing),
        ("infrastructure.cluster.x-k8s.io", "tinkerbellmachinetemplates") => {
            let refused = |why| FieldError::forbidden("spec.template.spec", why);
            Arc::new(move |new, old| {
                TinkerbellMachineTemplateSpec::refused(new, old).map(refused).into_iter().collect()
            })
        }
        ("tinbox.dev", "osimages") => validated::<OsImageSpec>(rules::nothing),
        ("tinbox.dev", "networks") => validated::<NetworkSpec>(rules::network),
        ("tinbox.dev", "managementclusters") => validated::<ManagementClusterSpec>(rules::nothing),
        _ => return None,
    })
}
