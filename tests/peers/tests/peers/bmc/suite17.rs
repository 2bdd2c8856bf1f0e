//! Against a BMC in software that speaks cipher suite 17: first `ipmitool` proves it, then our
//! client meets it, on a good day and on bad ones.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bmc::{
    Address, BootDevice, CipherSuite, Credentials, Driver, Endpoint, Error, Pending, Power,
    PowerAction, registry,
};
use peers::bmc_sim::{BmcSim, Config, Loss};
use peers::{Ipmitool, poll};

use super::{PLENTY, boot};

const SEVENTEEN: Option<CipherSuite> = Some(CipherSuite::Seventeen);

/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(10);

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

#[tokio::test]
async fn ours_and_ipmitool_agree() {
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
#[tokio::test]
async fn boot_options_are_those_ipmitool_sets() {
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

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_reading_is_twelve_datagrams_and_a_warm_one_two() {
    let sim = BmcSim::start(Config::default()).unwrap();
    let driver = registry::open(sim.endpoint(SEVENTEEN));
    driver.power().await.unwrap();
    let cold = sim.traffic();
    assert_eq!((cold.received, cold.sent), (5, 5), "all but the close");
    driver.power().await.unwrap();
    let warm = sim.traffic();
    assert_eq!((warm.received - cold.received, warm.sent - cold.sent), (1, 1));
    assert_eq!(sim.sessions(), 1);
    // The session is given back soon after, by itself.
    poll("the session's end", PLENTY, || sim.traffic().closed == 1).unwrap();
    let after = sim.traffic();
    assert_eq!((after.received, after.sent), (6 + 1, 6 + 1));
    assert_eq!(sim.sessions(), 0);
}

#[tokio::test]
async fn lost_requests_are_sent_again() {
    assert_eq!(everything_in_spite_of(Loss::Requests).await, 1);
}

#[tokio::test]
async fn lost_replies_are_asked_for_again() {
    // The two sides of a lost RAKP message 4 differ on whether there is a session: one more.
    assert_eq!(everything_in_spite_of(Loss::Replies).await, 2);
}

/// All that is done on the way to a boot; the sessions it took.
async fn everything_in_spite_of(loss: Loss) -> usize {
    let (sim, driver) = start(Config { loss, ..Config::default() });
    driver.set_power(PowerAction::On).await.unwrap();
    assert_eq!(driver.power().await.unwrap(), Power::On);
    assert!(sim.chassis().on);
    let wanted = boot(BootDevice::Pxe, false, true);
    driver.set_boot_device(wanted).await.unwrap();
    assert_eq!(driver.boot_device().await.unwrap(), Some(wanted));
    let traffic = sim.traffic();
    assert!(traffic.received > traffic.sent, "something was lost: {traffic:?}");
    assert!(traffic.received > 2 * 11, "everything was sent twice: {traffic:?}");
    traffic.opened
}

#[tokio::test]
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
        assert_eq!(registry::open(sim.endpoint(None)).power().await.unwrap(), Power::Off, "{what}");
        // Which suite it was: the other one, asked for by name, needs a session of its own.
        let opened = sim.traffic().opened;
        let same = registry::open(sim.endpoint(CipherSuite::from_id(suite)));
        assert_eq!(same.power().await.unwrap(), Power::Off, "{what}");
        assert_eq!(sim.traffic().opened, opened, "{what}: the session had suite {suite}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learnt_is_not_asked_again() {
    let config = config(vec![CipherSuite::Three], vec![3, 17]);
    let sim = BmcSim::start(config).unwrap();
    registry::open(sim.endpoint(None)).power().await.unwrap();
    poll("the session's end", PLENTY, || sim.traffic().closed == 1).unwrap();
    let first = sim.traffic().received;
    assert_eq!(first, 2 + 6, "the list, the refusal of 17, and a cold reading with 3");
    registry::open(sim.endpoint(None)).power().await.unwrap();
    assert_eq!(sim.traffic().received - first, 5, "a cold reading, all but its close");
}

fn config(suites: Vec<CipherSuite>, listed: Vec<u8>) -> Config {
    Config { suites, listed: Some(listed), ..Config::default() }
}

#[tokio::test]
async fn weak_suites_are_never_used() {
    let (sim, driver) = start(config(vec![], vec![0, 1, 2]));
    let error = driver.power().await.unwrap_err();
    assert!(matches!(error, Error::SuiteRefused { .. }), "{error}");
    assert!(error.to_string().ends_with("(17, 3): it offers 0, 1, 2"), "{error}");
    let traffic = sim.traffic();
    assert_eq!((traffic.received, traffic.opened), (1, 0), "the list was enough");
}

#[tokio::test]
async fn users_without_the_right_are_told_so() {
    let (_sim, driver) = start(Config { privilege: 2, ..Config::default() });
    let error = driver.power().await.unwrap_err();
    assert!(matches!(error, Error::Privilege { .. }), "{error}");
}

#[tokio::test]
async fn a_wrong_password_leaves_no_session_behind() {
    let sim = BmcSim::start(Config::default()).unwrap();
    let mut endpoint = sim.endpoint(None);
    endpoint.credentials.password = "correct horse".into();
    let error = registry::open(endpoint).power().await.unwrap_err();
    assert!(matches!(error, Error::WrongPassword { .. }), "{error}");
    assert_eq!(sim.traffic().opened, 0);
    // The same line serves the right password at once.
    assert_eq!(registry::open(sim.endpoint(None)).power().await.unwrap(), Power::Off);
}

#[tokio::test]
async fn silence_is_no_answer_and_ends_soon() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let ask = async |port: u16| {
        let start = Instant::now();
        let error = registry::open(at(port)).power().await.unwrap_err();
        assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
        assert!(error.is_transient());
        assert!(start.elapsed().as_secs() < 12, "{:?}", start.elapsed());
    };
    tokio::join!(ask(silent.local_addr().unwrap().port()), ask(closed));
}

fn at(port: u16) -> Endpoint {
    Endpoint {
        address: Address { host: "127.0.0.1".into(), port },
        credentials: Credentials { username: "admin".into(), password: "secret".into() },
        cipher_suite: None,
    }
}

#[tokio::test]
async fn rubbish_is_told_apart_from_silence() {
    let (_sim, driver) = start(Config { rubbish: true, ..Config::default() });
    let error = driver.power().await.unwrap_err();
    assert!(matches!(error, Error::Hostile { .. }), "{error}");
}

/// Rubbish without end, faster than it can be read, holds nobody longer than silence does.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_rubbish_ends_as_soon_as_silence() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let stop = Arc::new(AtomicBool::new(false));
    let flood = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let (_, peer) = socket.recv_from(&mut [0; 64]).unwrap();
            let mut sent = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                sent += u64::from(socket.send_to(&[6, 0, 0xFF, 7, 6, 0x11], peer).is_ok());
            }
            sent
        }
    });
    let start = Instant::now();
    let error = registry::open(at(port)).power().await.unwrap_err();
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(error, Error::Hostile { .. }), "{error}");
    assert!(start.elapsed().as_secs() < 12, "{:?}", start.elapsed());
    assert!(flood.join().unwrap() > 1000);
}

#[tokio::test]
async fn drivers_of_one_bmc_take_turns() {
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

#[tokio::test]
async fn a_bmc_that_restarted_is_spoken_to_anew() {
    let (sim, driver) = start(Config::default());
    driver.set_power(PowerAction::On).await.unwrap();
    sim.restart();
    assert_eq!(driver.power().await.unwrap(), Power::On);
    sim.restart();
    driver.set_power(PowerAction::Cycle).await.unwrap();
    assert_eq!(sim.chassis().controls, [1, 2]);
    assert_eq!(sim.traffic().opened, 3);
}

/// A line outlives the runtime it was first used in: its session and its closer do not.
#[test]
fn a_line_goes_from_runtime_to_runtime() {
    let sim = BmcSim::start(Config::default()).unwrap();
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    };
    for sessions in 1..=3 {
        let runtime = runtime();
        let driver = registry::open(sim.endpoint(SEVENTEEN));
        assert_eq!(runtime.block_on(driver.power()).unwrap(), Power::Off);
        assert_eq!(sim.traffic().opened, sessions);
    }
    let runtime = runtime();
    let driver = registry::open(sim.endpoint(SEVENTEEN));
    runtime.block_on(driver.power()).unwrap();
    let closed = sim.traffic().closed;
    poll("the session's end", PLENTY, || sim.traffic().closed > closed).unwrap();
}

#[tokio::test]
async fn a_call_dropped_half_way_leaves_no_session_behind() {
    let (sim, driver) = start(Config { loss: Loss::StatusReplies, ..Config::default() });
    let mut call = driver.power();
    poll_until(&mut call, || sim.traffic().opened == 1).await;
    assert_eq!(sim.sessions(), 1);
    drop(call);
    poll("the session's end", PLENTY, || sim.sessions() == 0).unwrap();
    assert_eq!(sim.traffic().closed, 1);
    driver.set_power(PowerAction::On).await.unwrap();
    assert!(sim.chassis().on, "and the next call starts afresh");
}

/// Drive a call that must not end until the condition holds.
async fn poll_until(call: &mut Pending<'_, Power>, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PLENTY);
        assert!(tokio::time::timeout(LOOK, &mut *call).await.is_err(), "no answer can come");
    }
}
