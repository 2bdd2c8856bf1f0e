//! Order in which the services of the box install a machine: by the log of the BMC, the Workflow
//! and the history of the machine, whose times are of one clock.

use std::time::SystemTime;

use jiff::Timestamp;
use scenarios::{Action, BootDevice, Lab, Origin};
use serde_json::Value;

use super::{MACHINE, NUC, get};

/// Checks the order of the only installation of the Hardware `name`, whose machine was on before.
pub fn check(lab: &Lab, name: &str) {
    let nuc = lab.rack.nuc(NUC);
    let events = nuc.power_events();
    let of_bmc = |action: Action| {
        let mut found = events.iter().filter(|it| it.origin == Origin::Bmc && it.action == action);
        let first = found.next().unwrap_or_else(|| panic!("no {action:?}: {events:?}")).at;
        assert_eq!(found.next(), None, "{action:?} happens once: {events:?}");
        first
    };
    let off = of_bmc(Action::Off);
    let reports = nuc.power_reports();
    let reported = reports.iter().find(|(at, is_on)| *at > off && !is_on);
    let reported = reported.unwrap_or_else(|| panic!("the BMC reported no off: {reports:?}")).0;
    let (boot, on) = (of_bmc(Action::Boot(BootDevice::Network)), of_bmc(Action::On));
    let text = lab.tinbox(&["-o", "json", "machine", "history", name]).unwrap();
    let history: Vec<Value> = serde_json::from_str(&text).unwrap();
    // The machine has booted the agent before, to enroll.
    let after_on = |reason: &str| {
        let times = history.iter().filter(|it| it["reason"] == reason).map(|it| time(&it["at"]));
        let mut times = times.filter(|at| *at > on);
        times.next().unwrap_or_else(|| panic!("no {reason} after power-on: {history:#?}"))
    };
    let restarted = events.iter().rfind(|it| it.origin == Origin::Guest);
    let restarted = restarted.unwrap_or_else(|| panic!("no restart: {events:?}"));
    let system = nuc.serial().lines().into_iter().rfind(|line| line.text.contains("Cloud-init v."));
    let steps = [
        ("power off", off),
        ("power off confirmed", reported),
        ("boot device", boot),
        ("power on", on),
        ("boot loader fetched", after_on("FetchedLoader")),
        ("agent", after_on("AgentStarted")),
        ("first action", after_on("ActionStarted")),
        ("restart", restarted.at),
        ("user data", after_on("AskedMetadata")),
        ("installed system", system.unwrap().at),
    ];
    assert!(steps.is_sorted_by_key(|(_, at)| *at), "{steps:#?}");
    // The times of conditions have no fraction of a second.
    let permitted = condition_time(lab, "AllowNetbootTrue");
    assert!(permitted <= on, "network boot was permitted at {permitted:?}: {steps:#?}");
    assert!(condition_time(lab, "AllowNetbootFalse") >= permitted);
    assert_eq!(nuc.boot_override(), BootDevice::Normal, "the machine boots its disk");
}

fn condition_time(lab: &Lab, kind: &str) -> SystemTime {
    let workflow = get(lab, "workflows", MACHINE);
    let all = workflow["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|it| it["type"] == kind || it["reason"] == kind);
    time(&found.unwrap_or_else(|| panic!("no {kind}: {workflow:#}"))["time"])
}

fn time(value: &Value) -> SystemTime {
    let time: Timestamp = value.as_str().unwrap_or_default().parse().unwrap();
    time.into()
}
