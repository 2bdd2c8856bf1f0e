//! State of the box itself.

use status::plain;
use status::view::moment::{bytes, uptime};
use status::view::{BackupTarget, StatusView, System, Update};

use super::{Facts, Part, clock, log_lines, part, rendered, share};
use crate::rights::{Permission, Visitor};

/// Maximum number of log lines on the page.
const LINES_MAX: usize = 50;

/// Renders the state of the box, and its log if the visitor may read it.
pub fn the_box(view: &StatusView, who: &Visitor) -> Vec<Part> {
    let mut parts = vec![part("box", "", about(view))];
    if who.may(Permission::SeeLog) {
        let newest = &view.log[view.log.len().saturating_sub(LINES_MAX)..];
        parts.push(part("log", "Log", log_lines(view, newest)));
    }
    parts
}

fn figures(system: &System) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(system.cpu_percent.map(|percent| ("Work", format!("{percent} %"))));
    if system.ram_total > 0 {
        facts.push(("Memory", share(system.ram_used, system.ram_total)));
    }
    if system.disk_total > 0 {
        facts.push(("Disk used", share(system.disk_used, system.disk_total)));
    }
    facts.extend(system.temperature.map(|degrees| ("Temperature", format!("{degrees} °C"))));
    let worn = system.flash_life_percent;
    facts.extend(worn.map(|percent| ("Flash memory", format!("{percent} % of its life used"))));
    facts
}

fn about_update(update: &Update) -> String {
    let percent = update.percent.map(|percent| format!(", {percent} %")).unwrap_or_default();
    let text = format!("{} {}{percent}", update.version, update.state.words());
    match update.reason.as_str() {
        "" => text,
        reason => format!("{text}: {}", plain(reason)),
    }
}

fn about_target(view: &StatusView, target: &BackupTarget) -> String {
    let last = target
        .at
        .map_or("none yet".to_owned(), |at| format!("{}, {}", view.ago(at), bytes(target.bytes)));
    match target.failed_since {
        Some(since) => {
            format!("{}: {last}; fails for {}: {}", target.host, view.since(since), target.failure)
        }
        None => format!("{}: {last}", target.host),
    }
}

fn about(view: &StatusView) -> String {
    let system = &view.system;
    let mut facts = vec![("Version", view.version.to_string())];
    for slot in &system.slots {
        let how = if slot.running { "running" } else { "not running" };
        facts.push(("Slot", format!("{} {} {how}", slot.name, slot.version)));
    }
    facts.push(("Time", clock(view)));
    facts.push(("Up", uptime(view.uptime_seconds)));
    facts.extend(figures(system));
    facts.extend(system.backup_at.map(|at| ("Backup", view.ago(at))));
    let target = system.backup_target.as_ref();
    facts.extend(target.map(|target| ("Backup on another server", about_target(view, target))));
    facts.extend(view.update.as_ref().map(|update| ("Update", about_update(update))));
    let mut trust = vec![("Pin", view.pin.to_string())];
    trust.push(("SHA-256", system.certificate_sha256.to_string()));
    trust.push(("Confinement", system.confinement.to_string()));
    trust.push(("Accounts", system.accounts.to_string()));
    trust.push(("Secret keys", system.keys.to_string()));
    trust.retain(|(_, value)| !value.is_empty());
    let about = rendered(&Facts { title: "System", facts });
    let trust = rendered(&Facts { title: "Trust", facts: trust });
    format!("{about}{trust}<p><a href=\"/ca.pem\">ca.pem</a></p>")
}
