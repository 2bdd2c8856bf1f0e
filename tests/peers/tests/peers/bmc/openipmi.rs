//! Tests against OpenIPMI's `ipmi_sim`, cipher suite 3.

use std::time::Duration;

use bmc::{BootDevice, CipherSuite, Driver, IpmiError, Power, PowerAction, ensure, registry};
use ipmi::BootTarget;
use peers::{IpmiSim, Ipmitool, poll};
use stdx::testing::PATIENCE;
use tokio::time::{Instant, sleep};

use super::{boot, cause, clock};

const THREE: Option<CipherSuite> = Some(CipherSuite::Three);

fn start() -> (IpmiSim, Box<dyn Driver>, Ipmitool) {
    let sim = IpmiSim::start().unwrap();
    let endpoint = sim.endpoint(THREE);
    let tool = Ipmitool::new(&endpoint, CipherSuite::Three).unwrap();
    (sim, registry::open(endpoint), tool)
}

#[tokio::test(start_paused = true)]
async fn power_is_what_ipmitool_sees() {
    let _stopped = clock::stop();
    let (sim, ours, theirs) = start();
    assert_eq!(ours.power().await.unwrap(), Power::Off);
    assert!(!theirs.is_on().unwrap());

    ours.set_power(PowerAction::On).await.unwrap();
    assert!(theirs.is_on().unwrap());
    assert_eq!(ours.power().await.unwrap(), Power::On);

    theirs.run("power off").unwrap();
    assert_eq!(ours.power().await.unwrap(), Power::Off);
    theirs.run("power on").unwrap();
    assert_eq!(ours.power().await.unwrap(), Power::On);

    ours.set_power(PowerAction::Reset).await.unwrap();
    assert_eq!(sim.commands().last().map(String::as_str), Some("reset 1"));
    assert!(theirs.is_on().unwrap());

    ours.set_power(PowerAction::Soft).await.unwrap();
    assert_eq!(sim.commands().last().map(String::as_str), Some("shutdown 1"));
    assert!(!theirs.is_on().unwrap());

    ours.set_power(PowerAction::On).await.unwrap();
    ours.set_power(PowerAction::Off).await.unwrap();
    assert!(!theirs.is_on().unwrap());
    assert_eq!(ours.power().await.unwrap(), Power::Off);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_is_off_and_on_again() {
    let _stopped = clock::stop();
    let (sim, ours, theirs) = start();
    theirs.run("power on").unwrap();
    let before = sim.commands().len();
    ours.set_power(PowerAction::Cycle).await.unwrap();
    // The simulator restores power by itself, some seconds later.
    poll("power after a cycle", PATIENCE, || theirs.is_on().unwrap()).unwrap();
    assert_eq!(ours.power().await.unwrap(), Power::On);
    assert_eq!(sim.commands()[before..], ["power 0", "power 1"]);
}

#[tokio::test(start_paused = true)]
async fn confirmed_power_acts_once() {
    let (sim, ours, theirs) = start();
    let confirm = |wanted| clock::slowed(ensure(ours.as_ref(), wanted, Instant::now() + PATIENCE));
    confirm(Power::Off).await.unwrap();
    assert_eq!(sim.commands(), [""; 0], "it was off already");
    confirm(Power::On).await.unwrap();
    assert!(theirs.is_on().unwrap());
    confirm(Power::On).await.unwrap();
    confirm(Power::Off).await.unwrap();
    assert!(!theirs.is_on().unwrap());
    assert_eq!(sim.commands(), ["power 1", "power 0"]);
}

#[tokio::test(start_paused = true)]
async fn the_boot_device_is_what_ipmitool_sees() {
    let _stopped = clock::stop();
    let sim = IpmiSim::start().unwrap();
    let ours = registry::ipmi(sim.endpoint(THREE));
    let theirs = Ipmitool::new(&sim.endpoint(THREE), CipherSuite::Three).unwrap();
    let rows = [
        (BootDevice::Pxe, BootTarget::Pxe, "pxe", "0004000000", "pxe"),
        (BootDevice::Disk, BootTarget::Disk, "disk", "0008000000", "default"),
        (BootDevice::Cdrom, BootTarget::Cdrom, "cdrom", "0014000000", "cdrom"),
        (BootDevice::Bios, BootTarget::Setup, "bios", "0018000000", "bios"),
        (BootDevice::Pxe, BootTarget::Pxe, "pxe", "0004000000", "pxe"),
    ];
    for (device, target, name, bytes, command) in rows {
        let command = Some(format!("boot {command}"));
        theirs.run("chassis bootdev none").unwrap();
        ours.set_boot_device(boot(device, false, true)).await.unwrap();
        assert_eq!(sim.commands().last().cloned(), command);
        assert_eq!(theirs.boot_flags().unwrap(), bytes);
        assert_eq!(ours.device().boot_flags().await.unwrap().target, Some(target));

        theirs.run("chassis bootdev none").unwrap();
        assert_eq!(ours.device().boot_flags().await.unwrap().target, None);
        theirs.run(&format!("chassis bootdev {name}")).unwrap();
        assert_eq!(sim.commands().last().cloned(), command);
        assert_eq!(ours.device().boot_flags().await.unwrap().target, Some(target));
    }
    // This simulator never marks the flags valid, so they are not in force: the driver reports the
    // same.
    assert!(theirs.run("chassis bootparam get 5").unwrap().contains("Boot Flag Invalid"));
    assert_eq!(ours.boot_device().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_carries_the_completion_code() {
    let _stopped = clock::stop();
    let (_sim, ours, theirs) = start();
    let error = ours.set_boot_device(boot(BootDevice::Safe, false, false)).await.unwrap_err();
    let is_refused = matches!(cause(&error), IpmiError::CommandRefused { .. });
    assert!(is_refused, "{error}");
    assert!(error.to_string().ends_with("unspecified error (0xff)"), "{error}");
    assert!(theirs.run("chassis bootdev safe").is_err(), "ipmitool is refused as well");
    assert_eq!(ours.power().await.unwrap(), Power::Off, "and the session goes on");
}

#[tokio::test(start_paused = true)]
async fn the_device_is_what_ipmitool_sees() {
    let _stopped = clock::stop();
    let (sim, _, theirs) = start();
    let id = registry::ipmi(sim.endpoint(THREE)).device().device_id().await.unwrap();
    let said = theirs.run("mc info").unwrap();
    let value = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(": ").unwrap_or_default().1.trim().to_owned()
    };
    assert_eq!(value("Manufacturer ID"), id.manufacturer.to_string());
    assert_eq!(value("Product ID"), format!("{} (0x{:04x})", id.product, id.product));
    assert_eq!(value("Firmware Revision"), format!("{}.{:02}", id.firmware.0, id.firmware.1));
    assert_eq!(value("IPMI Version"), format!("{}.{}", id.ipmi.0, id.ipmi.1));
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_are_told_as_such() {
    let _stopped = clock::stop();
    let sim = IpmiSim::start().unwrap();
    for (username, password) in [(IpmiSim::USERNAME, "Secret"), ("nobody", IpmiSim::PASSWORD)] {
        let mut endpoint = sim.endpoint(THREE);
        endpoint.credentials.username = username.into();
        endpoint.credentials.password = password.into();
        let start = Instant::now();
        let error = registry::open(endpoint).power().await.unwrap_err();
        assert!(matches!(cause(&error), IpmiError::WrongPassword { .. }), "{username}: {error}");
        assert!(!error.is_transient());
        assert!(!error.to_string().contains(password), "{error}");
        assert_eq!(start.elapsed(), Duration::ZERO, "told without any wait");
    }
}

#[tokio::test(start_paused = true)]
async fn the_suite_is_found_without_the_question_being_answered() {
    let sim = IpmiSim::start().unwrap();
    let driver = registry::open(sim.endpoint(None));
    let start = Instant::now();
    // The client waits 1.2 s for the list, with two requests; ipmitool waits 10 s. Suite 17 is then
    // refused and 3 accepted without any wait.
    let list = async {
        sleep(Duration::from_millis(1250)).await;
        clock::stop()
    };
    let (power, _stopped) = tokio::join!(driver.power(), list);
    assert_eq!(power.unwrap(), Power::Off);
    let waited = start.elapsed().as_millis();
    assert!((1250..1300).contains(&waited), "{waited} ms");
}

#[tokio::test(start_paused = true)]
async fn a_suite_asked_for_is_never_given_up() {
    let _stopped = clock::stop();
    let sim = IpmiSim::start().unwrap();
    let driver = registry::open(sim.endpoint(Some(CipherSuite::Seventeen)));
    let error = driver.power().await.unwrap_err();
    let said = error.to_string();
    assert!(matches!(cause(&error), IpmiError::SuiteRefused { .. }), "{said}");
    assert!(said.ends_with("(17): invalid authentication algorithm (0x04)"), "{said}");
}
