//! Rules that turn evidence into a power state with its reason.

use std::time::Duration;

use bmc::Power;

use super::{Evidence, FRESH, OFF_AFTER, SETTLE, STOP_LIMIT, Sighting, Source};

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
    let (power, confidence) = state(evidence, last);
    let reason = reason(evidence, last, |age| format!("{} ago", text(age)));
    let summary = reason_without_ages(evidence, last);
    Conclusion { power, confidence, reason, summary, silence }
}

fn state(evidence: &Evidence, last: Option<Sighting>) -> (Power, Confidence) {
    let is_fresh = last.is_some_and(|it| it.is_fresh());
    let is_shut_down = is_shut_down(evidence);
    match evidence.report {
        Some(Power::Off) if is_fresh => (Power::Unknown, Confidence::Nothing),
        Some(report @ (Power::On | Power::Off)) => (report, Confidence::Reported),
        Some(Power::Unknown) | None if is_fresh => (Power::On, Confidence::Inferred),
        Some(Power::Unknown) | None if is_shut_down => (Power::Off, Confidence::Inferred),
        Some(Power::Unknown) | None => (Power::Unknown, Confidence::Nothing),
    }
}

/// Returns true if the machine acknowledged a shutdown, and has sent nothing since, except what a
/// system sends until it stops.
fn is_shut_down(evidence: &Evidence) -> bool {
    let Some(shutdown) = evidence.shutdown.filter(|it| *it >= OFF_AFTER) else { return false };
    let is_of_shutdown =
        |it: &Sighting| it.source.is_steady() && shutdown.saturating_sub(it.age) <= STOP_LIMIT;
    !evidence.is_woken && counted(evidence).all(is_of_shutdown)
}

fn reason_without_ages(evidence: &Evidence, last: Option<Sighting>) -> String {
    let fresh = last.map_or(FRESH, |it| it.source.fresh());
    reason(evidence, last, |age| match age <= fresh {
        true => format!("within the last {}", text(fresh)),
        false => format!("more than {} ago", text(fresh)),
    })
}

fn reason(
    evidence: &Evidence,
    last: Option<Sighting>,
    time: impl Fn(Duration) -> String,
) -> String {
    let seen = last.map(|it| (it.is_fresh(), format!("{} {}", it.source.clause(), time(it.age))));
    match (evidence.report, seen, evidence.shutdown) {
        (Some(Power::Off), Some((true, seen)), _) => format!("its BMC reports off, but {seen}"),
        (Some(report @ (Power::On | Power::Off)), _, _) => format!("its BMC reports {report}"),
        (_, Some((true, seen)), _) => seen,
        (_, Some((false, seen)), _) if is_shut_down(evidence) => {
            format!("it acknowledged a shutdown and is silent since; {seen}")
        }
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

/// Returns the newest request that shows a running machine: a fresh one first, and an answer to ARP
/// only if nothing stronger is fresh.
fn last_sighting(evidence: &Evidence) -> Option<Sighting> {
    let rank = |it: &&Sighting| (!it.is_fresh(), it.source == Source::Arp, it.age);
    counted(evidence).min_by_key(rank).copied()
}

/// Returns the requests of a running machine. Requests before the end of a shutdown do not count.
fn counted(evidence: &Evidence) -> impl Iterator<Item = &Sighting> {
    evidence.sightings.iter().filter(|it| {
        let is_of_engine = it.source == Source::Arp && evidence.has_engine;
        let is_before_the_end =
            evidence.shutdown.is_some_and(|shutdown| it.age.saturating_add(SETTLE) >= shutdown);
        !is_of_engine && !is_before_the_end
    })
}

fn text(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..10 => format!("{seconds} s"),
        _ => stdx::seconds(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }
}
