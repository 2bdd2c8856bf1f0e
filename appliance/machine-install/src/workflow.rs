//! Template and Workflow objects of an installation, with CAPT's names and labels.

use api::infrastructure::{CLUSTER_UID, MACHINE_NAME, MACHINE_NAMESPACE};
use api::meta::{ObjectKey, ObjectMeta};
use api::tinkerbell::{BootMode, BootOptions, Hardware, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};

use super::InstallError;

/// Annotation of a Hardware with the name of the Template and the Workflow of its machine, if an
/// object of another machine has the name of the machine.
pub const INSTALLATION_NAME: &str = "tinbox.dev/installation-name";
/// Variable of the Template with the agent ID of the machine, as in CAPT.
pub(crate) const DEVICE: &str = "device_1";

/// Maximum number of attempts to install a machine, including the first.
const ATTEMPTS_MAX: u32 = 3;
/// Wait in seconds before the second attempt; doubles with each attempt.
const BACKOFF_SECONDS: u32 = 30;
/// Maximum length of a label's value in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Machine and settings of an installation.
#[derive(Debug, Clone, Copy)]
pub struct InstallRequest<'a> {
    /// Key of the TinkerbellMachine.
    pub machine: &'a ObjectKey,
    /// Unique ID of the management cluster; `None` if the box itself has the TinkerbellMachine.
    pub cluster_uid: Option<&'a str>,
    /// Hardware of the machine.
    pub hardware: &'a Hardware,
    /// `bootOptions` of the TinkerbellMachine.
    pub boot: &'a BootOptions,
}

/// Objects to create, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct InstallObjects {
    /// Template with the data of the installation.
    pub template: Value,
    /// Workflow that runs the Template.
    pub workflow: Value,
}

/// Returns name and namespace of the Template and the Workflow: as in CAPT, unless the Hardware has
/// another name.
pub fn key(machine: &ObjectKey, hardware: &Hardware) -> ObjectKey {
    let recorded = hardware.metadata.annotations.get(INSTALLATION_NAME);
    ObjectKey::new(&hardware.metadata.namespace, recorded.unwrap_or(&machine.name))
}

/// Returns the name for the objects of a machine whose own name is not free: the start of the name,
/// and a hash of name, namespace and management cluster.
pub fn second_name(machine: &ObjectKey, cluster_uid: Option<&str>) -> String {
    // No part of the text contains a slash.
    let text = format!("{}/{machine}", cluster_uid.unwrap_or_default());
    // FNV-1a, 64 bits: a name, not a proof. The labels of an object tell its machine.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = format!("{hash:016x}");
    let start: String = machine.name.chars().take(LABEL_BYTES_MAX - 1 - hash.len()).collect();
    format!("{}-{hash}", start.trim_end_matches(['-', '.']))
}

/// Returns true for an object with the labels of `machine` in this management cluster.
pub fn is_of(metadata: &ObjectMeta, machine: &ObjectKey, cluster_uid: Option<&str>) -> bool {
    let label = |key: &str| metadata.labels.get(key).map(String::as_str);
    label(MACHINE_NAME) == Some(&machine.name)
        && label(MACHINE_NAMESPACE) == Some(&machine.namespace)
        && label(CLUSTER_UID) == cluster_uid
}

/// Returns the Template with the text `data` and its Workflow, both in the namespace of the
/// Hardware.
///
/// # Errors
/// A name is not a valid label, the Hardware has no agent ID, or the ISO URL is missing.
pub fn objects(request: &InstallRequest<'_>, data: &str) -> Result<InstallObjects, InstallError> {
    let metadata = metadata(request)?;
    let hardware = request.hardware;
    let agent_id = hardware.spec.agent_id().ok_or_else(|| InstallError::HardwareIncomplete {
        hardware: hardware.key(),
        field: "spec.interfaces[0].dhcp.mac",
    })?;
    let template = json!({
        "apiVersion": TEMPLATE.api_version(),
        "kind": TEMPLATE.kind,
        "metadata": metadata,
        "spec": { "data": data },
    });
    let workflow = json!({
        "apiVersion": WORKFLOW.api_version(),
        "kind": WORKFLOW.kind,
        "metadata": metadata,
        "spec": {
            "templateRef": metadata["name"],
            "hardwareRef": hardware.metadata.name,
            "hardwareMap": { DEVICE: agent_id },
            "bootOptions": boot_options(request)?,
            "retry": { "attempts": ATTEMPTS_MAX, "backoffSeconds": BACKOFF_SECONDS },
        },
    });
    Ok(InstallObjects { template, workflow })
}

/// Checks that the names of a machine are valid in labels.
///
/// # Errors
/// The first name that is not valid.
pub fn check_names(machine: &ObjectKey, cluster_uid: Option<&str>) -> Result<(), InstallError> {
    let names = [
        ("TinkerbellMachine", Some(machine.name.as_str())),
        ("namespace", Some(&machine.namespace)),
        ("management cluster", cluster_uid),
    ];
    let invalid = names.into_iter().find_map(|(what, name)| {
        let name = name.filter(|name| !is_label_value(name))?;
        Some(InstallError::NameInvalid { what, name: name.to_owned() })
    });
    invalid.map_or(Ok(()), Err)
}

fn metadata(request: &InstallRequest<'_>) -> Result<Value, InstallError> {
    let ObjectKey { namespace, name } = key(request.machine, request.hardware);
    let mut labels = json!({});
    let values = [
        (MACHINE_NAME, "TinkerbellMachine", Some(request.machine.name.as_str())),
        (MACHINE_NAMESPACE, "namespace", Some(request.machine.namespace.as_str())),
        (CLUSTER_UID, "management cluster", request.cluster_uid),
    ];
    for (label, what, value) in values {
        let Some(value) = value else { continue };
        if !is_label_value(value) {
            return Err(InstallError::NameInvalid { what, name: value.to_owned() });
        }
        labels[label] = value.into();
    }
    Ok(json!({ "name": name, "namespace": namespace, "labels": labels }))
}

/// Returns true for a label's value that is not empty.
fn is_label_value(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.len() <= LABEL_BYTES_MAX
        && text.starts_with(ends)
        && text.ends_with(ends)
        && text.chars().all(|c| ends(c) || "-_.".contains(c))
}

/// Returns the boot options of the Workflow. The boot modes need a BMC, so they are omitted without
/// one, as in CAPT.
fn boot_options(request: &InstallRequest<'_>) -> Result<Value, InstallError> {
    let mut options = json!({ "toggleAllowNetboot": true });
    let (Some(mode), Some(_)) = (request.boot.boot_mode, &request.hardware.spec.bmc_ref) else {
        return Ok(options);
    };
    options["bootMode"] = json!(mode);
    match mode {
        BootMode::Netboot => {}
        BootMode::Isoboot => {
            options["isoURL"] = iso_url(&request.boot.iso_url, request.hardware)?.into();
        }
        BootMode::Customboot => options["custombootConfig"] = json!(request.boot.custom),
    }
    Ok(options)
}

/// Returns the ISO URL with the instance ID of the machine as the last folder, by which the server
/// of the ISO recognizes the machine. Colons of the ID become dashes.
fn iso_url(url: &str, hardware: &Hardware) -> Result<String, InstallError> {
    let path_end = url.find(['?', '#']).unwrap_or(url.len());
    let (path, rest) = url.split_at(path_end);
    let invalid = || InstallError::IsoUrl(path.to_owned());
    let after_scheme = path.find("://").ok_or_else(invalid)? + 3;
    let file = path.get(after_scheme..).and_then(|path| path.rfind('/')).ok_or_else(invalid)?;
    let (folder, file) = path.split_at(after_scheme + file);
    if file == "/" {
        return Err(invalid());
    }
    let instance = hardware.spec.metadata.as_ref().and_then(|it| it.instance.as_ref());
    // Without an instance ID, the box recognizes the machine by the UID of its Hardware.
    let id = match instance.map_or("", |instance| &instance.id) {
        "" => &hardware.metadata.uid,
        id => id,
    };
    Ok(format!("{folder}/{}{file}{rest}", id.replace(':', "-")))
}

#[cfg(test)]
mod tests;
