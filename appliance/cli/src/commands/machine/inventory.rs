//! `machine inventory`: the hardware of a machine as its agent last reported it.

use api::tinkerbell::{AGENT_ATTRIBUTES, HARDWARE};
use serde_json::{Value, json};
use status::plain;

use super::super::{Context, name_of};
use crate::error::Error;
use crate::output::{Format, Table};

/// Annotation of a Hardware with the facts for which Tinkerbell's attributes have no field.
const INVENTORY: &str = "tinbox.dev/inventory";

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address of the machine
    #[arg(value_name = "NAME|ID|MAC|IP")]
    machine: String,
}

pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let object = context.find(HARDWARE, &arguments.machine).await?;
    let annotations = annotations(&object);
    if annotations.values().all(Value::is_null) {
        let name = name_of(&object);
        let note =
            "its agent has not reported yet: it does so when the machine boots for a workflow";
        context.printer.note(&format!("{name}: {note}"));
        return Ok(());
    }
    match context.printer.format {
        Format::Table => context.printer.table(&table(&annotations)),
        _ => context.printer.object(&Value::Object(annotations)),
    }
}

/// Returns the annotations with the facts of the agent, in the formats of Tinkerbell and of Tinbox.
fn annotations(object: &Value) -> serde_json::Map<String, Value> {
    let annotation = |key: &str| -> Value {
        let text = object["metadata"]["annotations"][key].as_str();
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let mut annotations = serde_json::Map::new();
    annotations.insert("attributes".to_owned(), annotation(AGENT_ATTRIBUTES));
    annotations.insert("inventory".to_owned(), annotation(INVENTORY));
    annotations
}

/// Table of the facts of one machine.
struct Rows(Table);

impl Rows {
    fn add(&mut self, part: &str, name: &Value, size: String, what: &[String], serial: &Value) {
        let what: Vec<&str> = what.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
        self.0.row([
            part.into(),
            plain(&text(name)).into(),
            size.into(),
            plain(&what.join(", ")).into(),
            plain(&text(serial)).into(),
        ]);
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn table(annotations: &serde_json::Map<String, Value>) -> Table {
    let (attributes, inventory) = (&annotations["attributes"], &annotations["inventory"]);
    let mut rows = Rows(Table::new(&["PART", "NAME", "SIZE", "WHAT", "SERIAL"]));
    boards(&mut rows, attributes, inventory);
    for cpu in list(&attributes["cpu"]["processors"]) {
        let what = [text(&cpu["model"]), counted(&cpu["threads"], "threads")];
        rows.add("cpu", &cpu["id"], counted(&cpu["cores"], "cores"), &what, &Value::Null);
    }
    for module in list(&inventory["memory"]) {
        let [kind, vendor, part] = ["kind", "vendor", "part"].map(|key| text(&module[key]));
        let what = [kind, counted(&module["speed"], "MT/s"), vendor, part];
        rows.add("memory", &module["slot"], size(&module["bytes"]), &what, &module["serial"]);
    }
    disks(&mut rows, attributes, inventory);
    interfaces(&mut rows, attributes, inventory);
    for gpu in list(&attributes["gpuDevices"]) {
        let what = [format!("{}:{}", text(&gpu["vendor"]), text(&gpu["product"]))];
        rows.add("gpu", &gpu["driver"], String::new(), &what, &Value::Null);
    }
    if let Some(version) = inventory["tpm"]["version"].as_str() {
        // Enough of the sum to tell two machines apart.
        let endorsement = inventory["tpm"]["endorsement"].as_str();
        let serial = json!(endorsement.map(|sum| sum.get(..16).unwrap_or(sum)));
        rows.add("tpm", &json!(version), String::new(), &[], &serial);
    }
    if inventory["managementEngine"] == true {
        let what = ["Intel Management Engine answers".to_owned()];
        rows.add("amt", &Value::Null, String::new(), &what, &Value::Null);
    }
    for entry in list(&inventory["efi"]["entries"]) {
        let off = if entry["active"] == true { "" } else { "not active" };
        let what = [text(&entry["description"]), off.to_owned()];
        rows.add("boot", &entry["id"], String::new(), &what, &Value::Null);
    }
    rows.0
}

fn boards(rows: &mut Rows, attributes: &Value, inventory: &Value) {
    let product = &attributes["product"];
    let what = [text(&product["vendor"]), text(&inventory["uuid"])];
    rows.add("machine", &product["name"], String::new(), &what, &product["serialNumber"]);
    let board = &attributes["baseboard"];
    let what = [text(&board["vendor"]), text(&board["version"])];
    rows.add("board", &board["product"], String::new(), &what, &board["serialNumber"]);
    let chassis = &attributes["chassis"];
    let what = [text(&chassis["vendor"])];
    rows.add("chassis", &Value::Null, String::new(), &what, &chassis["serial"]);
    let bios = &attributes["bios"];
    let what = [text(&bios["vendor"]), text(&bios["releaseDate"])];
    rows.add("bios", &bios["version"], String::new(), &what, &Value::Null);
}

/// Adds the disks that a Tinbox agent reported, else those of a stock agent.
fn disks(rows: &mut Rows, attributes: &Value, inventory: &Value) {
    if list(&inventory["disks"]).is_empty() {
        for disk in list(&attributes["blockDevices"]) {
            let what = [text(&disk["model"]), text(&disk["driveType"]), text(&disk["wwn"])];
            rows.add("disk", &disk["name"], text(&disk["size"]), &what, &disk["serialNumber"]);
        }
    }
    for disk in list(&inventory["disks"]) {
        let platters = if disk["rotational"] == true { "rotating" } else { "" };
        let [model, transport, wwn] = ["model", "transport", "wwn"].map(|key| text(&disk[key]));
        let what = [model, transport, platters.to_owned(), wwn, health(&disk["health"])];
        rows.add("disk", &disk["name"], size(&disk["bytes"]), &what, &disk["serial"]);
    }
}

/// Returns the SMART health of a disk; empty if unknown.
fn health(health: &Value) -> String {
    if health.is_null() {
        return String::new();
    }
    let state = match health["warning"].as_str().unwrap_or_default() {
        "" => "healthy".to_owned(),
        warning => format!("warns: {warning}"),
    };
    let number = |key: &str| health[key].as_i64().unwrap_or(0);
    // ATA disks do not say how much of their life is used up; NVMe disks have spare blocks left.
    let [used, spare] = ["usedPercent", "sparePercent"].map(number);
    let used = if used + spare > 0 { format!(", {used} % used") } else { String::new() };
    let celsius = number("celsius");
    let celsius = if celsius != 0 { format!(", {celsius} °C") } else { String::new() };
    format!("{state}{used}{celsius}")
}

fn interfaces(rows: &mut Rows, attributes: &Value, inventory: &Value) {
    let interfaces = match list(&inventory["interfaces"]) {
        [] => list(&attributes["networkInterfaces"]),
        own => own,
    };
    for interface in interfaces {
        let speed = match &interface["speed"] {
            Value::String(text) => text.clone(),
            speed => counted(speed, "Mb/s"),
        };
        let has_link = interface["carrier"] == true || interface.get("driver").is_none();
        let link = if has_link { "" } else { "no link" };
        let neighbor = &interface["neighbour"];
        let [system, chassis, port] = ["system", "chassis", "port"].map(|key| text(&neighbor[key]));
        let switch = if system.is_empty() { chassis } else { system };
        let at = if switch.is_empty() { switch } else { format!("at {switch} {port}") };
        let what = [text(&interface["driver"]), link.to_owned(), at];
        rows.add("nic", &interface["name"], speed, &what, &interface["mac"]);
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn size(bytes: &Value) -> String {
    bytes.as_u64().filter(|bytes| *bytes > 0).map(stdx::bytes).unwrap_or_default()
}

/// Formats a count with its unit. The count 0 is unknown.
fn counted(number: &Value, unit: &str) -> String {
    match number.as_u64().unwrap_or(0) {
        0 => String::new(),
        1 if !unit.contains('/') => format!("1 {}", unit.trim_end_matches('s')),
        number => format!("{number} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{annotations, counted, table};

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
        let shown = table(&annotations(&object)).render(false);
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
        let shown = table(&annotations(&object)).render(false);
        assert!(shown.contains("sda") && shown.contains("1Gb/s"), "{shown}");
        let counts = [(0, "cores"), (1, "cores"), (4, "cores"), (1, "Mb/s")];
        let counts = counts.map(|(number, unit)| counted(&json!(number), unit));
        assert_eq!(counts, ["", "1 core", "4 cores", "1 Mb/s"]);
        assert!(annotations(&json!({})).values().all(serde_json::Value::is_null));
    }
}
