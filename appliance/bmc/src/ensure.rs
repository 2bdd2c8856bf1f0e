//! Power that is known to be on or off, not only asked to be.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Driver, Error, Power, PowerAction};

/// Between two readings while a state is awaited.
const POLL: Duration = Duration::from_millis(500);

/// After so long without the state following, the request is made again: some BMCs answer OK while
/// their power sequencer is busy, and forget it.
const ASK_AGAIN: Duration = Duration::from_secs(20);

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
    let action = match want {
        Power::On => PowerAction::On,
        Power::Off => PowerAction::Off,
        Power::Unknown => return Step::Done,
    };
    if observed == want {
        return Step::Done;
    }
    match (observed, asked) {
        (Power::Unknown, _) => Step::Wait(POLL),
        (_, None) => Step::Act(action),
        (_, Some(ago)) if ago >= ASK_AGAIN => Step::Act(action),
        (_, Some(_)) => Step::Wait(POLL),
    }
}

/// Bring the power to `want` and return when the BMC itself says so, or with an error at
/// `deadline`. Silence and a busy BMC are waited out; a wrong password or a refusal is not.
///
/// # Errors
/// The driver's, or [`Error::NotConfirmed`] when the state did not follow in time.
pub async fn ensure(driver: &dyn Driver, want: Power, deadline: Instant) -> Result<(), Error> {
    let start = Instant::now();
    let mut last = Power::Unknown;
    let mut asked: Option<Instant> = None;
    loop {
        let tried = match tokio::time::timeout_at(deadline, driver.power()).await {
            Err(_) => return Err(Error::NotConfirmed { want, last, after: start.elapsed() }),
            Ok(Ok(observed)) => {
                last = observed;
                match decide(want, observed, asked.map(|at| at.elapsed())) {
                    Step::Done => return Ok(()),
                    Step::Wait(_) => Ok(()),
                    Step::Act(action) => {
                        tracing::debug!(%action, driver = driver.name(), "power change asked");
                        asked = Some(Instant::now());
                        match tokio::time::timeout_at(deadline, driver.set_power(action)).await {
                            Err(_) => Ok(()),
                            Ok(done) => done,
                        }
                    }
                }
            }
            Ok(Err(error)) => Err(error),
        };
        if let Err(error) = tried
            && (!error.is_transient() || Instant::now() + POLL >= deadline)
        {
            return Err(error);
        }
        if Instant::now() >= deadline {
            return Err(Error::NotConfirmed { want, last, after: start.elapsed() });
        }
        tokio::time::sleep_until((Instant::now() + POLL).min(deadline)).await;
    }
}

#[cfg(test)]
mod tests;
