//! Systems of a box and their update, for a terminal.

use status::plain;
use status::view::{Slot, Update};

use crate::table::Table;

/// Makes the table of the slots, in the given order.
pub fn table(slots: &[Slot]) -> Table {
    let mut table = Table::new(&["SLOT", "VERSION", "RUNS", "STATE"]);
    for slot in slots {
        let state = match (slot.version.is_empty(), slot.good) {
            (true, _) => "empty",
            (false, true) => "good",
            (false, false) => "on trial",
        };
        let runs = if slot.running { "yes" } else { "no" };
        let version = plain(&slot.version);
        table.row([plain(&slot.name).into(), version.into(), runs.into(), state.into()]);
    }
    table
}

/// Formats the update: `1.5.0: waiting for machines (install-nuc1)`.
pub fn line(update: &Update) -> String {
    let mut line = format!("{}: {}", plain(&update.version), update.state.words());
    if let Some(percent) = update.percent {
        line += &format!(" {percent} %");
    }
    let names: Vec<String> = update.waits_for.iter().map(|name| plain(name)).collect();
    let about = if names.is_empty() { plain(&update.reason) } else { names.join(", ") };
    if !about.is_empty() {
        line += &format!(" ({about})");
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use status::update::UpdateReport;

    #[test]
    fn the_report() {
        let report: UpdateReport = serde_json::from_value(json!({
            "version": "1.4.0",
            "slots": [
                { "name": "A", "version": "1.4.0", "good": true, "running": true },
                { "name": "B", "version": "1.5.0", "good": false, "running": false },
            ],
            "update": {
                "version": "1.5.0", "state": "waiting", "waitsFor": ["install-nuc1", "wipe-nuc2"],
            },
        }))
        .unwrap();
        let update = super::line(report.update.as_ref().unwrap());
        let shown = super::table(&report.slots).render(false) + &update + "\n";
        golden::check("update-status.txt", &shown);
    }
}
