//! Our client against a BMC whose sessions are all held by other clients.

use bmc::{IpmiError, Power, PowerAction, registry};
use peers::bmc_sim::{BmcSim, Config, FullAt};

use super::{cause, clock};

/// Sessions of the simulated BMC.
const ALL: usize = 4;

#[tokio::test(start_paused = true)]
async fn a_bmc_without_a_free_session_is_asked_once_and_later_again() {
    // Rows: step; words of the error; datagrams to the BMC. The first datagram requests the list
    // of suites. A RAKP message 4 with an error may also mean that the two sides disagree on the
    // random numbers, so the client exchanges keys three times.
    let rows = [
        (FullAt::Open, "refused Open Session: no session is free (0x01)", 1 + 1),
        (FullAt::Role, "refused RAKP message 1: no session is free at that role (0x0b)", 1 + 2),
        (FullAt::Proof, "refused RAKP message 3: no session is free (0x01)", 1 + 3 * 3),
        (FullAt::Privilege, "refused Set Session Privilege Level: busy (0xc0)", 1 + 4 + 1),
    ];
    for (full_at, words, datagrams) in rows {
        let sim = BmcSim::start(Config { full_at, ..Config::default() }).unwrap();
        let driver = registry::open(sim.endpoint(None));
        sim.occupy(ALL);
        let error = clock::paced(&sim, driver.power()).await.unwrap_err();
        let said = error.sentence();
        assert!(said.contains(words), "{full_at:?}: {said}");
        let is_session = matches!(cause(&error), IpmiError::SessionRefused { .. });
        assert_eq!(said.contains("other clients hold"), is_session, "{full_at:?}: {said}");
        assert!(error.is_transient() && !error.refuses_login(), "{full_at:?}: {said}");
        // The session in which the privilege was refused is closed, without waiting.
        clock::until(|| sim.sessions() == 0 && sim.traffic().received >= datagrams).await;
        assert_eq!(sim.traffic().received, datagrams, "{full_at:?}");

        sim.occupy(ALL - 1);
        let power = clock::paced(&sim, driver.power()).await.unwrap();
        assert_eq!(power, Power::Off, "{full_at:?}");
    }
}

/// The commands keep their own session. A console needs a second one.
#[tokio::test(start_paused = true)]
async fn a_console_without_a_free_session_disturbs_no_command() {
    let _stopped = clock::stop();
    let sim = BmcSim::start(Config::default()).unwrap();
    let driver = registry::open(sim.endpoint(None));
    sim.occupy(ALL - 1);
    driver.power().await.unwrap();
    let error = driver.console().await.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::SessionRefused { .. }), "{error}");
    assert!(error.is_transient(), "{error}");
    driver.set_power(PowerAction::On).await.unwrap();
    assert!(sim.chassis().on);
    assert_eq!((sim.traffic().opened, sim.sessions()), (1, 1));
}
