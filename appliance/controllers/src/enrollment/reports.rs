//! Queue with the latest report of each agent. An agent reports once per boot, so no report may be
//! lost when a whole rack is powered on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_rpc::AgentReport;
use tokio::sync::Notify;

/// Maximum number of agents in the queue, more than the machines of a box.
const AGENTS_MAX: usize = 16_384;

/// Queue of waiting reports; clones share the queue.
#[derive(Clone, Default)]
pub struct ReportQueue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Agent IDs in the order of their first waiting report.
    order: VecDeque<String>,
    by_agent: HashMap<String, AgentReport>,
}

impl ReportQueue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a report without waiting. A second report of an agent is merged: omitted fields keep
    /// the earlier values. Returns false if the queue is full.
    pub fn add(&self, report: AgentReport) -> bool {
        let mut waiting = self.waiting();
        if let Some(before) = waiting.by_agent.get_mut(&report.agent_id) {
            before.attributes = report.attributes.or(before.attributes.take());
            before.inventory = report.inventory.or(before.inventory.take());
            return true;
        }
        if waiting.order.len() >= AGENTS_MAX {
            return false;
        }
        waiting.order.push_back(report.agent_id.clone());
        waiting.by_agent.insert(report.agent_id.clone(), report);
        drop(waiting);
        self.0.added.notify_one();
        true
    }

    /// Takes the report of the longest waiting agent; `None` if the queue is empty.
    pub fn take(&self) -> Option<AgentReport> {
        let mut waiting = self.waiting();
        let agent_id = waiting.order.pop_front()?;
        waiting.by_agent.remove(&agent_id)
    }

    /// Waits for a report and takes it.
    pub async fn next(&self) -> AgentReport {
        loop {
            let added = self.0.added.notified();
            if let Some(report) = self.take() {
                return report;
            }
            added.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_rpc::AgentReport;
    use agent_rpc::Attributes;

    use super::{AGENTS_MAX, ReportQueue};

    fn report(agent_id: &str, attributes: Option<Attributes>) -> AgentReport {
        AgentReport { agent_id: agent_id.to_owned(), attributes, inventory: None }
    }

    #[tokio::test]
    async fn a_burst_of_agents_loses_none() {
        let reports = ReportQueue::default();
        for number in 0..5_000 {
            assert!(reports.add(report(&number.to_string(), None)));
        }
        for number in 0..5_000 {
            assert_eq!(reports.next().await.agent_id, number.to_string());
        }
        assert_eq!(reports.take(), None);
    }

    #[test]
    fn the_latest_report_of_an_agent_keeps_what_it_said_before() {
        let reports = ReportQueue::default();
        assert!(reports.add(report("a", Some(Attributes::default()))));
        assert!(reports.add(report("b", None)));
        assert!(reports.add(report("a", None)));
        let first = reports.take().unwrap();
        assert_eq!((first.agent_id.as_str(), first.attributes.is_some()), ("a", true));
        assert_eq!(reports.take().unwrap().agent_id, "b");
        assert_eq!(reports.take(), None, "once");
    }

    #[test]
    fn there_are_never_more_than_the_limit() {
        let reports = ReportQueue::default();
        assert!((0..AGENTS_MAX).all(|number| reports.add(report(&number.to_string(), None))));
        assert!(!reports.add(report("one more", None)));
        assert!(reports.add(report("0", None)), "it waits already");
    }
}
