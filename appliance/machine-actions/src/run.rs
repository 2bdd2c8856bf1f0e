//! Workflow that runs a Template on a machine.

use std::collections::BTreeMap;

use api::tinkerbell::{Hardware, WORKFLOW};
use serde_json::{Value, json};

/// Variable of a template with the agent ID of the machine.
const DEVICE: &str = "device_1";

/// Returns the variables of a template for the agent of a machine.
pub(crate) fn variables(agent: String) -> BTreeMap<String, String> {
    [(DEVICE.to_owned(), agent)].into()
}

/// Returns the Workflow `name`, which runs a Template on a machine. A machine with a BMC is booted
/// from the network.
pub(crate) fn workflow(
    name: &str,
    template: &str,
    hardware: &Hardware,
    variables: &BTreeMap<String, String>,
) -> Value {
    let metadata = &hardware.metadata;
    let mut workflow = json!({
        "apiVersion": WORKFLOW.api_version(),
        "kind": WORKFLOW.kind,
        "metadata": { "name": name, "namespace": metadata.namespace },
        "spec": {
            "templateRef": template,
            "hardwareRef": metadata.name,
            "hardwareMap": variables,
        },
    });
    if hardware.spec.bmc_ref.is_some() {
        workflow["spec"]["bootOptions"] =
            json!({ "toggleAllowNetboot": true, "bootMode": "netboot" });
    }
    workflow
}
