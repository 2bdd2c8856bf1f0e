//! Management controllers of machines as tables: those of a search, and what one reports.

use bmc_discovery::{Proposal, ProtocolKind};
use serde_json::Value;
use status::plain;

use crate::table::Table;

/// Formats the BMCs of a search, with the machine of each and the reason.
pub fn found(found: &[Proposal]) -> Table {
    let mut table = Table::new(&["ADDRESS", "PROTOCOLS", "MACHINE", "WHY"]);
    for Proposal { bmc, owner, accepted, .. } in found {
        let protocols: Vec<&str> = bmc.protocols.iter().map(|it| name(*it)).collect();
        let owner = owner.as_ref();
        let why = match (accepted.as_str(), owner) {
            ("", Some(owner)) => owner.reason.clone(),
            ("", None) => "unknown machine".to_owned(),
            (machine, _) => format!("in use as {machine}"),
        };
        table.row([
            bmc.address.to_string().into(),
            protocols.join(",").into(),
            plain(owner.map_or("", |owner| &owner.name)).into(),
            plain(&why).into(),
        ]);
    }
    table
}

fn name(protocol: ProtocolKind) -> &'static str {
    match protocol {
        ProtocolKind::AmtTls => "amt+tls",
        ProtocolKind::AmtPlain => "amt",
        ProtocolKind::Redfish => "redfish",
        ProtocolKind::Ipmi => "ipmi",
    }
}

/// Formats a reading of a BMC: its event log, sensors or inventory, as the API returns it.
pub fn readings(answer: &Value) -> Table {
    let text = |value: &Value| match value {
        Value::String(text) => plain(text),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let (headings, columns): (&[&str], &[&str]) = match answer.get(0) {
        Some(event) if event.get("message").is_some() => (&["TIME", "EVENT"], &["time", "message"]),
        Some(_) => (&["NAME", "VALUE", "UNIT", "STATE"], &["name", "value", "unit", "state"]),
        None => (&["PART", "VALUE"], &[]),
    };
    let mut table = Table::new(headings);
    for row in answer.as_array().into_iter().flatten() {
        table.row(columns.iter().map(|name| text(&row[*name]).into()));
    }
    for (part, value) in answer.as_object().into_iter().flatten() {
        let values: Vec<String> = match value {
            Value::Array(values) => values.iter().map(text).collect(),
            value => vec![text(value)],
        };
        table.row([part.as_str().into(), values.join(", ").into()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use bmc_discovery::{DiscoveredBmc, OwnerMatch, Proposal, ProtocolKind};

    use super::{found, readings};

    #[test]
    fn each_bmc_has_its_machine_and_the_reason() {
        let proposal = |last: u8, protocols: Vec<ProtocolKind>| Proposal {
            bmc: DiscoveredBmc {
                address: [10, 0, 0, last].into(),
                mac: String::new(),
                protocols,
                uuids: Vec::new(),
                description: String::new(),
            },
            owner: None,
            accepted: String::new(),
            manifest: String::new(),
        };
        let owner = OwnerMatch {
            namespace: "default".into(),
            name: "nuc1".into(),
            reason: "both have the UUID 33221100-5544-7766-8899-aabbccddeeff".into(),
            has_bmc: false,
        };
        let one = Proposal { owner: Some(owner), ..proposal(7, vec![ProtocolKind::AmtTls]) };
        let two = Proposal {
            accepted: "default/nuc2-bmc".into(),
            ..proposal(8, vec![ProtocolKind::Redfish, ProtocolKind::Ipmi])
        };
        let three = proposal(9, vec![ProtocolKind::Ipmi]);
        golden::check("bmc-discover.txt", &found(&[one, two, three]).render(false));
    }

    #[test]
    fn readings_have_the_columns_of_their_kind() {
        let time = "2026-11-20T10:00:00Z";
        let events = json!([
            { "id": "1", "time": null, "message": "Log area reset" },
            { "id": "2", "time": time, "message": "Button #0x40: \u{1b}[2J pressed" },
        ]);
        let sensors = json!([
            { "name": "CPU", "value": 82.5, "unit": "C", "state": "warning" },
            { "name": "12V", "value": null, "unit": "V", "state": "unknown" },
        ]);
        let inventory = json!({ "model": "NUC9", "macs": ["02:00:00:00:00:01"], "memoryBytes": 1 });
        let tables = [events, sensors, inventory].map(|it| readings(&it).render(false));
        golden::check("bmc-readings.txt", &tables.join("\n"));
    }
}
