mod fleet;

use api::bmc::MachineStatus;
use bmc::Power;
use jiff::Timestamp;

use super::{Reading, decide};

fn reading(power: Result<Power, &str>) -> Reading {
    Reading { power: power.map_err(str::to_owned), capabilities: vec!["on".to_owned()] }
}

#[test]
fn writes_only_news() {
    let now = Timestamp::UNIX_EPOCH;
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
}
