//! Power that is known to be on or off, not only asked to be.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Driver, Error, Power, PowerAction};

/// How patiently a state is awaited.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Between two readings.
    poll: Duration,
    /// After so long without the state following, the request is made again: some BMCs answer OK
    /// while their power sequencer is busy, and forget it.
    ask_again: Duration,
}

const PACE: Pace = Pace { poll: Duration::from_millis(500), ask_again: Duration::from_secs(20) };

/// What to do next about a machine's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The state is confirmed.
    Done,
    /// Ask for this change.
    Act(PowerAction),
    /// The change was asked for; read again after so long.
    Wait(Duration),
}

/// What to do, with `observed` just read and the last request made `asked` ago (`None`: no request
/// yet). Idempotent: a state that is there already is left alone. [`Power::Unknown`] is no state
/// to bring about, so wanting it is done at once; observing it is a reason to wait, not to act,
/// because a machine must not lose its power over a BMC that cannot tell.
///
/// ```
/// use bmc::{decide, Power, PowerAction, Step};
/// assert_eq!(decide(Power::Off, Power::Off, None), Step::Done);
/// assert_eq!(decide(Power::Off, Power::On, None), Step::Act(PowerAction::Off));
/// ```
pub fn decide(want: Power, observed: Power, asked: Option<Duration>) -> Step {
    PACE.decide(want, observed, asked)
}

impl Pace {
    fn decide(self, want: Power, observed: Power, asked: Option<Duration>) -> Step {
        let action = match want {
            Power::On => PowerAction::On,
            Power::Off => PowerAction::Off,
            Power::Unknown => return Step::Done,
        };
        if observed == want {
            return Step::Done;
        }
        match (observed, asked) {
            (Power::Unknown, _) => Step::Wait(self.poll),
            (_, None) => Step::Act(action),
            (_, Some(ago)) if ago >= self.ask_again => Step::Act(action),
            (_, Some(_)) => Step::Wait(self.poll),
        }
    }
}

/// Bring the power to `want` and return when the BMC itself says so, or with an error at
/// `deadline`. Silence and a busy BMC are waited out; a wrong password or a refusal is not.
///
/// # Errors
/// The driver's, or [`Error::NotConfirmed`] when the state did not follow in time.
pub async fn ensure(driver: &dyn Driver, want: Power, deadline: Instant) -> Result<(), Error> {
    ensure_at(PACE, driver, want, deadline).await
}

async fn ensure_at(
    pace: Pace,
    driver: &dyn Driver,
    want: Power,
    deadline: Instant,
) -> Result<(), Error> {
    let start = Instant::now();
    let mut last = Power::Unknown;
    let mut asked: Option<Instant> = None;
    loop {
        let turn = async {
            let observed = driver.power().await?;
            last = observed;
            let step = pace.decide(want, observed, asked.map(|at| at.elapsed()));
            if let Step::Act(action) = step {
                tracing::debug!(%action, driver = driver.name(), "power change asked");
                asked = Some(Instant::now());
                driver.set_power(action).await?;
            }
            Ok::<_, Error>(step)
        };
        let out_of_time = |last| Error::NotConfirmed { want, last, after: start.elapsed() };
        match tokio::time::timeout_at(deadline, turn).await {
            Ok(Ok(Step::Done)) => return Ok(()),
            Ok(Ok(Step::Act(_) | Step::Wait(_))) if Instant::now() + pace.poll < deadline => {}
            Ok(Err(error)) if error.is_transient() && Instant::now() + pace.poll < deadline => {}
            Ok(Err(error)) => return Err(error),
            Ok(Ok(_)) | Err(_) => return Err(out_of_time(last)),
        }
        tokio::time::sleep(pace.poll).await;
    }
}

#[cfg(test)]
mod tests;
