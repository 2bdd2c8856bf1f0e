//! Erasure of all disks of a machine, by a Template of its own and a Workflow.

use std::collections::BTreeMap;

use api::infrastructure::OWNER_NAME;
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, WORKFLOW};
use objects::Objects;
use serde_json::{Value, json};

use crate::error::ActionError;
use crate::lookup::{change, create_once};

/// Name of the Template. Not the name in the library, because a person may have changed that one.
const ERASE: &str = "tinbox-erase-disks";
/// Name of the template in the library.
const ENTRY: &str = "wipe";
/// Variable of the template with the agent ID of the machine.
const DEVICE: &str = "device_1";

/// Writes the Template and the Workflow of an erasure. The Workflow is written last, so no disk is
/// erased after an error.
///
/// # Errors
/// The Hardware lists no disk or has no agent ID, Cluster API has the machine, or an object cannot
/// be written.
pub(super) async fn erase(
    objects: &dyn Objects,
    hardware: &Hardware,
    id: &str,
) -> Result<(), ActionError> {
    let metadata = &hardware.metadata;
    let machine = metadata.name.clone();
    if let Some(owner) = metadata.labels.get(OWNER_NAME) {
        return Err(ActionError::Owned { machine, owner: owner.clone() });
    }
    let unusable = |why: &str| ActionError::Template { name: ERASE.to_owned(), why: why.into() };
    if hardware.spec.disks.is_empty() {
        return Err(unusable("its Hardware lists no disk"));
    }
    let agent = hardware.spec.agent_id().ok_or_else(|| unusable("it has no MAC address"))?;
    let entry = template_library::entry(ENTRY).map_err(|error| unusable(&error.to_string()))?;
    let template = json!({
        "apiVersion": TEMPLATE.api_version(),
        "kind": TEMPLATE.kind,
        "metadata": { "name": ERASE, "namespace": metadata.namespace },
        "spec": { "data": entry.text },
    });
    create_once(objects, TEMPLATE, template).await?;
    let has_bmc = hardware.spec.bmc_ref.is_some();
    if !has_bmc && !hardware.spec.may_netboot() {
        let key = ObjectKey::new(&metadata.namespace, &machine);
        let edit = |object: &mut Value| {
            if let Some(first) = object.pointer_mut("/spec/interfaces/0") {
                first["netboot"]["allowPXE"] = true.into();
            }
        };
        change(objects, HARDWARE, &key, edit).await?;
    }
    let map: BTreeMap<String, String> = [(DEVICE.to_owned(), agent)].into();
    let mut workflow = json!({
        "apiVersion": WORKFLOW.api_version(),
        "kind": WORKFLOW.kind,
        "metadata": { "name": format!("{machine}-erase-{id}"), "namespace": metadata.namespace },
        "spec": { "templateRef": ERASE, "hardwareRef": machine, "hardwareMap": map },
    });
    if has_bmc {
        workflow["spec"]["bootOptions"] =
            json!({ "toggleAllowNetboot": true, "bootMode": "netboot" });
    }
    Ok(create_once(objects, WORKFLOW, workflow).await?)
}
