//! Engines that refuse, lie, sleep, or answer with something else.

use std::time::Duration;

use amt_sim::{AmtSim, Behavior};
use bmc::{
    BootDevice, BootOverride, Driver as _, Error, Power, PowerAction, Security, Trust, ensure,
    registry,
};
use peers::loopback_address;
use stdx::testing::PATIENCE;
use tokio::time::{Instant, advance};

use super::{device, redirect, request, start};
use crate::bmc::clock;

fn requests(sim: &AmtSim) -> Vec<String> {
    let executed = sim.executed().into_iter();
    executed.filter(|it| it.contains("RequestPowerStateChange")).collect()
}

#[tokio::test]
async fn a_wrong_password_is_tried_once() {
    let (sim, _) = start(Behavior::default());
    let mut endpoint = sim.endpoint();
    endpoint.credentials.password = "Wr0ng#Pass".into();
    let driver = registry::open(endpoint);
    let error = driver.set_power(PowerAction::On).await.unwrap_err();
    assert!(error.refuses_login() && !error.is_transient());
    let sentence = error.sentence();
    assert!(sentence.contains("the user name or password of user \"admin\" was rejected"));
    assert!(!format!("{sentence} {error:?}").contains("Wr0ng#Pass"));
    assert_eq!((sim.refused_logins(), sim.power()), (1, 8));
    // The right password works at once.
    assert_eq!(registry::open(sim.endpoint()).power().await.unwrap(), Power::Off);
}

#[tokio::test]
async fn stale_nonces_and_closed_connections_are_renewed() {
    for (nonce_uses, connection_uses) in [(1, 0), (2, 0), (0, 1), (1, 1)] {
        let behavior = Behavior { nonce_uses, connection_uses, ..Behavior::default() };
        let (sim, driver) = start(behavior);
        driver.set_power(PowerAction::On).await.unwrap();
        driver.set_power(PowerAction::Reset).await.unwrap();
        assert_eq!(requests(&sim), [request(2), request(10)]);
        assert_eq!(sim.refused_logins(), 0);
    }
}

#[tokio::test]
async fn the_return_value_decides_and_not_http_200() {
    for (value, words, is_transient) in [
        (1, "return value 1: internal error (AMT) or not supported (DMTF)", false),
        (2, "return value 2: not ready in the present state (AMT)", false),
        (38, "return value 38: too many writes to the flash memory", false),
        (4099, "return value 4099: busy", true),
    ] {
        let (sim, driver) = start(Behavior { power_return: Some(value), ..Behavior::default() });
        let error = driver.set_power(PowerAction::On).await.unwrap_err();
        assert!(error.sentence().contains(words), "{}", error.sentence());
        assert_eq!(error.is_transient(), is_transient, "{value}");
        assert_eq!((sim.power(), requests(&sim).len()), (8, 1));
    }
}

#[tokio::test]
async fn a_refused_boot_leaves_no_half_of_the_options() {
    let (sim, driver) = start(Behavior { role_return: Some(3), ..Behavior::default() });
    let boot = BootOverride { device: BootDevice::Pxe, persistent: false, efi: true };
    let error = driver.set_boot_device(boot).await.unwrap_err();
    assert!(error.sentence().contains("return value 3: busy"), "{}", error.sentence());
    assert!(error.is_transient());
    let last = sim.executed().pop();
    assert_eq!(last.as_deref(), Some("CIM_BootConfigSetting.ChangeBootOrder"));
    assert_eq!(driver.boot_device().await.unwrap(), None);
}

#[tokio::test]
async fn missing_consent_is_said_in_words() {
    let (sim, driver) = start(Behavior { consent: (u32::MAX, 0), ..Behavior::default() });
    let error = driver.set_power(PowerAction::On).await.unwrap_err();
    let sentence = error.sentence();
    assert!(sentence.contains("requires the consent of a user"), "{sentence}");
    assert!(sentence.contains("admin control mode"), "{sentence}");
    // Here a fault instead of a return value.
    let boot = BootOverride { device: BootDevice::Pxe, persistent: false, efi: true };
    let error = driver.set_boot_device(boot).await.unwrap_err();
    assert!(error.sentence().contains("requires the consent of a user"), "{}", error.sentence());
    sim.behave(|behavior| behavior.consent = (u32::MAX, 3));
    driver.set_boot_device(boot).await.unwrap();
    driver.set_power(PowerAction::On).await.unwrap();
    assert_eq!(sim.boots(), ["PXE Boot"]);
}

/// AMT 10 answers `Get` but not `Enumerate` for some classes; others do not exist in old firmware.
#[tokio::test]
async fn old_firmware_with_fewer_classes_is_controlled() {
    let refused = ["AMT_EthernetPortSettings", "AMT_GeneralSettings", "AMT_BootSettingData"];
    let behavior = Behavior {
        enumerations_refused: refused.into(),
        absent: vec!["AMT_RedirectionService", "IPS_OptInService", "IPS_PowerManagementService"],
        octet_stream: true,
        ..Behavior::default()
    };
    let (sim, driver) = start(behavior);
    driver.set_power(PowerAction::On).await.unwrap();
    driver.set_power(PowerAction::On).await.unwrap();
    driver.set_power(PowerAction::Off).await.unwrap();
    assert_eq!(requests(&sim), [request(2), request(8)]);
    let identity = device(&sim, Security::Plain).identity().await.unwrap();
    assert_eq!((identity.host_name.as_deref(), identity.consent), (Some("nuc-1"), None));
    sim.behave(|behavior| behavior.absent.push("CIM_AssociatedPowerManagementService"));
    let error = driver.power().await.unwrap_err();
    assert!(error.sentence().contains("does not have the class"), "{}", error.sentence());
}

#[tokio::test]
async fn a_power_state_is_what_the_engine_reports_and_not_what_it_promised() {
    let (sim, driver) = start(Behavior { lies: true, ..Behavior::default() });
    driver.set_power(PowerAction::On).await.unwrap();
    assert_eq!(driver.power().await.unwrap(), Power::Off);
    assert_eq!(requests(&sim), [request(2)]);
}

#[tokio::test]
async fn a_late_change_is_awaited() {
    let (sim, driver) = start(Behavior { late_readings: 2, ..Behavior::default() });
    ensure(driver.as_ref(), Power::On, Instant::now() + PATIENCE).await.unwrap();
    assert_eq!(requests(&sim), [request(2)]);
}

#[tokio::test]
async fn an_executed_request_without_an_answer_is_never_repeated() {
    let (sim, driver) = start(Behavior { loses_answers: true, ..Behavior::default() });
    // On can be confirmed by a reading.
    ensure(driver.as_ref(), Power::On, Instant::now() + PATIENCE).await.unwrap();
    assert_eq!(requests(&sim), [request(2)]);
    for action in [PowerAction::Reset, PowerAction::Cycle] {
        let error = driver.set_power(action).await.unwrap_err();
        assert!(matches!(error, Error::Unanswered { .. }), "{error}");
        assert!(!error.is_transient());
    }
    assert_eq!(requests(&sim), [request(2), request(10), request(5)]);
    // The redirection service was closed for the cycle, and is restored.
    driver.power().await.unwrap();
    assert_eq!(sim.redirection(), 32_771);
}

#[tokio::test]
async fn a_canceled_power_off_restores_the_redirection_at_the_next_request() {
    let (sim, driver) = start(Behavior { loses_answers: true, ..Behavior::default() });
    sim.set_power(2);
    let off = tokio::spawn({
        let driver = std::sync::Arc::clone(&driver);
        async move { driver.set_power(PowerAction::Off).await }
    });
    clock::until(|| sim.executed().contains(&redirect(32_768))).await;
    off.abort();
    let _ = off.await;
    driver.power().await.unwrap();
    assert_eq!(sim.redirection(), 32_771);
}

#[tokio::test]
async fn answers_that_are_not_soap_are_errors_in_words() {
    for (body, words) in [
        ("", "is not valid"),
        ("<html><body>Intel AMT</body></html>", "not a SOAP 1.2 envelope"),
        ("<a:Envelope xmlns:a=\"http://www.w3.org/2003/05/soap-envelope\">", "not valid XML"),
        (
            "<a:Envelope xmlns:a=\"http://www.w3.org/2003/05/soap-envelope\"><a:Body><x/></a:Body>\
             </a:Envelope>",
            "expected the element CIM_AssociatedPowerManagementService, found \"x\"",
        ),
    ] {
        let (_sim, driver) = start(Behavior { garbled: Some(body.into()), ..Behavior::default() });
        let error = driver.power().await.unwrap_err();
        assert!(error.sentence().contains(words), "{}", error.sentence());
    }
}

#[tokio::test]
async fn a_user_without_the_right_to_redirection_can_switch_off() {
    let (sim, driver) = start(Behavior { redirection_denied: true, ..Behavior::default() });
    sim.set_power(2);
    driver.set_power(PowerAction::Off).await.unwrap();
    assert_eq!((sim.power(), sim.redirection()), (8, 32_771));
    // An open session of another user is then an error in words.
    sim.set_power(2);
    sim.behave(|behavior| behavior.session_open = true);
    let error = driver.set_power(PowerAction::Off).await.unwrap_err();
    assert!(error.sentence().contains("not ready in the present state"), "{}", error.sentence());
}

#[tokio::test]
async fn pages_of_the_web_server_are_errors_in_words() {
    for (status, words, is_transient) in [
        (400, "does not have the class", false),
        (403, "the user \"admin\" does not have the permission", false),
        (404, "HTTP status 404: This page cannot be shown.", false),
        (503, "HTTP status 503", true),
    ] {
        let (_sim, driver) = start(Behavior { page: Some(status), ..Behavior::default() });
        let error = driver.power().await.unwrap_err();
        assert!(error.sentence().contains(words), "{}", error.sentence());
        assert_eq!(error.is_transient(), is_transient, "{status}");
        assert_eq!(error.refuses_login(), status == 403);
    }
}

#[tokio::test]
async fn a_closed_port_is_said_with_the_way_out() {
    let (sim, _) = start(Behavior::default());
    let mut endpoint = sim.endpoint();
    endpoint.address.host = loopback_address().unwrap().to_string();
    let error = registry::open(endpoint).power().await.unwrap_err();
    let sentence = error.sentence();
    assert!(sentence.contains("port 16992 is closed"), "{sentence}");
    assert!(sentence.contains("hostScheme https"), "{sentence}");
    assert!(error.is_transient());
    // TLS to a port without TLS.
    let error = device(&sim, Security::Tls(Trust::FirstUse)).power().await.unwrap_err();
    assert!(error.sentence().contains("TLS handshake"), "{}", error.sentence());
    assert_eq!(sim.executed(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_asleep_ends_the_wait() {
    let (sim, driver) = start(Behavior { asleep: true, ..Behavior::default() });
    let _stopped = clock::stop();
    let mut reading = driver.power();
    let start = Instant::now();
    let error = loop {
        tokio::select! {
            biased;
            read = &mut reading => break read.unwrap_err(),
            () = clock::until(|| sim.connections() == 1) => advance(Duration::from_secs(1)).await,
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the wait has no end");
    };
    assert!(error.sentence().contains("no answer to CIM_Assoc"), "{}", error.sentence());
    assert!(error.is_transient());
    assert_eq!(sim.executed(), [""; 0]);
}
