mod fleet;

use std::collections::BTreeMap;
use std::time::Duration;

use api::bmc::MachineStatus;
use bmc::Power;
use jiff::Timestamp;

use super::{Reading, decide};
use crate::power::{MachineSightings, Sighting, Source};

fn reading(report: Result<Power, &str>, sightings: Vec<Sighting>) -> Reading {
    let seen = MachineSightings { sightings, ..MachineSightings::default() };
    let conclusion = seen.conclude(report.ok(), false);
    let error = report.err().map(str::to_owned);
    let (capabilities, missing) = (vec!["on".to_owned()], BTreeMap::new());
    Reading { conclusion, error, weakness: None, capabilities, missing }
}

#[test]
fn writes_only_news() {
    let (now, reading) = (Timestamp::UNIX_EPOCH, |report| reading(report, Vec::new()));
    let on = decide(&MachineStatus::default(), reading(Ok(Power::On)), now).unwrap();
    assert_eq!((on.power_state.as_deref(), on.capabilities.len()), (Some("on"), 1));
    assert_eq!(decide(&on, reading(Ok(Power::On)), now), None);
    let lost = decide(&on, reading(Err("no answer")), now).unwrap();
    assert_eq!(lost.power_state.as_deref(), Some("unknown"));
    assert_eq!(lost.conditions[0].status, "False");
    assert_eq!(decide(&lost, reading(Err("no answer")), now), None);
    assert!(decide(&lost, reading(Ok(Power::Off)), now).is_some());
    let other = Reading { capabilities: Vec::new(), ..reading(Ok(Power::On)) };
    assert!(decide(&on, other, now).is_some());
    let missing = BTreeMap::from([("httpBoot".to_owned(), "it is off".to_owned())]);
    let other = Reading { missing: missing.clone(), ..reading(Ok(Power::On)) };
    assert_eq!(decide(&on, other, now).unwrap().missing_capabilities, missing);
}

#[test]
fn the_condition_has_the_weakness_of_a_connection_that_works() {
    let message = |report| {
        let weak = Reading { weakness: Some("weak"), ..reading(report, Vec::new()) };
        let status = decide(&MachineStatus::default(), weak, Timestamp::UNIX_EPOCH).unwrap();
        format!("{}: {}", status.conditions[0].status, status.conditions[0].message)
    };
    assert_eq!(message(Ok(Power::On)), "True: weak");
    assert_eq!(message(Err("no answer")), "False: no answer");
}

#[test]
fn requests_of_the_machine_change_the_report_of_its_bmc() {
    let now = Timestamp::UNIX_EPOCH;
    let agent =
        |seconds| vec![Sighting { source: Source::Agent, age: Duration::from_secs(seconds) }];
    let status = |report, sightings| {
        decide(&MachineStatus::default(), reading(report, sightings), now).unwrap()
    };
    let torn = status(Ok(Power::Off), agent(10));
    assert_eq!(torn.power_state.as_deref(), Some("unknown"));
    assert!(torn.power_reason.starts_with("its BMC reports off, but its agent"), "{torn:?}");
    let silent_bmc = status(Err("no answer"), agent(3));
    assert_eq!(silent_bmc.power_state.as_deref(), Some("on"));
    assert_eq!(silent_bmc.conditions[0].status, "False");
    assert_eq!(decide(&torn, reading(Ok(Power::Off), agent(11)), now), None, "only older");
}
