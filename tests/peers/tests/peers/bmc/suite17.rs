//! Tests against the simulated BMC, which supports cipher suite 17. First `ipmitool` checks the
//! BMC; then our client uses it, with and without faults.

use std::time::Duration;

use bmc::{BootDevice, CipherSuite, Driver, IpmiError, Power, PowerAction, registry};
use peers::Ipmitool;
use peers::bmc_sim::{BmcSim, Config, Loss};
use tokio::runtime::{Builder, Runtime};
use tokio::time::advance;

use super::{boot, cause, clock};

const SEVENTEEN: Option<CipherSuite> = Some(CipherSuite::Seventeen);

/// Longer than an idle session is kept open.
const IDLE: Duration = Duration::from_secs(4);

fn start(config: Config) -> (BmcSim, Box<dyn Driver>) {
    let sim = BmcSim::start(config).unwrap();
    let driver = registry::open(sim.endpoint(None));
    (sim, driver)
}

#[test]
fn ipmitool_finds_the_simulator_right() {
    for suite in CipherSuite::PREFERRED {
        let sim = BmcSim::start(Config { suites: vec![suite], ..Config::default() }).unwrap();
        let tool = Ipmitool::new(&sim.endpoint(None), suite).unwrap();
        assert!(!tool.is_on().unwrap());
        tool.run("power on").unwrap();
        assert!(tool.is_on().unwrap() && sim.chassis().on);
        tool.run("power cycle").unwrap();
        tool.run("power reset").unwrap();
        tool.run("power soft").unwrap();
        assert_eq!(sim.chassis().controls, [1, 2, 3, 5]);
        assert!(!tool.is_on().unwrap());
        tool.run("chassis bootdev pxe options=efiboot").unwrap();
        assert_eq!(tool.boot_flags().unwrap(), "a004000000");
        assert!(tool.run("mc info").unwrap().contains("Firmware Revision         : 1.23"));
        assert_eq!(sim.sessions(), 0, "ipmitool closes what it opens");

        let mut endpoint = sim.endpoint(None);
        endpoint.credentials.password = "wrong".into();
        let error = Ipmitool::new(&endpoint, suite).unwrap().is_on().unwrap_err();
        assert!(error.to_string().contains("Unable to establish"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn ours_and_ipmitool_agree() {
    let _stopped = clock::stop();
    let (sim, ours) = start(Config::default());
    let theirs = Ipmitool::new(&sim.endpoint(None), CipherSuite::Seventeen).unwrap();
    assert_eq!(ours.power().await.unwrap(), Power::Off);
    let actions = [
        (PowerAction::On, 1),
        (PowerAction::Cycle, 2),
        (PowerAction::Reset, 3),
        (PowerAction::Soft, 5),
        (PowerAction::On, 1),
        (PowerAction::Off, 0),
    ];
    for (action, number) in actions {
        ours.set_power(action).await.unwrap();
        assert_eq!(sim.chassis().controls.last(), Some(&number), "{action}");
        let on = ours.power().await.unwrap() == Power::On;
        assert_eq!(theirs.is_on().unwrap(), on, "{action}");
    }
    assert_eq!(sim.chassis().controls, actions.map(|(_, number)| number));
    let devices = [
        (boot(BootDevice::Pxe, false, true), "pxe options=efiboot", "a004000000"),
        (boot(BootDevice::Pxe, false, false), "pxe", "8004000000"),
        (boot(BootDevice::Disk, true, true), "disk options=efiboot,persistent", "e008000000"),
        (boot(BootDevice::Safe, false, false), "safe", "800c000000"),
        (boot(BootDevice::Cdrom, false, true), "cdrom options=efiboot", "a014000000"),
        (boot(BootDevice::Bios, true, false), "bios options=persistent", "c018000000"),
    ];
    for (wanted, command, bytes) in devices {
        theirs.run("chassis bootdev none").unwrap();
        assert_eq!(ours.boot_device().await.unwrap(), None);
        ours.set_boot_device(wanted).await.unwrap();
        assert_eq!(theirs.boot_flags().unwrap(), bytes, "{command}");
        theirs.run("chassis bootdev none").unwrap();
        theirs.run(&format!("chassis bootdev {command}")).unwrap();
        assert_eq!(ours.boot_device().await.unwrap(), Some(wanted), "{command}");
    }
}

/// ipmitool may set the same parameters in another order, but no more of them.
#[tokio::test(start_paused = true)]
async fn boot_options_are_those_ipmitool_sets() {
    let _stopped = clock::stop();
    let (sim, ours) = start(Config::default());
    let theirs = Ipmitool::new(&sim.endpoint(None), CipherSuite::Seventeen).unwrap();
    theirs.run("chassis bootdev pxe options=efiboot").unwrap();
    let by_ipmitool = sim.chassis().options;
    ours.set_boot_device(boot(BootDevice::Pxe, false, true)).await.unwrap();
    let by_us = sim.chassis().options[by_ipmitool.len()..].to_vec();
    assert_eq!(by_us, [vec![0, 1], vec![4, 1, 1], vec![5, 0xA0, 4, 0, 0, 0], vec![0, 0]]);
    for option in &by_us {
        assert!(by_ipmitool.contains(option), "{option:?} not in {by_ipmitool:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cold_reading_is_twelve_datagrams_and_a_warm_one_two() {
    let _stopped = clock::stop();
    let sim = BmcSim::start(Config::default()).unwrap();
    let driver = registry::open(sim.endpoint(SEVENTEEN));
    driver.power().await.unwrap();
    let cold = sim.traffic();
    assert_eq!((cold.received, cold.sent), (5, 5), "all but the close");
    driver.power().await.unwrap();
    let warm = sim.traffic();
    assert_eq!((warm.received - cold.received, warm.sent - cold.sent), (1, 1));
    assert_eq!(sim.sessions(), 1);
    // Soon after, the client closes the session by itself.
    advance(IDLE).await;
    clock::until(|| sim.traffic().closed == 1).await;
    let after = sim.traffic();
    assert_eq!((after.received, after.sent), (6 + 1, 6 + 1));
    assert_eq!(sim.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn lost_requests_are_sent_again() {
    assert_eq!(everything_in_spite_of(Loss::Requests).await, 1);
}

#[tokio::test(start_paused = true)]
async fn lost_replies_are_asked_for_again() {
    // After a lost RAKP message 4 the two sides disagree on the session's existence: one more
    // session.
    assert_eq!(everything_in_spite_of(Loss::Replies).await, 2);
}

/// Runs all commands that a boot needs; returns the number of sessions.
async fn everything_in_spite_of(loss: Loss) -> usize {
    let (sim, driver) = start(Config { loss, ..Config::default() });
    clock::paced(&sim, async {
        driver.set_power(PowerAction::On).await.unwrap();
        assert_eq!(driver.power().await.unwrap(), Power::On);
        assert!(sim.chassis().on);
        let wanted = boot(BootDevice::Pxe, false, true);
        driver.set_boot_device(wanted).await.unwrap();
        assert_eq!(driver.boot_device().await.unwrap(), Some(wanted));
    })
    .await;
    let traffic = sim.traffic();
    assert!(traffic.received > traffic.sent, "something was lost: {traffic:?}");
    assert!(traffic.received > 2 * 11, "everything was sent twice: {traffic:?}");
    traffic.opened
}

#[tokio::test(start_paused = true)]
async fn negotiation_takes_the_best_both_have() {
    use CipherSuite::{Seventeen, Three};
    let both = || vec![Three, Seventeen];
    let refusing = Config { suites: vec![Three], listed: None, ..Config::default() };
    let rows = [
        ("lists and takes both", Config { suites: both(), ..Config::default() }, 17),
        ("takes both, lists 3", config(both(), vec![0, 1, 2, 3, 6, 7, 8]), 3),
        ("lists 17 far down", config(both(), (0..=17).collect()), 17),
        ("lists 17, refuses it", config(vec![Three], vec![3, 17]), 3),
        ("lists nothing, refuses 17", refusing.clone(), 3),
        ("is silent to 17", Config { ignores_unknown_suites: true, ..refusing }, 3),
    ];
    for (what, config, suite) in rows {
        let sim = BmcSim::start(config).unwrap();
        let driver = registry::open(sim.endpoint(None));
        assert_eq!(clock::paced(&sim, driver.power()).await.unwrap(), Power::Off, "{what}");
        // Checks the suite of the session: a request for the other suite by number needs a new
        // session.
        let opened = sim.traffic().opened;
        let same = registry::open(sim.endpoint(CipherSuite::from_id(suite)));
        assert_eq!(clock::paced(&sim, same.power()).await.unwrap(), Power::Off, "{what}");
        assert_eq!(sim.traffic().opened, opened, "{what}: the session had suite {suite}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_learnt_is_not_asked_again() {
    let _stopped = clock::stop();
    let config = config(vec![CipherSuite::Three], vec![3, 17]);
    let sim = BmcSim::start(config).unwrap();
    registry::open(sim.endpoint(None)).power().await.unwrap();
    advance(IDLE).await;
    clock::until(|| sim.traffic().closed == 1).await;
    let first = sim.traffic().received;
    assert_eq!(first, 2 + 6, "the list, the refusal of 17, and a cold reading with 3");
    registry::open(sim.endpoint(None)).power().await.unwrap();
    assert_eq!(sim.traffic().received - first, 5, "a cold reading, all but its close");
}

fn config(suites: Vec<CipherSuite>, listed: Vec<u8>) -> Config {
    Config { suites, listed: Some(listed), ..Config::default() }
}

#[tokio::test(start_paused = true)]
async fn weak_suites_are_never_used() {
    let _stopped = clock::stop();
    let (sim, driver) = start(config(vec![], vec![0, 1, 2]));
    let error = driver.power().await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::SuiteRefused { .. }), "{error}");
    assert!(error.to_string().ends_with("(17, 3): it offers 0, 1, 2"), "{error}");
    let traffic = sim.traffic();
    assert_eq!((traffic.received, traffic.opened), (1, 0), "the list was enough");
}

#[tokio::test(start_paused = true)]
async fn a_user_without_the_privilege_is_named_with_the_reason() {
    let _stopped = clock::stop();
    let rows = [
        (false, "unauthorized role or privilege level (0x0a)"),
        (true, "requested level exceeds the privilege limit of the user or channel (0x81)"),
    ];
    for (checks_privilege_late, reason) in rows {
        let config = Config { privilege: 2, checks_privilege_late, ..Config::default() };
        let (_sim, driver) = start(config);
        let error = driver.power().await.unwrap_err();
        assert!(matches!(cause(&error), IpmiError::Privilege { .. }), "{error}");
        let words = "does not give user \"operator\" operator privilege: ";
        assert!(error.to_string().contains(&format!("{words}{reason}")), "{error}");
        assert!(error.sentence().ends_with("on the LAN channel of the BMC"), "{error}");
        assert!(error.refuses_login() && !error.is_transient(), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_leaves_no_session_behind() {
    let _stopped = clock::stop();
    let sim = BmcSim::start(Config::default()).unwrap();
    let mut endpoint = sim.endpoint(None);
    endpoint.credentials.password = "correct horse".into();
    let error = registry::open(endpoint).power().await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::WrongPassword { .. }), "{error}");
    assert_eq!(sim.traffic().opened, 0);
    // The same connection works at once with the right password.
    assert_eq!(registry::open(sim.endpoint(None)).power().await.unwrap(), Power::Off);
}

#[tokio::test(start_paused = true)]
async fn drivers_of_one_bmc_take_turns() {
    let _stopped = clock::stop();
    let sim = BmcSim::start(Config::default()).unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let driver = registry::open(sim.endpoint(SEVENTEEN));
            tokio::spawn(async move { driver.power().await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), Power::Off);
    }
    let traffic = sim.traffic();
    assert_eq!((traffic.opened, traffic.received), (1, 4 + 16), "one session for all of them");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_restarted_is_spoken_to_anew() {
    let (sim, driver) = start(Config::default());
    clock::paced(&sim, async {
        driver.set_power(PowerAction::On).await.unwrap();
        sim.restart();
        assert_eq!(driver.power().await.unwrap(), Power::On);
        sim.restart();
        driver.set_power(PowerAction::Cycle).await.unwrap();
    })
    .await;
    assert_eq!(sim.chassis().controls, [1, 2]);
    assert_eq!(sim.traffic().opened, 3);
}

/// A connection outlives the runtime that used it first; its session and its closing task do not.
#[test]
fn a_line_goes_from_runtime_to_runtime() {
    let sim = BmcSim::start(Config::default()).unwrap();
    for sessions in 1..=3 {
        let runtime = runtime();
        let driver = registry::open(sim.endpoint(SEVENTEEN));
        let power = runtime.block_on(clock::paced(&sim, driver.power()));
        assert_eq!(power.unwrap(), Power::Off);
        assert_eq!(sim.traffic().opened, sessions);
    }
    runtime().block_on(async {
        let driver = registry::open(sim.endpoint(SEVENTEEN));
        clock::paced(&sim, driver.power()).await.unwrap();
        let closed = sim.traffic().closed;
        advance(IDLE).await;
        clock::until(|| sim.traffic().closed > closed).await;
    });
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_half_way_leaves_no_session_behind() {
    let (sim, driver) = start(Config { loss: Loss::StatusReplies, ..Config::default() });
    let _stopped = clock::stop();
    let mut call = driver.power();
    tokio::select! {
        biased;
        _ = &mut call => panic!("no answer can come"),
        // The list, four messages that open the session, and the request without an answer.
        () = clock::until(|| sim.traffic().received == 6) => {}
    }
    assert_eq!(sim.sessions(), 1);
    drop(call);
    clock::until(|| sim.sessions() == 0).await;
    assert_eq!(sim.traffic().closed, 1);
    driver.set_power(PowerAction::On).await.unwrap();
    assert!(sim.chassis().on, "and the next call starts afresh");
}
