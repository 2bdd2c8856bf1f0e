//! Rules that turn evidence into a power state with its reason.

use std::time::Duration;

use bmc::Power;

use super::{Evidence, FRESH, OFF_AFTER, SETTLE, Sighting, Source};

/// Reliability of a power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The state is unknown.
    Nothing,
    /// The state follows from the requests of the machine, or from their end.
    Inferred,
    /// The BMC reports the state, and no request contradicts the report.
    Reported,
}

/// Power state of a machine with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// Power state; unknown without evidence, and if evidence contradicts itself.
    pub power: Power,
    /// Reliability of the state.
    pub confidence: Confidence,
    /// Reason with the age of each request, as a clause without a full stop.
    pub reason: String,
    /// Reason without ages, which stays the same while the evidence is of the same kind.
    pub summary: String,
    /// Time since the last request of the machine that is not part of a shutdown.
    pub silence: Option<Duration>,
}

/// Returns the power state that follows from `evidence`.
pub fn conclude(evidence: &Evidence) -> Conclusion {
    let last = last_sighting(evidence);
    let silence = last.map(|sighting| sighting.age);
    let (power, confidence) = state(evidence, silence);
    let reason = reason(evidence, last, |age| format!("{} ago", text(age)));
    let summary = reason_without_ages(evidence, last);
    Conclusion { power, confidence, reason, summary, silence }
}

fn state(evidence: &Evidence, silence: Option<Duration>) -> (Power, Confidence) {
    let is_fresh = silence.is_some_and(|silence| silence <= FRESH);
    let is_settled = evidence.shutdown.is_some_and(|shutdown| shutdown >= OFF_AFTER);
    let is_shut_down = silence.is_none() && is_settled && !evidence.is_woken;
    match evidence.report {
        Some(Power::Off) if is_fresh => (Power::Unknown, Confidence::Nothing),
        Some(report @ (Power::On | Power::Off)) => (report, Confidence::Reported),
        Some(Power::Unknown) | None if is_fresh => (Power::On, Confidence::Inferred),
        Some(Power::Unknown) | None if is_shut_down => (Power::Off, Confidence::Inferred),
        Some(Power::Unknown) | None => (Power::Unknown, Confidence::Nothing),
    }
}

fn reason_without_ages(evidence: &Evidence, last: Option<Sighting>) -> String {
    reason(evidence, last, |age| match age <= FRESH {
        true => format!("within the last {}", text(FRESH)),
        false => format!("more than {} ago", text(FRESH)),
    })
}

fn reason(
    evidence: &Evidence,
    last: Option<Sighting>,
    time: impl Fn(Duration) -> String,
) -> String {
    let seen = last.map(|it| (it.age <= FRESH, format!("{} {}", it.source.clause(), time(it.age))));
    match (evidence.report, seen, evidence.shutdown) {
        (Some(Power::Off), Some((true, seen)), _) => format!("its BMC reports off, but {seen}"),
        (Some(report @ (Power::On | Power::Off)), _, _) => format!("its BMC reports {report}"),
        (_, Some((true, seen)), _) => seen,
        (_, Some((false, seen)), _) => format!("{seen}, and silence does not mean off"),
        (_, None, Some(_)) if evidence.is_woken => {
            "it was switched on after a shutdown, and the box received no request of it since"
                .to_owned()
        }
        (_, None, Some(ago)) if ago >= OFF_AFTER => {
            "it acknowledged a shutdown and is silent since".to_owned()
        }
        (_, None, Some(_)) => "it acknowledged a shutdown and may still run".to_owned(),
        (Some(Power::Unknown), None, None) => {
            "its BMC does not know the state, and the box received no request of it".to_owned()
        }
        (None, None, None) => {
            "the box received no request of it, and silence does not mean off".to_owned()
        }
    }
}

/// Returns the newest request that shows a running machine. Requests before the end of a shutdown
/// do not count.
fn last_sighting(evidence: &Evidence) -> Option<Sighting> {
    let counts = |it: &&Sighting| {
        let is_of_engine = it.source == Source::Arp && evidence.has_engine;
        let is_before_the_end =
            evidence.shutdown.is_some_and(|shutdown| it.age.saturating_add(SETTLE) >= shutdown);
        !is_of_engine && !is_before_the_end
    };
    evidence.sightings.iter().filter(counts).min_by_key(|it| it.age).copied()
}

fn text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..10 => format!("{seconds} s"),
        _ => stdx::seconds(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }
}
