//! Change of the power state of a machine, with confirmation by the BMC.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Confirmation, Driver, Error, Power, PowerAction};

/// Intervals at which a power state is read and requested.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// Interval between two readings of the power state.
    poll: Duration,
    /// Time after which an unconfirmed change is requested again: some BMCs answer OK while their
    /// power sequencer is busy, and lose the request.
    ask_again: Duration,
}

const PACE: Pace = Pace { poll: Duration::from_millis(500), ask_again: Duration::from_secs(20) };

/// Next step toward a power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The BMC reports the requested state.
    Done,
    /// Request this power change now.
    Act(PowerAction),
    /// Wait for this time, then read the power state again.
    Wait(Duration),
}

/// Decides the next step from the state `observed` and the time `asked` since the last request
/// (`None`: no request yet). A machine in the state `want` gets no request. [`Power::Unknown`] as
/// `want` means done; as `observed` it means wait, because a machine must not lose power when its
/// BMC does not know the state. [`ensure()`] alone switches a machine on whose driver has
/// [`Confirmation::Sighting`]: its state is rarely known.
///
/// ```
/// use bmc::{decide, Power, PowerAction, Step};
/// assert_eq!(decide(Power::Off, Power::Off, None), Step::Done);
/// assert_eq!(decide(Power::Off, Power::On, None), Step::Act(PowerAction::Off));
/// ```
pub fn decide(want: Power, observed: Power, asked: Option<Duration>) -> Step {
    PACE.decide(want, observed, asked, Confirmation::Report)
}

impl Pace {
    fn decide(
        self,
        want: Power,
        observed: Power,
        asked: Option<Duration>,
        confirmation: Confirmation,
    ) -> Step {
        let action = match want {
            Power::On => PowerAction::On,
            Power::Off => PowerAction::Off,
            Power::Unknown => return Step::Done,
        };
        if observed == want {
            return Step::Done;
        }
        let is_harmless = match confirmation {
            Confirmation::Report => false,
            Confirmation::Sighting { .. } => want == Power::On,
            Confirmation::Switch => true,
        };
        match (observed, asked) {
            (Power::Unknown, _) if !is_harmless => Step::Wait(self.poll),
            (_, None) => Step::Act(action),
            (_, Some(ago)) if ago >= self.ask_again => Step::Act(action),
            (_, Some(_)) => Step::Wait(self.poll),
        }
    }
}

/// Changes the power to `want`, and returns when the BMC reports this state. Errors that may pass,
/// such as no response or a busy BMC, are retried until `deadline`. A wrong password or a refusal
/// is an error at once.
///
/// # Errors
/// The driver fails, or the state is not confirmed before `deadline` ([`Error::NotConfirmed`]).
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
    let mut source = None;
    loop {
        let turn = async {
            let observed = driver.power().await?;
            last = observed;
            let step =
                pace.decide(want, observed, asked.map(|at| at.elapsed()), driver.confirmation());
            if let Step::Act(action) = step {
                tracing::debug!(%action, driver = driver.name(), "power change requested");
                asked = Some(Instant::now());
                driver.set_power(action).await?;
            }
            Ok::<_, Error>(step)
        };
        match tokio::time::timeout_at(deadline, turn).await {
            Ok(Ok(Step::Done)) => return Ok(()),
            Ok(Ok(Step::Act(_) | Step::Wait(_))) if Instant::now() + pace.poll < deadline => {
                source = None;
            }
            Ok(Err(error)) if error.is_transient() && Instant::now() + pace.poll < deadline => {
                source = Some(Box::new(error));
            }
            Ok(Err(error)) => return Err(error),
            Ok(Ok(_)) | Err(_) => {
                let (after, reason) = (start.elapsed(), driver.power_reason());
                return Err(Error::NotConfirmed { want, last, reason, after, source });
            }
        }
        tokio::time::sleep(pace.poll).await;
    }
}

#[cfg(test)]
mod tests;
