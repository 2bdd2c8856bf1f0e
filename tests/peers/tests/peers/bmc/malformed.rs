//! Our client against malformed datagrams in the middle of a session.

use bmc::{BootDevice, Error, IpmiError, Power, PowerAction, registry};
use peers::bmc_sim::{BmcSim, Config, Noise};

use super::{boot, cause, clock};

/// Damaged, cut and forged copies of an answer arrive before the answer.
#[tokio::test(start_paused = true)]
async fn malformed_copies_do_not_hide_the_answer() {
    let sim = BmcSim::start(Config { noise: Noise::Before, ..Config::default() }).unwrap();
    let driver = registry::open(sim.endpoint(None));
    clock::paced(&sim, async {
        driver.set_power(PowerAction::On).await.unwrap();
        assert_eq!(driver.power().await.unwrap(), Power::On);
        let wanted = boot(BootDevice::Pxe, false, true);
        driver.set_boot_device(wanted).await.unwrap();
        assert_eq!(driver.boot_device().await.unwrap(), Some(wanted));
    })
    .await;
    assert_eq!(sim.chassis().controls, [1]);
    assert_eq!(sim.traffic().opened, 1);
}

/// The session is lost as with a BMC that restarted; a power command is not sent again.
#[tokio::test(start_paused = true)]
async fn malformed_answers_in_a_session_end_it_and_repeat_no_power_command() {
    let cuts = [1, 7].map(Noise::Cut);
    for noise in [Noise::Instead].into_iter().chain(cuts) {
        let sim = BmcSim::start(Config::default()).unwrap();
        let driver = registry::open(sim.endpoint(None));
        clock::paced(&sim, async {
            driver.set_power(PowerAction::On).await.unwrap();
            sim.set_noise(noise);
            let error = driver.power().await.unwrap_err();
            assert!(matches!(cause(&error), IpmiError::Hostile { .. }), "{noise:?}: {error}");
            assert!(error.is_transient(), "{noise:?}: {error}");
            // The first request of the action reads the state. It fails, so nothing is executed.
            let error = driver.set_power(PowerAction::Cycle).await.unwrap_err();
            assert!(matches!(cause(&error), IpmiError::Hostile { .. }), "{noise:?}: {error}");
            sim.set_noise(Noise::None);
            assert_eq!(driver.power().await.unwrap(), Power::On, "{noise:?}");
            driver.set_power(PowerAction::Cycle).await.unwrap();
        })
        .await;
        assert_eq!(sim.chassis().controls, [1, 2], "{noise:?}");
    }
}

/// The BMC has received the command, so no other session repeats it.
#[tokio::test(start_paused = true)]
async fn a_power_command_with_a_malformed_answer_may_have_been_done() {
    let sim = BmcSim::start(Config { noise: Noise::InsteadOfPower, ..Config::default() }).unwrap();
    let driver = registry::open(sim.endpoint(None));
    let done = clock::paced(&sim, driver.set_power(PowerAction::On)).await;
    let error = done.unwrap_err();
    assert!(matches!(cause(&error), IpmiError::Hostile { .. }) && error.is_transient(), "{error}");
    assert_eq!(clock::paced(&sim, driver.power()).await.unwrap(), Power::On);
    let opened = sim.traffic().opened;
    let error = clock::paced(&sim, driver.set_power(PowerAction::Cycle)).await.unwrap_err();
    assert!(matches!(error, Error::Unanswered { .. }) && !error.is_transient(), "{error}");
    assert!(error.sentence().contains("may have been done"), "{}", error.sentence());
    assert_eq!(sim.traffic().opened, opened);
}
