//! Template and Workflow objects of an installation, with CAPT's names and labels.

use api::meta::ObjectKey;
use api::tinkerbell::{BootMode, BootOptions, Hardware, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};

use super::InstallError;

/// Label with the name of the TinkerbellMachine.
pub const MACHINE_NAME: &str = "capt.tinkerbell.org/machine-name";
/// Label with the namespace of the TinkerbellMachine.
pub const MACHINE_NAMESPACE: &str = "capt.tinkerbell.org/machine-namespace";
/// Label with the name of the management cluster that has the TinkerbellMachine.
pub const MANAGEMENT_CLUSTER: &str = "tinbox.dev/management-cluster";
/// Variable of the Template with the agent ID of the machine, as in CAPT.
pub const DEVICE: &str = "device_1";

/// Maximum length of a label's value in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Machine and settings of one attempt to install.
#[derive(Debug, Clone, Copy)]
pub struct InstallAttempt<'a> {
    /// Key of the TinkerbellMachine.
    pub machine: &'a ObjectKey,
    /// Name of the management cluster; `None` if the box itself has the TinkerbellMachine.
    pub management_cluster: Option<&'a str>,
    /// Number of the attempt; 0 and 1 mean the first.
    pub number: u32,
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

/// Returns name and namespace of the Template and the Workflow of an attempt: CAPT's name for the
/// first attempt, `MACHINE-attempt-NUMBER` for later attempts.
pub fn key(attempt: &InstallAttempt<'_>) -> ObjectKey {
    let name = &attempt.machine.name;
    let name = match attempt.number {
        0 | 1 => name.clone(),
        number => format!("{name}-attempt-{number}"),
    };
    ObjectKey::new(&attempt.hardware.metadata.namespace, name)
}

/// Returns the Template with the text `data` and its Workflow, both in the namespace of the
/// Hardware.
///
/// # Errors
/// A name is not a valid label, the Hardware has no agent ID, or the ISO URL is missing.
pub fn objects(attempt: &InstallAttempt<'_>, data: &str) -> Result<InstallObjects, InstallError> {
    let metadata = metadata(attempt)?;
    let hardware = attempt.hardware;
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
            "bootOptions": boot_options(attempt)?,
        },
    });
    Ok(InstallObjects { template, workflow })
}

fn metadata(attempt: &InstallAttempt<'_>) -> Result<Value, InstallError> {
    let ObjectKey { namespace, name } = key(attempt);
    let mut labels = json!({});
    let values = [
        (MACHINE_NAME, "TinkerbellMachine", Some(attempt.machine.name.as_str())),
        (MACHINE_NAMESPACE, "namespace", Some(attempt.machine.namespace.as_str())),
        (MANAGEMENT_CLUSTER, "management cluster", attempt.management_cluster),
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
fn boot_options(attempt: &InstallAttempt<'_>) -> Result<Value, InstallError> {
    let mut options = json!({ "toggleAllowNetboot": true });
    let (Some(mode), Some(_)) = (attempt.boot.boot_mode, &attempt.hardware.spec.bmc_ref) else {
        return Ok(options);
    };
    options["bootMode"] = json!(mode);
    match mode {
        BootMode::Netboot => {}
        BootMode::Isoboot => {
            options["isoURL"] = iso_url(&attempt.boot.iso_url, attempt.hardware)?.into();
        }
        BootMode::Customboot => options["custombootConfig"] = json!(attempt.boot.custom),
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
