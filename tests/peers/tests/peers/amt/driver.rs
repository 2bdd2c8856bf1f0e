//! Power, boot device, identity and TLS, without faults.

use amt_sim::{AmtSim, Behavior};
use bmc::{
    BootDevice, BootOverride, Driver as _, Error, Fingerprint, Power, PowerAction, Security, Trust,
};

use super::{POWER_STATE, device, redirect, request, start};

fn once(device: BootDevice) -> BootOverride {
    BootOverride { device, persistent: false, efi: true }
}

#[tokio::test]
async fn the_present_state_decides_which_state_is_requested() {
    let (sim, driver) = start(Behavior { lms: true, ..Behavior::default() });
    assert_eq!(driver.name(), "amt");
    assert_eq!(driver.power().await.unwrap(), Power::Off);
    // Rows: state before, action, requested state, state after.
    for (before, action, requested, after) in [
        (8, PowerAction::On, Some(2), 2),
        (2, PowerAction::On, None, 2),
        (2, PowerAction::Reset, Some(10), 2),
        (2, PowerAction::Cycle, Some(5), 2),
        (2, PowerAction::Soft, Some(12), 8),
        (8, PowerAction::Off, None, 8),
        (8, PowerAction::Reset, Some(2), 2),
        (2, PowerAction::Off, Some(8), 8),
        (8, PowerAction::Cycle, Some(2), 2),
        (4, PowerAction::On, Some(2), 2),
        (4, PowerAction::Off, Some(8), 8),
    ] {
        sim.set_power(before);
        let seen = sim.executed().len();
        driver.set_power(action).await.unwrap();
        let executed = sim.executed()[seen..].to_vec();
        let requests: Vec<_> =
            executed.into_iter().filter(|it| it.contains("RequestPowerStateChange")).collect();
        let expected: Vec<_> = requested.map(request).into_iter().collect();
        assert_eq!(requests, expected, "{action} in state {before}");
        assert_eq!(sim.power(), after, "{action} in state {before}");
    }
    for (state, expected) in
        [(2, Power::On), (4, Power::On), (7, Power::Off), (6, Power::Off), (5, Power::Unknown)]
    {
        sim.set_power(state);
        assert_eq!(driver.power().await.unwrap(), expected, "state {state}");
    }
}

#[tokio::test]
async fn soft_off_without_lms_is_refused_before_it_is_sent() {
    let (sim, driver) = start(Behavior::default());
    sim.set_power(2);
    let error = driver.set_power(PowerAction::Soft).await.unwrap_err();
    assert!(error.sentence().contains("runs Intel LMS"), "{}", error.sentence());
    assert!(!error.is_transient());
    assert_eq!(sim.executed(), [POWER_STATE]);
}

#[tokio::test]
async fn redirection_is_closed_before_a_power_off_and_restored() {
    for refuses_silently in [false, true] {
        let behavior = Behavior { session_open: true, refuses_silently, ..Behavior::default() };
        let (sim, driver) = start(behavior);
        sim.set_power(2);
        driver.set_power(PowerAction::Off).await.unwrap();
        let read = "AMT_RedirectionService.Get".to_owned();
        let expected =
            [POWER_STATE.to_owned(), read, redirect(32_768), request(8), redirect(32_771)];
        assert_eq!(sim.executed(), expected);
        assert_eq!((sim.power(), sim.redirection()), (8, 32_771));
    }
}

#[tokio::test]
async fn a_machine_in_modern_standby_is_woken() {
    let (sim, driver) = start(Behavior::default());
    sim.set_power(2);
    sim.set_standby(3);
    driver.set_power(PowerAction::On).await.unwrap();
    let woken = "IPS_PowerManagementService.RequestOSPowerSavingStateChange 2";
    assert_eq!(sim.executed().last().map(String::as_str), Some(woken));
}

#[tokio::test]
async fn the_next_boot_is_from_the_device_and_only_the_next() {
    let (sim, driver) = start(Behavior::default());
    assert_eq!(driver.boot_device().await.unwrap(), None);
    let seen = sim.executed().len();
    driver.set_boot_device(once(BootDevice::Pxe)).await.unwrap();
    let expected = [
        "AMT_BootCapabilities.Get",
        "AMT_BootSettingData.Get",
        "CIM_BootConfigSetting.ChangeBootOrder",
        "AMT_BootSettingData.Put",
        "CIM_BootService.SetBootConfigRole 1",
        "CIM_BootConfigSetting.ChangeBootOrder PXE Boot",
    ];
    assert_eq!(sim.executed()[seen..], expected);
    // Leftovers of an earlier console session.
    for leftover in ["UseIDER", "UserPasswordBypass"] {
        assert_eq!(sim.boot_setting(leftover), "false", "{leftover}");
    }
    assert_eq!(driver.boot_device().await.unwrap(), Some(once(BootDevice::Pxe)));
    driver.set_power(PowerAction::On).await.unwrap();
    assert_eq!(driver.boot_device().await.unwrap(), None);
    driver.set_power(PowerAction::Reset).await.unwrap();
    assert_eq!(sim.boots(), ["PXE Boot", "default"]);

    for (device, booted) in [
        (BootDevice::Disk, "Hard-drive Boot"),
        (BootDevice::Cdrom, "CD/DVD Boot"),
        (BootDevice::Bios, "setup"),
        (BootDevice::Pxe, "PXE Boot"),
    ] {
        // The setup is selected although another device was set before.
        driver.set_boot_device(once(BootDevice::Disk)).await.unwrap();
        driver.set_boot_device(once(device)).await.unwrap();
        assert_eq!(driver.boot_device().await.unwrap(), Some(once(device)));
        driver.set_power(PowerAction::Cycle).await.unwrap();
        assert_eq!(sim.boots().last().map(String::as_str), Some(booted), "{device}");
    }
}

#[tokio::test]
async fn a_device_that_the_firmware_lacks_changes_nothing() {
    let (sim, driver) = start(Behavior::default());
    let error = driver.set_boot_device(once(BootDevice::Safe)).await.unwrap_err();
    assert!(error.sentence().contains("boot in safe mode"), "{}", error.sentence());
    assert_eq!(sim.executed(), ["AMT_BootCapabilities.Get"]);
    let persistent = BootOverride { persistent: true, ..once(BootDevice::Pxe) };
    let error = driver.set_boot_device(persistent).await.unwrap_err();
    assert!(matches!(error, Error::BootDevice { .. }), "{error}");
    assert_eq!(sim.executed().len(), 1, "nothing was sent");
}

#[tokio::test]
async fn a_machine_is_identified_while_it_is_off() {
    let (sim, _) = start(Behavior { page_items: 1, ..Behavior::default() });
    let device = device(&sim, Security::Plain);
    let identity = device.identity().await.unwrap();
    assert_eq!(identity.uuid.as_deref(), Some("33221100-5544-7766-8899-aabbccddeeff"));
    assert_eq!(identity.model.as_deref(), Some("NUC9V7QNX"));
    assert_eq!(identity.serial.as_deref(), Some("SERIAL000001"));
    assert_eq!(identity.amt_version.as_deref(), Some("12.0.67"));
    assert_eq!(identity.mac.as_deref(), Some("02:00:00:00:00:01"));
    assert_eq!(identity.answers_when_off, Some(true));
    let provisioning = identity.provisioning.unwrap().to_string();
    assert_eq!(provisioning, "activated, admin control mode");
    let inventory = device.inventory().await.unwrap();
    assert_eq!((inventory.memory_bytes, inventory.disk_bytes), (32 << 30, vec![960_197_124_000]));
    assert_eq!(inventory.processors.len(), 1);
    assert_eq!(inventory.bmc_firmware, "Intel AMT 12.0.67");
}

#[tokio::test]
async fn one_login_and_one_connection_serve_many_requests() {
    let (sim, driver) = start(Behavior::default());
    for _ in 0..5 {
        driver.power().await.unwrap();
    }
    // AMT closes the connection after the challenge.
    assert_eq!(sim.connections(), 2);
    assert_eq!(sim.refused_logins(), 0);
}

#[tokio::test]
async fn a_certificate_is_trusted_on_first_use_and_pinned() {
    let sim = AmtSim::start_with_tls(Behavior::default()).unwrap();
    let right = sim.fingerprint().unwrap();
    let first = device(&sim, Security::Tls(Trust::FirstUse));
    assert_eq!(first.fingerprint().await.unwrap(), Some(right));
    assert_eq!(sim.executed(), [""; 0], "no login was sent");
    assert_eq!(first.power().await.unwrap(), Power::Off);
    let pinned = device(&sim, Security::Tls(Trust::Pinned(right)));
    assert_eq!(pinned.power().await.unwrap(), Power::Off);
    let seen = sim.executed().len();
    let wrong = device(&sim, Security::Tls(Trust::Pinned(Fingerprint([1; 32]))));
    let error = wrong.power().await.unwrap_err();
    assert!(error.sentence().contains("the TLS certificate changed"), "{}", error.sentence());
    assert!(!error.is_transient());
    assert_eq!(sim.executed().len(), seen, "no login was sent");
    assert_eq!(first.power().await.unwrap(), Power::Off);
}

/// The engine is provisioned again, or another device has its address.
#[tokio::test]
async fn a_changed_certificate_is_not_trusted() {
    let sim = AmtSim::start_with_tls(Behavior::default()).unwrap();
    let endpoint = sim.endpoint();
    let driver = bmc::registry::open(endpoint.clone());
    driver.power().await.unwrap();
    let address = sim.address();
    drop(sim);
    let other = AmtSim::start_with_tls_at(address.ip(), Behavior::default()).unwrap();
    // The open connection to the former engine is not used again.
    let error = loop {
        match driver.power().await {
            Ok(_) => panic!("the other engine was trusted"),
            Err(error) if error.is_transient() => {}
            Err(error) => break error,
        }
    };
    assert!(error.sentence().contains("the TLS certificate changed"), "{}", error.sentence());
    assert_eq!(other.executed(), [""; 0]);
}

/// The owner wrote `insecureTLS: true`. A certificate that was never verified is not trusted later.
#[tokio::test]
async fn any_certificate_is_accepted_where_the_owner_says_so() {
    let sim = AmtSim::start_with_tls(Behavior::default()).unwrap();
    let endpoint = |sim: &AmtSim| {
        let protocol = bmc::Protocol::Amt(Security::Tls(Trust::Any).into());
        bmc::registry::open(bmc::Endpoint { protocol, ..sim.endpoint() })
    };
    let driver = endpoint(&sim);
    assert_eq!(driver.power().await.unwrap(), Power::Off);
    let address = sim.address();
    drop(sim);
    let other = AmtSim::start_with_tls_at(address.ip(), Behavior::default()).unwrap();
    while driver.power().await.is_err() {}
    assert!(!other.executed().is_empty(), "the other certificate is accepted");
    let right = other.fingerprint().unwrap();
    let first = device(&other, Security::Tls(Trust::FirstUse));
    assert_eq!(first.fingerprint().await.unwrap(), Some(right));
    drop(other);
    let third = AmtSim::start_with_tls_at(address.ip(), Behavior::default()).unwrap();
    let error = loop {
        match first.power().await {
            Ok(_) => panic!("the other engine was trusted"),
            Err(error) if error.is_transient() => {}
            Err(error) => break error,
        }
    };
    assert!(error.sentence().contains("the TLS certificate changed"), "{}", error.sentence());
    assert_eq!(third.executed(), [""; 0]);
    assert_eq!(endpoint(&third).power().await.unwrap(), Power::Off);
}
