//! IPMI 1.5 against `ipmi_sim` behind a filter, compared with `ipmitool -I lan`.

use std::time::Duration;

use bmc::{
    BootDevice, CipherSuite, Driver, Error, Feature, IpmiError, Power, PowerAction, registry,
};
use peers::old_bmc::{Filter, OldBmc};
use peers::{IpmiSim, Ipmitool};

use super::{boot, cause, clock};

/// Authentication types in the session header (IPMI 2.0 table 13-8).
const NONE: u8 = 0;
const MD5: u8 = 2;
const PLUS: u8 = 6;
/// Session ID of a packet outside of a session.
const NO_SESSION: [u8; 4] = [0; 4];
/// Longer than an idle session is kept open.
const IDLE: Duration = Duration::from_secs(4);

fn start(filter: Filter) -> (OldBmc, Box<dyn Driver>) {
    let bmc = OldBmc::start(IpmiSim::start().unwrap(), filter).unwrap();
    let driver = registry::open(bmc.endpoint());
    (bmc, driver)
}

/// Returns the authentication type of each datagram, from this one on.
fn types(bmc: &OldBmc, from: usize) -> Vec<u8> {
    bmc.received()[from..].iter().map(|datagram| datagram[4]).collect()
}

#[tokio::test(start_paused = true)]
async fn power_and_boot_device_are_those_of_ipmitool() {
    let (bmc, ours) = start(Filter::default());
    let theirs = Ipmitool::legacy(&bmc.endpoint()).unwrap();
    let paced = async |action| clock::paced(&bmc, ours.set_power(action)).await.unwrap();
    let power = async || clock::paced(&bmc, ours.power()).await.unwrap();
    assert_eq!(power().await, Power::Off);
    assert!(!theirs.is_on().unwrap());
    paced(PowerAction::On).await;
    assert!(theirs.is_on().unwrap());
    assert_eq!(power().await, Power::On);
    paced(PowerAction::Reset).await;
    assert_eq!(bmc.sim().commands().last().map(String::as_str), Some("reset 1"));
    paced(PowerAction::Soft).await;
    assert_eq!(bmc.sim().commands().last().map(String::as_str), Some("shutdown 1"));
    assert!(!theirs.is_on().unwrap());
    theirs.run("power on").unwrap();
    assert_eq!(power().await, Power::On);
    paced(PowerAction::Off).await;
    assert!(!theirs.is_on().unwrap());

    clock::paced(&bmc, ours.set_boot_device(boot(BootDevice::Pxe, false, true))).await.unwrap();
    assert_eq!(theirs.boot_flags().unwrap(), "0004000000");
    assert_eq!(bmc.sim().commands().last().map(String::as_str), Some("boot pxe"));
}

#[tokio::test(start_paused = true)]
async fn sensors_and_event_log_are_those_of_ipmitool() {
    let (bmc, ours) = start(Filter::default());
    let theirs = Ipmitool::legacy(&bmc.endpoint()).unwrap();
    let sensors = clock::paced(&bmc, ours.sensors()).await.unwrap();
    let said = theirs.run("sdr list").unwrap();
    let names: Vec<_> = said.lines().filter_map(|line| line.split('|').next()).collect();
    assert_eq!(sensors.len(), names.len(), "{said}");
    for (sensor, name) in sensors.iter().zip(names) {
        assert_eq!(sensor.name, name.trim());
    }
    assert_eq!((sensors[0].value, sensors[1].value), (Some(82.0), Some(4500.0)));
    let entries = clock::paced(&bmc, ours.events()).await.unwrap();
    let said = theirs.run("sel list").unwrap();
    assert_eq!(entries.len(), said.lines().count(), "{said}");
    assert!(entries.len() >= 4, "{entries:?}");
}

#[tokio::test(start_paused = true)]
async fn the_weakness_is_stated_and_the_console_needs_ipmi_2_0() {
    let (bmc, driver) = start(Filter::default());
    assert_eq!(driver.capabilities().weakness, None, "no session so far");
    clock::paced(&bmc, driver.power()).await.unwrap();
    let weakness = driver.capabilities().weakness.unwrap();
    assert!(weakness.starts_with("IPMI 1.5, weak: "), "{weakness}");
    let features = driver.capabilities().features;
    assert_eq!(features, [Feature::Identify, Feature::Sensors, Feature::Events]);
    let error = clock::paced(&bmc, driver.console()).await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::ConsoleMissing { .. }), "{error}");
    assert!(error.to_string().contains("needs IPMI 2.0") && !error.is_transient(), "{error}");
}

/// The password crosses the network in no packet, and a session has no packet without an AuthCode.
#[tokio::test(start_paused = true)]
async fn every_packet_of_a_session_is_authenticated() {
    let (bmc, driver) = start(Filter::default());
    clock::paced(&bmc, async {
        driver.set_power(PowerAction::On).await.unwrap();
        driver.set_power(PowerAction::Cycle).await.unwrap();
        tokio::time::sleep(IDLE).await;
        driver.power().await.unwrap();
    })
    .await;
    let received = bmc.received();
    let count = |kind| received.iter().filter(|datagram| datagram[4] == kind).count();
    assert!(count(MD5) >= 9, "two sessions and their commands: {received:?}");
    assert_eq!(count(PLUS), 0, "the BMC refused the list of cipher suites");
    for datagram in &received {
        assert!(datagram[4] == MD5 || datagram[9..13] == NO_SESSION, "{datagram:02x?}");
        let password = IpmiSim::PASSWORD.as_bytes();
        assert!(!datagram.windows(password.len()).any(|bytes| bytes == password));
    }
    // List of suites, capabilities, challenge; then the version is known.
    let bare: Vec<_> = received.iter().filter(|datagram| datagram[4] == NONE).collect();
    let commands: Vec<_> = bare.iter().map(|datagram| datagram[19]).collect();
    assert_eq!(commands, [0x54, 0x38, 0x39, 0x38, 0x39]);
}

#[tokio::test(start_paused = true)]
async fn forged_and_repeated_packets_have_no_effect() {
    let (bmc, driver) = start(Filter { is_noisy: true, ..Filter::default() });
    clock::paced(&bmc, async {
        driver.set_power(PowerAction::On).await.unwrap();
        assert_eq!(driver.power().await.unwrap(), Power::On);
        driver.set_power(PowerAction::Off).await.unwrap();
        assert_eq!(driver.power().await.unwrap(), Power::Off);
    })
    .await;
    assert_eq!(bmc.sim().commands(), ["power 1", "power 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_ignores_what_it_does_not_know_is_found_after_all_suites_and_then_at_once() {
    let filter = Filter { ignores_unknown: true, refuses_extended: true, ..Filter::default() };
    let (bmc, driver) = start(filter);
    assert_eq!(clock::paced(&bmc, driver.power()).await.unwrap(), Power::Off);
    assert!(types(&bmc, 0).contains(&PLUS), "IPMI 2.0 was tried first");
    clock::paced(&bmc, tokio::time::sleep(IDLE)).await;
    let before = bmc.received().len();
    assert_eq!(clock::paced(&bmc, driver.power()).await.unwrap(), Power::Off);
    assert_eq!(types(&bmc, before), [NONE, NONE, NONE, MD5, MD5, MD5]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_had_ipmi_2_0_gets_no_login_of_ipmi_1_5() {
    let (bmc, driver) = start(Filter { has_plus: true, ..Filter::default() });
    clock::paced(&bmc, async {
        driver.power().await.unwrap();
        assert_eq!(driver.capabilities().weakness, None);
        tokio::time::sleep(IDLE).await;
    })
    .await;
    let before = bmc.received().len();
    bmc.set_filter(Filter::default());
    let error = clock::paced(&bmc, driver.power()).await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::Downgrade { .. }), "{error}");
    assert!(error.to_string().contains("had IPMI 2.0 before"), "{error}");
    assert!(!error.is_transient() && !error.refuses_login(), "{error}");
    assert!(!types(&bmc, before).contains(&MD5), "{:?}", types(&bmc, before));
    bmc.set_filter(Filter { has_plus: true, ..Filter::default() });
    assert_eq!(clock::paced(&bmc, driver.power()).await.unwrap(), Power::Off);
}

#[tokio::test(start_paused = true)]
async fn new_firmware_with_ipmi_2_0_is_used_at_once_and_from_then_on() {
    let (bmc, driver) = start(Filter::default());
    clock::paced(&bmc, async {
        driver.power().await.unwrap();
        tokio::time::sleep(IDLE).await;
    })
    .await;
    assert!(driver.capabilities().weakness.is_some());
    bmc.set_filter(Filter { has_plus: true, ..Filter::default() });
    clock::paced(&bmc, driver.power()).await.unwrap();
    assert_eq!(driver.capabilities().weakness, None);
    assert!(driver.capabilities().features.contains(&Feature::Console));
}

#[tokio::test(start_paused = true)]
async fn a_required_suite_permits_no_ipmi_1_5() {
    let bmc = OldBmc::start(IpmiSim::start().unwrap(), Filter::default()).unwrap();
    let mut endpoint = bmc.endpoint();
    endpoint.protocol = bmc::Protocol::Ipmi { cipher_suite: Some(CipherSuite::Three) };
    let error = clock::paced(&bmc, registry::open(endpoint).power()).await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::NoAnswer { .. }), "{error}");
    assert_eq!(types(&bmc, 0), [PLUS; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_without_md5_gets_no_login() {
    let (bmc, driver) = start(Filter { lacks_md5: true, ..Filter::default() });
    let error = clock::paced(&bmc, driver.power()).await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::NoAuthentication { .. }), "{error}");
    assert!(error.sentence().contains("enable MD5 on the LAN channel"), "{}", error.sentence());
    assert_eq!(types(&bmc, 0), [NONE, NONE], "the list of suites and the capabilities");
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_are_named_and_not_repeated() {
    let rows = [(IpmiSim::USERNAME, "hunter2", true), ("other", IpmiSim::PASSWORD, false)];
    for (username, password, is_ignored) in rows {
        let bmc = OldBmc::start(IpmiSim::start().unwrap(), Filter::default()).unwrap();
        let mut endpoint = bmc.endpoint();
        endpoint.credentials.username = username.into();
        endpoint.credentials.password = password.into();
        let error = clock::paced(&bmc, registry::open(endpoint).power()).await.unwrap_err();
        let is_named = match cause(&error) {
            IpmiError::LoginIgnored { .. } => is_ignored,
            IpmiError::WrongPassword { .. } => !is_ignored,
            _ => false,
        };
        assert!(is_named, "{username}: {error}");
        assert!(error.refuses_login() && !error.is_transient(), "{error}");
        assert!(!error.sentence().contains(password), "{error}");
        assert!(types(&bmc, 0).iter().filter(|kind| **kind == MD5).count() <= 2, "{username}");
    }
}

/// Logs in with these credentials.
async fn login(username: &str, password: &str, filter: Filter) -> Error {
    let bmc = OldBmc::start(IpmiSim::start().unwrap(), filter).unwrap();
    let mut endpoint = bmc.endpoint();
    endpoint.credentials.username = username.into();
    endpoint.credentials.password = password.into();
    clock::paced(&bmc, registry::open(endpoint).power()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_another_password_is_a_wrong_password() {
    let filter = Filter { signs_otherwise: true, ..Filter::default() };
    let error = login(IpmiSim::USERNAME, IpmiSim::PASSWORD, filter).await;
    assert!(matches!(cause(&error), IpmiError::WrongPassword { .. }), "{error}");
    assert!(error.refuses_login(), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_password_that_ipmi_1_5_cannot_have_is_not_sent() {
    let error = login(IpmiSim::USERNAME, "longer than 16 bytes", Filter::default()).await;
    assert!(error.to_string().ends_with("longer than the 16 bytes of IPMI 1.5"), "{error}");
}

/// User 1 of the simulator has no name and the privilege User.
#[tokio::test(start_paused = true)]
async fn a_user_without_the_privilege_operator_is_refused_by_the_activation() {
    let error = login("", "test", Filter::default()).await;
    assert!(matches!(cause(&error), IpmiError::Privilege { .. }), "{error}");
    assert!(error.to_string().contains("exceeds the privilege limit"), "{error}");
}
