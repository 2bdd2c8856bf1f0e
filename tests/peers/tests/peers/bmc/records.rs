//! Sensors, event log and LED against OpenIPMI's `ipmi_sim`, compared with `ipmitool`.

use std::time::Duration;

use bmc::{CipherSuite, Driver, Feature, SensorState, registry};
use peers::{IpmiSim, Ipmitool};

use super::clock;

/// 2026-11-20T10:00:00Z in seconds since 1970, and the same as bytes for Set SEL Time.
const TIME: i64 = 1_795_168_800;
const SET_TIME: &str = "raw 0x0a 0x49 0x20 0x1a 0x00 0x6b";

fn start() -> (IpmiSim, Box<dyn Driver>, Ipmitool) {
    let sim = IpmiSim::start().unwrap();
    let endpoint = sim.endpoint(Some(CipherSuite::Three));
    let tool = Ipmitool::new(&endpoint, CipherSuite::Three).unwrap();
    (sim, registry::open(endpoint), tool)
}

/// Name, value and state of each sensor as `ipmitool sdr list` prints them.
fn listed(tool: &Ipmitool) -> Vec<(String, Option<f64>, SensorState)> {
    let said = tool.run("sdr list").unwrap();
    let rows = said.lines().map(|line| {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, value, state] = fields[..] else { panic!("{line}") };
        let value = value.split(' ').next().and_then(|number| number.parse().ok());
        let state = match state {
            "ok" => SensorState::Ok,
            "nc" => SensorState::Warning,
            "cr" | "nr" => SensorState::Critical,
            "ns" => SensorState::Unknown,
            other => panic!("state {other:?}"),
        };
        (name.to_owned(), value, state)
    });
    rows.collect()
}

#[tokio::test(start_paused = true)]
async fn sensors_are_those_of_ipmitool() {
    let _stopped = clock::stop();
    let (_sim, ours, theirs) = start();
    let read = async || {
        let sensors = ours.sensors().await.unwrap();
        sensors.into_iter().map(|it| (it.name, it.value, it.state, it.unit)).collect::<Vec<_>>()
    };
    let sensors = read().await;
    let expected = [
        ("CPU_Temp".to_owned(), Some(82.0), SensorState::Warning, "C".to_owned()),
        ("Fan1".to_owned(), Some(4500.0), SensorState::Ok, "RPM".to_owned()),
        ("12V".to_owned(), None, SensorState::Unknown, "V".to_owned()),
    ];
    assert_eq!(sensors, expected);
    let same =
        |(name, value, state, _): (String, Option<f64>, SensorState, String)| (name, value, state);
    assert_eq!(sensors.into_iter().map(same).collect::<Vec<_>>(), listed(&theirs));

    // Now the records are those of the first reading, and the states are new.
    for (thresholds, state) in [("85 90 96", SensorState::Ok), ("70 80 96", SensorState::Critical)]
    {
        theirs.run(&format!("sensor thresh CPU_Temp upper {thresholds}")).unwrap();
        let sensors: Vec<_> = read().await.into_iter().map(same).collect();
        assert_eq!(sensors[0].2, state, "{thresholds}");
        assert_eq!(sensors, listed(&theirs), "{thresholds}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_event_log_is_that_of_ipmitool() {
    let _stopped = clock::stop();
    let (_sim, ours, theirs) = start();
    theirs.run(SET_TIME).unwrap();
    // Add SEL Entry: button 40h, state 0, with the time of the BMC.
    theirs.run("raw 0x0a 0x44 0 0 2 0 0 0 0 0x20 0 4 0x14 0x40 0x6f 0 0xff 0xff").unwrap();
    let entries = ours.events().await.unwrap();
    let said = theirs.run("sel list").unwrap();
    assert_eq!(entries.len(), said.lines().count(), "{said}");
    for (entry, line) in entries.iter().zip(said.lines()) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [id, date, _, sensor, state, direction] = fields[..] else { panic!("{line}") };
        assert_eq!(entry.id, u16::from_str_radix(id, 16).unwrap().to_string());
        let direction = direction.to_lowercase();
        assert_eq!(entry.message, format!("{sensor}: {state} ({direction})"), "{line}");
        assert_eq!(entry.time.is_none(), date.starts_with("Pre-Init"), "{line}");
    }
    let button = entries.last().unwrap();
    assert_eq!(button.message, "Button #0x40: Power Button pressed (asserted)");
    let late = button.time.unwrap().as_second() - TIME;
    assert!((0..600).contains(&late), "{late} s");

    theirs.run("sel clear").unwrap();
    let left = ours.events().await.unwrap();
    assert!(left.iter().all(|entry| entry.message.contains("Log area reset")), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn the_led_is_on_for_the_time_and_can_be_switched_off() {
    let _stopped = clock::stop();
    let (sim, ours, theirs) = start();
    // The simulator passes the time and the flag that forces the LED on.
    let command = || sim.commands().last().cloned().unwrap_or_default();
    ours.identify(Duration::from_secs(7)).await.unwrap();
    assert_eq!(command(), "identify 7 0");
    theirs.run("chassis identify 9").unwrap();
    assert_eq!(command(), "identify 9 0");
    ours.identify(Duration::from_secs(3600)).await.unwrap();
    assert_eq!(command(), "identify 255 0", "the longest time of IPMI");
    ours.identify(Duration::from_millis(1)).await.unwrap();
    assert_eq!(command(), "identify 1 0");
    ours.identify(Duration::ZERO).await.unwrap();
    assert_eq!(command(), "identify 0 0");
}

#[tokio::test(start_paused = true)]
async fn the_features_are_those_that_the_driver_has() {
    let driver = registry::open(IpmiSim::start().unwrap().endpoint(None));
    let features = driver.capabilities().features;
    let expected = [Feature::Identify, Feature::Sensors, Feature::Events, Feature::Console];
    assert_eq!(features, expected);
}
