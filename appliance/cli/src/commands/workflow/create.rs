//! `workflow create`: runs a template on a machine, and boots the machine into the agent OS.

use std::collections::BTreeMap;
use std::time::Duration;

use api::tinkerbell::{TEMPLATE, WORKFLOW};
use box_client::Path;
use serde_json::{Value, json};

use super::super::{Context, name_of, with_id};
use super::{follow, variables};
use crate::duration::duration;
use crate::error::Error;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name or id of the template
    #[arg(short, long, value_name = "NAME|ID")]
    template: String,

    /// Machine, by name, id, MAC or IP address; or the template's variables as JSON:
    /// '{"device_1":"52:54:00:77:00:01"}'
    #[arg(short = 'r', long, value_name = "NAME|ID|MAC|IP|JSON")]
    hardware: String,

    /// Name of the workflow [default: the machine's name with a random suffix]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Boot the machine from the network through its BMC; fails without a BMC [default: boot if the
    /// machine has a BMC]
    #[arg(long, conflicts_with = "no_boot")]
    netboot: bool,

    /// Leave the machine's power and boot order unchanged
    #[arg(long)]
    no_boot: bool,

    /// Wait for the end of the workflow; the exit code is 0 if the workflow succeeded
    #[arg(short, long)]
    wait: bool,

    /// Stop waiting after this time, such as 90s, 5m or 1h. The workflow continues, and a restart
    /// of the box does not end the wait
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
}

/// Creates the workflow and, with --wait, follows the workflow to its end.
///
/// # Errors
/// The workflow cannot be created. With `--wait` also if the workflow fails.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let machines = variables::machines(context, &arguments.hardware).await?;
    let template = context.find(TEMPLATE, &arguments.template).await?;
    let boot = match (arguments.netboot, arguments.no_boot) {
        (true, _) => Boot::Yes,
        (_, true) => Boot::No,
        _ => Boot::WithBmc,
    };
    let planned = plan(&name_of(&template), &machines, arguments.name.as_deref(), boot)?;
    let path = Path::collection(WORKFLOW, &context.namespace);
    let made = context.client.create(&path, &planned.workflow).await?;
    let name = name_of(&made);
    // With --wait and an object asked for, the one object printed is that of the end.
    if !arguments.wait || context.printer.format.is_table() {
        context.printer.done(&made, &with_id(&made, "created"))?;
    }
    if let Some(note) = planned.note {
        context.printer.note(&note);
    }
    if !arguments.wait {
        return Ok(());
    }
    follow::until_end(context, &name, arguments.timeout, false).await
}

/// Method to boot the machine for the workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Boot {
    Yes,
    No,
    WithBmc,
}

struct WorkflowPlan {
    workflow: Value,
    /// Hint about steps that the user must do, such as a boot by hand; `None` if there are none.
    note: Option<String>,
}

/// Returns the Workflow to create. It boots the machine of `device_1`, else the first machine.
fn plan(
    template: &str,
    machines: &BTreeMap<String, Value>,
    name: Option<&str>,
    boot: Boot,
) -> Result<WorkflowPlan, Error> {
    let what = || format!("run template {template}");
    let map = variables::agents(&what(), machines)?;
    let object = variables::first(machines)?;
    let (machine, spec) = (name_of(object), variables::hardware(object).spec);
    let boots = match boot {
        Boot::No => false,
        Boot::WithBmc => spec.bmc_ref.is_some(),
        Boot::Yes if spec.bmc_ref.is_none() => {
            return Err(Error::Unable {
                what: what(),
                why: format!("hardware {machine} has no bmcRef, which --netboot needs"),
                hint: "add spec.bmcRef, or leave out --netboot and switch the machine on by hand",
            });
        }
        Boot::Yes => true,
    };
    let mut workflow = json!({
        "apiVersion": WORKFLOW.api_version(),
        "kind": WORKFLOW.kind,
        "metadata": {},
        "spec": { "templateRef": template, "hardwareRef": machine, "hardwareMap": map },
    });
    match name {
        Some(name) => workflow["metadata"]["name"] = json!(name),
        None => workflow["metadata"]["generateName"] = json!(format!("{machine}-")),
    }
    if boots {
        workflow["spec"]["bootOptions"] =
            json!({ "toggleAllowNetboot": true, "bootMode": "netboot" });
    }
    let note = match (boots, boot, spec.may_netboot()) {
        (true, ..) | (_, Boot::No, _) => None,
        (_, _, true) => Some(format!(
            "{machine} has no BMC here: switch it on and let it boot from the network"
        )),
        (_, _, false) => Some(format!(
            "{machine} has no BMC here and may not boot from the network: set \
             netboot.allowPXE on one of its interfaces, then switch it on"
        )),
    };
    Ok(WorkflowPlan { workflow, note })
}

#[cfg(test)]
mod tests {
    use super::{Boot, plan};
    use serde_json::{Value, json};

    fn machine(bmc: bool) -> Value {
        let mut object = json!({
            "metadata": { "name": "nuc1" },
            "spec": { "interfaces": [{ "dhcp": { "mac": "52:54:00:77:00:01" } }] },
        });
        if bmc {
            object["spec"]["bmcRef"] = json!({ "kind": "Machine", "name": "bmc-nuc1" });
        }
        object
    }

    fn spec(bmc: bool, boot: Boot) -> (Value, Option<String>) {
        let machines = [("device_1".to_owned(), machine(bmc))].into();
        let planned = plan("debian", &machines, None, boot).unwrap();
        assert_eq!(planned.workflow["metadata"]["generateName"], "nuc1-");
        (planned.workflow["spec"].clone(), planned.note)
    }

    #[test]
    fn a_machine_with_a_bmc_is_booted_unless_told_not_to() {
        let (booted, note) = spec(true, Boot::WithBmc);
        let want = json!({
            "templateRef": "debian",
            "hardwareRef": "nuc1",
            "hardwareMap": { "device_1": "52:54:00:77:00:01" },
            "bootOptions": { "toggleAllowNetboot": true, "bootMode": "netboot" },
        });
        assert_eq!((booted, note), (want, None));
        let (left, note) = spec(true, Boot::No);
        assert_eq!((left.get("bootOptions"), note), (None, None));
    }

    #[test]
    fn a_machine_without_one_is_left_to_its_owner() {
        let (left, note) = spec(false, Boot::WithBmc);
        assert_eq!(left.get("bootOptions"), None);
        assert!(note.unwrap().contains("allowPXE"));
        let machines = [("device_1".to_owned(), machine(false))].into();
        let error = plan("debian", &machines, None, Boot::Yes).err().unwrap().to_string();
        assert_eq!(
            error,
            "cannot run template debian: hardware nuc1 has no bmcRef, which --netboot needs"
        );
    }

    #[test]
    fn a_machine_no_agent_can_be_told_by_is_refused() {
        let machines = [("device_1".to_owned(), json!({ "metadata": { "name": "x" } }))].into();
        assert!(plan("debian", &machines, None, Boot::No).is_err());
    }
}
