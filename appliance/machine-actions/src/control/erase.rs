//! Erasure of all disks of a machine, by a Template of its own and a Workflow.

use api::infrastructure::OWNER_NAME;
use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, WORKFLOW};
use objects::Objects;
use serde_json::{Value, json};

use crate::error::ActionError;
use crate::lookup::{change, create_once};
use crate::run;

/// Name of the Template. Not the name in the library, because a person may have changed that one.
const ERASE: &str = "tinbox-erase-disks";
/// Name of the template in the library.
const ENTRY: &str = "wipe";

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
    if hardware.spec.bmc_ref.is_none() && !hardware.spec.may_netboot() {
        let key = ObjectKey::new(&metadata.namespace, &machine);
        let edit = |object: &mut Value| {
            if let Some(first) = object.pointer_mut("/spec/interfaces/0") {
                first["netboot"]["allowPXE"] = true.into();
            }
        };
        change(objects, HARDWARE, &key, edit).await?;
    }
    let name = format!("{machine}-erase-{id}");
    let workflow = run::workflow(&name, ERASE, hardware, &run::variables(agent));
    Ok(create_once(objects, WORKFLOW, workflow).await?)
}
