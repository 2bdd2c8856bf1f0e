//! Limits for machines that enroll themselves: number and rate.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use agent_rpc::AgentReport;
use api::meta::ObjectKey;
use api::tinkerbell::{AUTO_DISCOVERED, Hardware, HardwareMetadata, Instance};
use tokio::time::Instant;

/// Maximum number of enrolled machines that no person and no rule set has accepted. A further
/// machine replaces the oldest.
pub const UNACCEPTED_MAX: usize = 64;
/// Maximum number of machines that become Hardware in one [`PERIOD`] (a minute).
const RATE_MAX: usize = 10;
const PERIOD: Duration = Duration::from_secs(60);
/// Maximum number of waiting machines, each with a report of at most 192 KiB. 256 machines take 25
/// minutes. Reports of further machines are dropped; these machines enroll with their next report.
const WAITING_MAX: usize = 256;

/// Rate limiter of enrollments, with the reports of waiting machines.
#[derive(Default)]
pub struct EnrollmentSlots {
    /// Times of the last enrollments, at most [`RATE_MAX`].
    begun: VecDeque<Instant>,
    waiting: VecDeque<AgentReport>,
}

impl EnrollmentSlots {
    /// Takes a slot for an enrollment now. Returns false if the rate limit is reached.
    pub fn take(&mut self, now: Instant) -> bool {
        while self.begun.front().is_some_and(|first| now.duration_since(*first) >= PERIOD) {
            self.begun.pop_front();
        }
        let is_free = self.begun.len() < RATE_MAX;
        if is_free {
            self.begun.push_back(now);
        }
        is_free
    }

    /// Stores the report of a machine until a slot is free. Returns false if too many machines
    /// wait.
    pub fn wait(&mut self, report: AgentReport) -> bool {
        if let Some(before) = self.waiting.iter_mut().find(|it| it.agent_id == report.agent_id) {
            *before = report;
            return true;
        }
        let has_room = self.waiting.len() < WAITING_MAX;
        if has_room {
            self.waiting.push_back(report);
        }
        has_room
    }

    /// Waits for a free slot, and returns the oldest waiting report. Never returns without a
    /// report.
    pub async fn next(&mut self) -> AgentReport {
        if self.waiting.is_empty() {
            return std::future::pending().await;
        }
        if let Some(begun) = self.begun.front().filter(|_| self.begun.len() >= RATE_MAX) {
            tokio::time::sleep_until(*begun + PERIOD).await;
        }
        match self.waiting.pop_front() {
            Some(report) => report,
            None => std::future::pending().await,
        }
    }
}

/// Returns the machines to delete before another machine enrolls, oldest first. `is_used` is true
/// for a machine with a Workflow.
pub fn beyond(all: &[Arc<Hardware>], is_used: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
    let is_unaccepted = |it: &&Arc<Hardware>| enrolled_itself(it) && !is_used(&it.key());
    let mut unaccepted: Vec<_> = all.iter().filter(is_unaccepted).collect();
    unaccepted.sort_by_key(|it| (it.metadata.creation_timestamp, it.key()));
    let excess = (unaccepted.len() + 1).saturating_sub(UNACCEPTED_MAX);
    unaccepted.iter().take(excess).map(|it| it.key()).collect()
}

/// Returns true if the Hardware was created by enrollment and contains no data from a person.
fn enrolled_itself(hardware: &Hardware) -> bool {
    let spec = &hardware.spec;
    hardware.metadata.labels.get(AUTO_DISCOVERED).is_some_and(|it| it == "true")
        && spec.bmc_ref.is_none()
        && spec.metadata.as_ref().is_none_or(|it| *it == of_enrollment(hardware))
        && spec.user_data.is_none()
        && spec.addresses().next().is_none()
}

/// Returns the metadata that enrollment gives the Hardware.
fn of_enrollment(hardware: &Hardware) -> HardwareMetadata {
    let id = hardware.spec.agent_id.clone().unwrap_or_default();
    let hostname = hardware.metadata.name.clone();
    let instance = Instance { id, hostname, ..Instance::default() };
    HardwareMetadata { instance: Some(instance), ..HardwareMetadata::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agent_rpc::AgentReport;
    use api::tinkerbell::{AUTO_DISCOVERED, Hardware};
    use jiff::{SignedDuration, Timestamp};
    use tokio::time::Instant;

    use super::{EnrollmentSlots, PERIOD, RATE_MAX, UNACCEPTED_MAX, WAITING_MAX, beyond};

    fn machine(number: usize) -> Arc<Hardware> {
        let mut hardware = Hardware::default();
        hardware.metadata.name = format!("discovery-{number:03}");
        let age = SignedDuration::from_secs(number as i64);
        hardware.metadata.creation_timestamp = Some(Timestamp::UNIX_EPOCH + age);
        hardware.metadata.labels.insert(AUTO_DISCOVERED.to_owned(), "true".to_owned());
        hardware.spec.metadata = Some(super::of_enrollment(&hardware));
        Arc::new(hardware)
    }

    fn report(number: usize) -> AgentReport {
        AgentReport { agent_id: number.to_string(), attributes: None, inventory: None }
    }

    #[test]
    fn of_too_many_machines_that_enrolled_themselves_the_eldest_goes() {
        let mut all: Vec<_> = (0..UNACCEPTED_MAX - 1).rev().map(machine).collect();
        assert_eq!(beyond(&all, |_| false), []);
        all.push(machine(UNACCEPTED_MAX));
        let gone: Vec<_> = beyond(&all, |_| false).into_iter().map(|key| key.name).collect();
        assert_eq!(gone, ["discovery-000"]);
        // A machine that is in use, or that a person has edited, is not deleted.
        assert_eq!(beyond(&all, |key| key.name == "discovery-007"), []);
        let mut accepted = machine(0).as_ref().clone();
        accepted.spec.bmc_ref = Some(Default::default());
        all.retain(|it| it.metadata.name != "discovery-000");
        all.push(Arc::new(accepted));
        assert_eq!(beyond(&all, |_| false), []);
    }

    #[tokio::test(start_paused = true)]
    async fn ten_machines_a_minute_enroll_and_the_others_wait() {
        let mut slots = EnrollmentSlots::default();
        let start = Instant::now();
        assert!((0..RATE_MAX).all(|_| slots.take(start)));
        assert!(!slots.take(start));
        assert!((0..WAITING_MAX).all(|number| slots.wait(report(number))));
        assert!(!slots.wait(report(WAITING_MAX)), "too many wait");
        assert!(slots.wait(report(3)), "it waits already");
        for number in 0..RATE_MAX {
            assert_eq!(slots.next().await.agent_id, number.to_string());
            assert!(slots.take(Instant::now()));
        }
        assert_eq!(start.elapsed(), PERIOD);
        assert_eq!(slots.next().await.agent_id, RATE_MAX.to_string());
        assert_eq!(start.elapsed(), 2 * PERIOD);
    }
}
