//! Circuit breaker of one BMC: after several requests without a response, requests fail at once for
//! some seconds. Then one request probes the BMC.

use std::time::Duration;

use bmc::Error;
use tokio::time::Instant;

/// Failures in a row after which the breaker opens.
pub const FAILURES_MAX: u32 = 5;
/// Time for which the breaker is open first; each failed probe doubles the time.
const OPEN_FIRST: Duration = Duration::from_secs(2);
/// Maximum time for which the breaker is open.
const OPEN_MAX: Duration = Duration::from_secs(30);

/// State of the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// Requests are sent: fewer than [`FAILURES_MAX`] have failed in a row.
    Closed {
        /// Failures since the last response.
        failures: u32,
    },
    /// Requests fail until this time. The first request after this time is the probe.
    Open {
        /// Time of the probe.
        until: Instant,
        /// Time for which the breaker was opened.
        wait: Duration,
    },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// Result of a request, for the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The BMC responded, also with a refusal.
    Response,
    /// The BMC did not respond, or sent an invalid response.
    NoResponse,
}

impl Outcome {
    /// Classifies the result of a driver.
    pub fn of<T>(result: &Result<T, Error>) -> Self {
        match result {
            Err(Error::Unanswered { .. }) => Self::NoResponse,
            Err(Error::Ipmi(error)) if error.lacks_response() => Self::NoResponse,
            Err(Error::Poe { source, .. }) if source.is_silence() => Self::NoResponse,
            Err(error @ (Error::Amt { .. } | Error::Webhook { .. })) if error.is_transient() => {
                Self::NoResponse
            }
            _ => Self::Response,
        }
    }
}

impl Breaker {
    /// Returns true if a request may be sent.
    pub fn permits(self, now: Instant) -> bool {
        match self {
            Self::Closed { .. } => true,
            Self::Open { until, .. } => now >= until,
        }
    }

    /// Returns the state after a request. `vary` shortens the wait, differently for each BMC.
    pub fn after(
        self,
        outcome: Outcome,
        now: Instant,
        vary: impl Fn(Duration) -> Duration,
    ) -> Self {
        let open = |wait| Self::Open { until: now + vary(wait), wait };
        match (self, outcome) {
            (_, Outcome::Response) => Self::default(),
            (Self::Closed { failures }, Outcome::NoResponse) if failures + 1 < FAILURES_MAX => {
                Self::Closed { failures: failures + 1 }
            }
            (Self::Closed { .. }, Outcome::NoResponse) => open(OPEN_FIRST),
            (Self::Open { wait, .. }, Outcome::NoResponse) => open(OPEN_MAX.min(wait * 2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bmc::{Address, CipherSuite, IpmiError};
    use tokio::time::Instant;

    use super::{Breaker, FAILURES_MAX, OPEN_FIRST, OPEN_MAX, Outcome};

    #[test]
    fn every_state_and_outcome_has_a_next_state() {
        let now = Instant::now();
        let closed = |failures| Breaker::Closed { failures };
        let open = |wait: Duration| Breaker::Open { until: now + wait, wait };
        let rows = [
            (closed(0), Outcome::Response, closed(0)),
            (closed(4), Outcome::Response, closed(0)),
            (closed(0), Outcome::NoResponse, closed(1)),
            (closed(FAILURES_MAX - 2), Outcome::NoResponse, closed(FAILURES_MAX - 1)),
            (closed(FAILURES_MAX - 1), Outcome::NoResponse, open(OPEN_FIRST)),
            (open(OPEN_FIRST), Outcome::NoResponse, open(OPEN_FIRST * 2)),
            (open(OPEN_MAX), Outcome::NoResponse, open(OPEN_MAX)),
            (open(OPEN_MAX), Outcome::Response, closed(0)),
        ];
        for (before, outcome, after) in rows {
            assert_eq!(before.after(outcome, now, |wait| wait), after, "{before:?} {outcome:?}");
        }
        assert!(closed(FAILURES_MAX - 1).permits(now));
        assert!(!open(OPEN_FIRST).permits(now));
        assert!(open(OPEN_FIRST).permits(now + OPEN_FIRST));
    }

    #[test]
    fn a_refusal_is_a_response() {
        let address = || (&Address::ipmi("bmc")).into();
        let silence = IpmiError::Timeout { address: address(), step: "a", after: OPEN_FIRST };
        assert_eq!(Outcome::of::<()>(&Err(silence.into())), Outcome::NoResponse);
        let refusal = IpmiError::WrongPassword { address: address(), username: "admin".into() };
        assert_eq!(Outcome::of::<()>(&Err(refusal.into())), Outcome::Response);
        assert_eq!(Outcome::of(&Ok(CipherSuite::Three)), Outcome::Response);
    }
}
