//! Machines of the status view as a table.

use jiff::Timestamp;
use status::view::{Machine, StatusView};

use crate::table::{Cell, Table};

/// Columns that only the wide table has.
const DETAILS: &[&str] = &["MAC", "WORKFLOW", "MODEL"];

/// Returns the machines as a table: state, step, power, address, and the time since the last
/// request.
pub fn table(view: &StatusView) -> Table {
    let columns = ["NAME", "STATE", "STEP", "POWER", "ADDRESS", "SEEN", "MAC", "WORKFLOW", "MODEL"];
    let mut table = Table::new(&columns).with_details(DETAILS);
    for machine in &view.machines {
        table.row([
            machine.name.as_str().into(),
            Cell::toned(machine.status(), machine.tone()),
            machine.step.as_str().into(),
            machine.power.word().into(),
            machine.ip.as_str().into(),
            machine.last_seen.map(|at| since(at, view.now)).unwrap_or_default().into(),
            mac(machine).into(),
            machine.workflow.as_str().into(),
            machine.model.as_str().into(),
        ]);
    }
    table
}

fn mac(machine: &Machine) -> String {
    machine.mac.map(|mac| mac.to_string()).unwrap_or_default()
}

/// Returns the time since `then` in kubectl's format: `5s`, `12m`, `3h`, `4d`.
pub fn since(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use status::view::example;

    #[test]
    fn the_list_of_machines_fits_a_terminal_of_80_columns() {
        let table = super::table(&example::working());
        golden::check("machine-list-wide.txt", &table.render(false));
        let brief = table.brief().render(false);
        golden::check("machine-list.txt", &brief);
        assert!(brief.lines().all(|line| line.chars().count() <= 80), "{brief}");
    }
}
