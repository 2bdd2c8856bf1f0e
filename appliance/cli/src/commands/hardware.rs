//! `hardware`: the machines that the box knows.

use api::tinkerbell::{HARDWARE, Hardware};
use jiff::Timestamp;
use serde_json::Value;

use super::{Context, name_of};
use crate::error::Error;
use crate::manifest::{self, push};
use crate::output::{Cell, Table, age, text};
use crate::question::confirm::Confirm;

/// Manage the machines that the box knows
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Create or update all objects in a file, such as Hardware, Workflow and Secret
    ///
    /// Accepted kinds: Hardware, Template, Workflow, BMC Machine, Job and Task, Secret, Namespace.
    /// A Workflow or Job starts work. Objects without a change are not written. Objects that the
    /// file does not contain stay on the box. Accepted formats: YAML with one or more documents,
    /// JSON, and the hardware JSON of older Tinkerbell.
    /// Example: `tinbox hardware push --file hardware.yaml`
    #[command(verbatim_doc_comment)]
    Push {
        /// File to read; "-" is standard input
        #[arg(short, long, value_name = "FILE")]
        file: String,
    },
    /// List machines. Example: `tinbox hardware list`
    #[command(alias = "ls")]
    List,
    /// Show one machine. Example: `tinbox hardware get 52:54:00:77:00:01`
    #[command(aliases = ["id", "mac", "ip"])]
    Get {
        /// Name, id, MAC or IP address of the machine
        #[arg(value_name = "NAME|ID|MAC|IP")]
        machine: String,
    },
    /// Retired: `tinbox status --watch` shows changes
    #[command(hide = true)]
    Watch,
    /// Delete the records of machines from the box; does not power off or wipe the machines.
    /// Example: `tinbox hardware delete nuc1`
    #[command(alias = "rm")]
    Delete {
        /// Names, ids, MAC or IP addresses of the machines
        #[arg(required = true, value_name = "NAME|ID|MAC|IP")]
        machines: Vec<String>,
        #[command(flatten)]
        confirm: Confirm,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Push { file } => push_file(context, &file).await,
        Command::List => {
            let items = context.list(HARDWARE).await?;
            context.printer.objects(items, table)
        }
        Command::Watch => Err(Error::Retired("tinbox status --watch")),
        Command::Get { machine } => context.show(HARDWARE, &machine).await,
        Command::Delete { machines, confirm } => {
            context.delete(HARDWARE, &machines, confirm, effect).await
        }
    }
}

/// Describes the deletion of a machine's record.
fn effect(object: &Value) -> String {
    let name = name_of(object);
    format!("{name}: the box forgets the machine; its disks and its power do not change")
}

async fn push_file(context: &Context, file: &str) -> Result<(), Error> {
    let text = manifest::read(file)?;
    let manifests = manifest::parse(file, &text)?;
    for (done, manifest) in manifests.iter().enumerate() {
        let (object, pushed) = match push(&context.client, manifest, &context.namespace).await {
            Ok(pushed) => pushed,
            Err(error) if done == 0 => return Err(error),
            Err(source) => {
                let (all, source) = (manifests.len(), Box::new(source));
                return Err(Error::Partly { done, all, source });
            }
        };
        context.printer.done(&object, pushed.word())?;
    }
    Ok(())
}

fn table(items: &[Value], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "MAC", "ADDRESS", "NETBOOT", "BMC", "AGE", "AGENT", "ID"])
        .with_details(&["AGENT", "ID"]);
    for item in items {
        let spec = serde_json::from_value::<Hardware>(item.clone()).unwrap_or_default().spec;
        let mac = spec.macs().next().map(|mac| mac.to_string()).unwrap_or_default();
        let address = spec.addresses().next().map(|it| it.to_string()).unwrap_or_default();
        let bmc = spec.bmc_ref.as_ref().map(|it| it.name.clone()).unwrap_or_default();
        table.row([
            Cell::from(name_of(item)),
            mac.into(),
            address.into(),
            if spec.may_netboot() { "yes" } else { "no" }.into(),
            dash(bmc).into(),
            age(item, now).into(),
            dash(spec.agent_id().unwrap_or_default()).into(),
            text(item, "/metadata/uid").into(),
        ]);
    }
    table
}

fn dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { status::plain(&text) }
}

#[cfg(test)]
mod tests {
    use super::table;
    use serde_json::json;

    #[test]
    fn the_list() {
        let items = [
            json!({
                "metadata": {
                    "name": "nuc1",
                    "uid": "3f0c",
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": {
                    "bmcRef": { "kind": "Machine", "name": "bmc-nuc1" },
                    "interfaces": [{
                        "netboot": { "allowPXE": true },
                        "dhcp": { "mac": "52:54:00:77:00:01", "ip": { "address": "10.77.0.11" } },
                    }],
                },
            }),
            json!({ "metadata": { "name": "bare", "uid": "9a11" }, "spec": { "agentID": "x" } }),
        ];
        let now = "2026-01-01T00:05:00Z".parse().unwrap();
        golden::check("hardware-list.txt", &table(&items, now).render(false));
    }
}
