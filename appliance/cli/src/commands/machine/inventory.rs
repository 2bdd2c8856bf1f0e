//! `machine inventory`: the hardware of a machine as its agent last reported it.

use api::tinkerbell::HARDWARE;
use printers::inventory::{facts, table};
use serde_json::Value;

use super::super::{Context, name_of};
use crate::error::Error;
use crate::output::Format;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address of the machine
    #[arg(value_name = "NAME|ID|MAC|IP")]
    pub machine: String,
}

pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let object = context.find(HARDWARE, &arguments.machine).await?;
    let facts = facts(&object);
    if facts.values().all(Value::is_null) {
        let name = name_of(&object);
        let note =
            "its agent has not reported yet: it does so when the machine boots for a workflow";
        context.printer.note(&format!("{name}: {note}"));
        return Ok(());
    }
    match context.printer.format {
        Format::Table | Format::Wide => context.printer.table(table(&facts)),
        _ => context.printer.object(&Value::Object(facts)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{facts, table};

    #[test]
    fn a_machine_is_shown() {
        let attributes = json!({
            "product": { "name": "NUC11TNHi5", "vendor": "Intel", "serialNumber": "G6TN1" },
            "baseboard": { "product": "NUC11TNBi5", "serialNumber": "BTTN1" },
            "bios": { "version": "TNTGL357", "releaseDate": "01/02/2024" },
            "cpu": { "processors": [{ "id": 0, "model": "i5-1135G7", "cores": 4, "threads": 8 }] },
            "gpuDevices": [{ "vendor": "0x8086", "product": "0x9a49", "driver": "i915" }],
        });
        let neighbor = json!({ "system": "rack7-switch", "port": "ge-0/0/7" });
        let health = json!({ "warning": "it can only be read", "usedPercent": 12, "celsius": 42 });
        let inventory = json!({
            "uuid": "4c4c4544-0042-3510-8051-b2c04f4e3032",
            "memory": [{
                "slot": "DIMM 0", "bytes": 8_u64 << 30, "kind": "DDR4", "speed": 3200,
                "vendor": "Crucial", "serial": "E1A2B3C4",
            }],
            "disks": [{
                "name": "nvme0n1", "bytes": 500_u64 << 30, "model": "Samsung SSD 970",
                "transport": "nvme", "serial": "S4EV1", "health": health,
            }],
            "interfaces": [{
                "name": "eth0", "mac": "52:54:00:77:00:01", "driver": "igc", "speed": 2500,
                "carrier": true, "neighbour": neighbor,
            }],
            "tpm": { "version": "2.0", "endorsement": "9f86d081884c7d659a2feaa0c55ad015" },
            "managementEngine": true,
            "efi": { "entries": [{ "id": "000A", "description": "debian", "active": true }] },
        });
        let object = json!({ "metadata": { "annotations": {
            "tinkerbell.org/agent-attributes": attributes.to_string(),
            "tinbox.dev/inventory": inventory.to_string(),
        } } });
        let shown = table(&facts(&object)).render(false);
        golden::check("machine-inventory.txt", &shown);
    }

    #[test]
    fn a_stock_agent_tells_less() {
        let attributes = json!({
            "blockDevices": [{ "name": "sda", "size": "500GB", "serialNumber": "S1" }],
            "networkInterfaces": [{ "name": "eth0", "mac": "52:54:00:77:00:01", "speed": "1Gb/s" }],
        });
        let key = "tinkerbell.org/agent-attributes";
        let object = json!({ "metadata": { "annotations": { key: attributes.to_string() } } });
        let shown = table(&facts(&object)).render(false);
        assert!(shown.contains("sda") && shown.contains("1Gb/s"), "{shown}");
        assert!(facts(&json!({})).values().all(serde_json::Value::is_null));
    }
}
