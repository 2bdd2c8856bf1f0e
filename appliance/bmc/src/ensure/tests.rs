//! Tests of every row of the decision, and of the loop with a BMC that is slow, lies or fails.

use super::*;
use crate::fake::{Failure, Fake, Mode};
use crate::{Address, BootControl, BootOverride, Capabilities, IpmiError, Pending};

/// Intervals 500 times shorter than [`PACE`], without a repeated request.
const FAST: Pace = Pace { poll: Duration::from_millis(1), ask_again: Duration::MAX };

async fn run(fake: &Fake, want: Power) -> Result<(), Error> {
    ensure_at(FAST, fake, want, Instant::now() + Duration::from_secs(60)).await
}

#[test]
fn the_whole_table() {
    let second = Some(Duration::from_secs(1));
    let rows = [
        (Power::On, Power::On, None, Step::Done),
        (Power::On, Power::Off, None, Step::Act(PowerAction::On)),
        (Power::On, Power::Unknown, None, Step::Wait(PACE.poll)),
        (Power::On, Power::On, second, Step::Done),
        (Power::On, Power::Off, second, Step::Wait(PACE.poll)),
        (Power::On, Power::Unknown, second, Step::Wait(PACE.poll)),
        (Power::On, Power::Off, Some(PACE.ask_again), Step::Act(PowerAction::On)),
        (Power::On, Power::Unknown, Some(PACE.ask_again), Step::Wait(PACE.poll)),
        (Power::Off, Power::Off, None, Step::Done),
        (Power::Off, Power::On, None, Step::Act(PowerAction::Off)),
        (Power::Off, Power::Unknown, None, Step::Wait(PACE.poll)),
        (Power::Off, Power::Off, second, Step::Done),
        (Power::Off, Power::On, second, Step::Wait(PACE.poll)),
        (Power::Off, Power::On, Some(PACE.ask_again), Step::Act(PowerAction::Off)),
        (Power::Unknown, Power::On, None, Step::Done),
        (Power::Unknown, Power::Off, second, Step::Done),
        (Power::Unknown, Power::Unknown, None, Step::Done),
    ];
    for (want, observed, asked, step) in rows {
        assert_eq!(decide(want, observed, asked), step, "{want} {observed} {asked:?}");
    }
}

#[test]
fn a_port_without_a_device_is_switched_on_and_off() {
    let second = Some(Duration::from_secs(1));
    for (want, observed, asked, step) in [
        (Power::On, Power::Unknown, None, Step::Act(PowerAction::On)),
        (Power::Off, Power::Unknown, None, Step::Act(PowerAction::Off)),
        (Power::Off, Power::Unknown, second, Step::Wait(PACE.poll)),
        (Power::Off, Power::Unknown, Some(PACE.ask_again), Step::Act(PowerAction::Off)),
        (Power::Off, Power::Off, None, Step::Done),
        (Power::On, Power::On, None, Step::Done),
    ] {
        let found = PACE.decide(want, observed, asked, Confirmation::Switch);
        assert_eq!(found, step, "{want} {observed} {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn leaves_alone_what_is_there() {
    let fake = Fake::new(Power::Off);
    run(&fake, Power::Off).await.unwrap();
    assert_eq!(fake.actions(), []);
}

#[tokio::test(start_paused = true)]
async fn acts_once_and_waits_for_a_slow_one() {
    let fake = Fake::new(Power::On);
    fake.set_mode(Mode::Slow(5));
    run(&fake, Power::Off).await.unwrap();
    assert_eq!(fake.actions(), [PowerAction::Off]);
    assert_eq!(fake.real_power(), Power::Off);
}

#[tokio::test(start_paused = true)]
async fn a_liar_is_asked_again_and_never_believed() {
    let fake = Fake::new(Power::On);
    fake.set_mode(Mode::Lying);
    let pace = Pace { ask_again: Duration::from_millis(10), ..FAST };
    let deadline = Instant::now() + Duration::from_secs(1);
    let error = ensure_at(pace, &fake, Power::Off, deadline).await.unwrap_err();
    assert!(matches!(error, Error::NotConfirmed { want: Power::Off, last: Power::On, .. }));
    assert!((2..=100).contains(&fake.actions().len()), "{:?}", fake.actions());
}

/// BMC without power: each reading fails after 3.5 s, as with IPMI.
struct Unpowered;

impl Driver for Unpowered {
    fn name(&self) -> &'static str {
        "unpowered"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            power: &[],
            boot: BootControl::None,
            features: Vec::new(),
            missing: Vec::new(),
            weakness: None,
        }
    }

    fn power(&self) -> Pending<'_, Power> {
        Box::pin(async {
            let after = Duration::from_millis(3500);
            tokio::time::sleep(after).await;
            let address = (&Address::ipmi("bmc")).into();
            Err(IpmiError::NoAnswer { address, step: "Open Session", after }.into())
        })
    }

    fn set_power(&self, _action: PowerAction) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn set_boot_device(&self, _boot: BootOverride) -> Pending<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        Box::pin(async { Ok(None) })
    }
}

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_change_has_the_last_error_as_its_source() {
    let deadline = Instant::now() + Duration::from_secs(60);
    let error = ensure_at(FAST, &Unpowered, Power::Off, deadline).await.unwrap_err();
    let Error::NotConfirmed { last: Power::Unknown, source: Some(source), .. } = error else {
        panic!("{error:?}");
    };
    let Error::Ipmi(source) = *source else { panic!("{source:?}") };
    assert!(matches!(*source, IpmiError::NoAnswer { step: "Open Session", .. }), "{source:?}");
}

#[tokio::test(start_paused = true)]
async fn silence_is_waited_out_and_a_wrong_password_is_not() {
    let fake = Fake::new(Power::Off);
    fake.fail_next(7, Failure::NoAnswer);
    run(&fake, Power::On).await.unwrap();
    assert_eq!(fake.actions(), [PowerAction::On]);

    fake.set_mode(Mode::Failing(Failure::WrongPassword));
    let before = fake.calls().len();
    let error = run(&fake, Power::Off).await.unwrap_err();
    assert!(error.refuses_login(), "{error}");
    assert_eq!(fake.calls().len(), before + 1, "a wrong password is tried once");
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_not_a_second_action() {
    let fake = Fake::new(Power::Off);
    fake.set_mode(Mode::ReplyLost(Failure::Timeout));
    run(&fake, Power::On).await.unwrap();
    assert_eq!(fake.actions(), [PowerAction::On]);
}
