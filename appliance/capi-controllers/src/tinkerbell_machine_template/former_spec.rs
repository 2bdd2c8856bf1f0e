//! Machines that have another spec than their template.
//!
//! A change of a template reaches only new machines. Cluster API replaces the others only after a
//! change of the name of their template. A record of former specs would be lost by `clusterctl
//! move` and by a restored backup, so the machines themselves are compared.

use api::infrastructure::cluster_api::{CLONED_FROM_KIND, CLONED_FROM_NAME};
use api::infrastructure::{
    TINKERBELL_MACHINE_TEMPLATE, TinkerbellMachine, TinkerbellMachineSpec,
    TinkerbellMachineTemplate,
};

use crate::conditions::{Finding, MACHINES_UP_TO_DATE};

/// Maximum number of machines that the condition names.
const NAMED_MACHINES_MAX: usize = 5;

/// Returns the state of the condition [`MACHINES_UP_TO_DATE`]. It depends only on objects of the
/// management cluster, because all boxes must write the same condition.
pub fn finding(template: &TinkerbellMachineTemplate, machines: &[TinkerbellMachine]) -> Finding {
    let expected = comparable(&template.spec.template.spec);
    let differs =
        |it: &&TinkerbellMachine| is_copy(template, it) && comparable(&it.spec) != expected;
    let mut names: Vec<&str> =
        machines.iter().filter(differs).map(|it| it.metadata.name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() {
        let message = String::new();
        let kind = MACHINES_UP_TO_DATE;
        return Finding { kind, is_true: true, reason: kind, message };
    }
    let more = names.len().saturating_sub(NAMED_MACHINES_MAX);
    names.truncate(NAMED_MACHINES_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message = format!(
        "spec.template.spec differs from the spec of machines that were made from this template: \
         {}{more}; a change in place reaches only new machines: restore the former spec, make \
         another TinkerbellMachineTemplate with the new one, and name it in the infrastructureRef \
         of the MachineDeployment or of the control plane",
        names.join(", ")
    );
    Finding { kind: MACHINES_UP_TO_DATE, is_true: false, reason: "ChangedInPlace", message }
}

/// Returns true for a machine that Cluster API made from the template, and that is not deleted.
fn is_copy(template: &TinkerbellMachineTemplate, machine: &TinkerbellMachine) -> bool {
    let annotation = |key| machine.metadata.annotations.get(key).map(String::as_str);
    let kind =
        format!("{}.{}", TINKERBELL_MACHINE_TEMPLATE.kind, TINKERBELL_MACHINE_TEMPLATE.group);
    machine.metadata.namespace == template.metadata.namespace
        && machine.metadata.deletion_timestamp.is_none()
        && annotation(CLONED_FROM_NAME) == Some(&template.metadata.name)
        && annotation(CLONED_FROM_KIND) == Some(&kind)
}

/// Returns the spec without the fields that the box writes.
fn comparable(spec: &TinkerbellMachineSpec) -> TinkerbellMachineSpec {
    TinkerbellMachineSpec {
        hardware_name: String::new(),
        provider_id: String::new(),
        ..spec.clone()
    }
}
