//! Hardware of a machine as a table, from the facts that its agent reported.

use api::tinkerbell::AGENT_ATTRIBUTES;
use serde_json::{Map, Value, json};
use status::plain;

use crate::table::Table;

/// Annotation of a Hardware with the facts for which Tinkerbell's attributes have no field.
pub const INVENTORY: &str = "tinbox.dev/inventory";

/// Returns the facts in the annotations of a Hardware: `attributes`, in the format of Tinkerbell's
/// agents, and `inventory`, in that of Tinbox. Facts that no agent has reported are null.
pub fn facts(hardware: &Value) -> Map<String, Value> {
    let annotation = |key: &str| -> Value {
        let text = hardware["metadata"]["annotations"][key].as_str();
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let names = [("attributes", AGENT_ATTRIBUTES), ("inventory", INVENTORY)];
    names.into_iter().map(|(name, key)| (name.to_owned(), annotation(key))).collect()
}

/// Table of the facts of one machine.
struct Rows(Table);

impl Rows {
    fn add(&mut self, part: &str, name: &Value, size: String, what: &[String], serial: &Value) {
        let what: Vec<&str> = what.iter().map(|it| it.trim()).filter(|it| !it.is_empty()).collect();
        let is_empty = size.is_empty() && what.is_empty();
        if is_empty && text(name).is_empty() && text(serial).is_empty() {
            return;
        }
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

/// Formats the facts of a machine, as [`facts`] returns them.
pub fn table(facts: &Map<String, Value>) -> Table {
    let (attributes, inventory) = (&facts["attributes"], &facts["inventory"]);
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

    use super::counted;

    #[test]
    fn a_number_has_its_unit() {
        let counts = [(0, "cores"), (1, "cores"), (4, "cores"), (1, "Mb/s")];
        let counts = counts.map(|(number, unit)| counted(&json!(number), unit));
        assert_eq!(counts, ["", "1 core", "4 cores", "1 Mb/s"]);
    }
}
