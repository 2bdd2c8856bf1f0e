//! Brings the power to a state and confirms the state.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Driver, Error, Power, PowerAction};

/// Intervals of the wait for a state.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Interval between two readings.
    poll: Duration,
    /// After so long without the state following, the request is made again: some BMCs answer OK
    /// while their power sequencer is busy, and forget it.
    ask_again: Duration,
}

const PACE: Pace = Pace { poll: Duration::from_millis(500), ask_again: Duration::from_secs(20) };

/// Next step towards a power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The state is confirmed.
    Done,
    /// Request this change of power now.
    Act(PowerAction),
    /// A change was requested; read again after this time.
    Wait(Duration),
}

/// Decides the next step. `observed` was just read; the last request was made `asked` ago (`None`:
/// no request yet). Idempotent: an existing state is left alone. Wanting [`Power::Unknown`] is done
/// at once; observing it means to wait, because a machine must not lose power over a BMC that
/// cannot tell.
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

/// Brings the power to `want`, and returns when the BMC itself reports it, or with an error at
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
                tracing::debug!(%action, driver = driver.name(), "power change requested");
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
