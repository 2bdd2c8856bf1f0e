//! Index of workflows by machine and agent. A watch updates the index, so changes arrive slightly
//! late. The index is read in every call of an agent and for every DHCP packet.

mod run;

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use api::meta::ObjectKey;
use api::tinkerbell::{State, Workflow};
use tokio::sync::Notify;

pub use run::{End, Run};

/// Maximum number of agents with waiting requests; requests of further agents do not wait.
const WAITING_MAX: usize = 4096;
/// Maximum number of waiting requests of one agent, including requests of broken connections.
const QUESTIONS_MAX: usize = 8;

/// Index of workflows; clones share the data.
#[derive(Clone, Default)]
pub struct Runs(Arc<Shared>);

#[derive(Default)]
struct Shared {
    tables: RwLock<Tables>,
    waiting: Mutex<HashMap<String, Waiting>>,
    /// True after all stored Workflows were added to the index.
    complete: AtomicBool,
}

#[derive(Default)]
struct Tables {
    runs: HashMap<ObjectKey, Arc<Run>>,
    of_agent: Keys<String>,
    of_hardware: Keys<ObjectKey>,
    /// Number of Workflows with a running action.
    at_work: usize,
}

/// Requests that wait for a change of one agent's workflows.
#[derive(Default)]
struct Waiting {
    notify: Arc<Notify>,
    count: usize,
}

/// Keys of workflows, by agent or by Hardware.
type Keys<K> = HashMap<K, BTreeSet<ObjectKey>>;

impl Runs {
    fn tables(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a Workflow, or replaces the earlier version.
    pub fn put(&self, workflow: &Workflow) {
        self.replace(workflow.key(), Some(Run::of(workflow)));
    }

    /// Removes a Workflow from the index.
    pub fn remove(&self, key: &ObjectKey) {
        self.replace(key.clone(), None);
    }

    /// Marks the index as complete, because all stored Workflows were added.
    pub fn complete(&self) {
        self.0.complete.store(true, Ordering::Release);
    }

    fn replace(&self, key: ObjectKey, mut run: Option<Run>) {
        let mut tables = self.0.tables.write().unwrap_or_else(PoisonError::into_inner);
        if let (Some(run), Some(before)) = (&mut run, tables.runs.get(&key)) {
            run.after(before);
        }
        let run = run.map(Arc::new);
        let before = match &run {
            Some(run) => tables.runs.insert(key.clone(), Arc::clone(run)),
            None => tables.runs.remove(&key),
        };
        if let Some(before) = &before {
            tables.unlink(&key, before);
        }
        if let Some(run) = &run {
            tables.link(&key, run);
        }
        drop(tables);
        let waiting = self.waiting();
        for agent in before.iter().chain(&run).flat_map(|run| &run.agents) {
            if let Some(those) = waiting.get(agent) {
                those.notify.notify_waiters();
            }
        }
    }

    /// Registers a wait for changes of an agent's workflows; `None` if too many requests wait.
    pub(crate) fn waiter(&self, agent_id: &str) -> Option<Waiter> {
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING_MAX && !waiting.contains_key(agent_id) {
            return None;
        }
        let those = waiting.entry(agent_id.to_owned()).or_default();
        if those.count >= QUESTIONS_MAX {
            return None;
        }
        those.count += 1;
        let notify = Arc::clone(&those.notify);
        Some(Waiter { runs: self.clone(), agent_id: agent_id.to_owned(), notify })
    }

    /// Returns the unfinished workflows with a task for an agent, in queue order.
    pub fn of_agent(&self, agent_id: &str) -> Vec<(ObjectKey, Arc<Run>)> {
        let tables = self.tables();
        let mut runs: Vec<_> =
            tables.with_agent(agent_id).filter(|it| !it.1.state.ended()).collect();
        drop(tables);
        runs.sort_by(|(_, one), (_, other)| one.place.cmp(&other.place));
        runs
    }

    /// Returns the workflows of a machine, ended or not; `None` until the index is complete.
    pub fn of_hardware(&self, hardware: &ObjectKey) -> Option<Vec<ObjectKey>> {
        let is_complete = self.0.complete.load(Ordering::Acquire);
        is_complete.then(|| self.tables().with_hardware(hardware).map(|(key, _)| key).collect())
    }

    /// Returns the workflow that shows the state of a machine: the first in its queue, or the
    /// newest workflow if all have ended.
    pub fn latest(&self, hardware: &ObjectKey) -> Option<(ObjectKey, Arc<Run>)> {
        let tables = self.tables();
        let own: Vec<_> = tables.with_hardware(hardware).collect();
        let open = own.iter().filter(|(_, run)| !run.state.ended());
        let first = open.min_by(|(_, one), (_, other)| one.place.cmp(&other.place));
        first.or_else(|| own.iter().max_by_key(|(_, run)| run.created)).cloned()
    }

    /// Returns true if a Workflow, ended or not, has a task for the agent.
    pub fn know(&self, agent_id: &str) -> bool {
        self.tables().of_agent.contains_key(agent_id)
    }

    /// Returns all Workflows, ended or not, with a task for the agent.
    pub fn all_of_agent(&self, agent_id: &str) -> Vec<(ObjectKey, Arc<Run>)> {
        self.tables().with_agent(agent_id).collect()
    }

    /// Returns true if the agent has Workflows, and rule sets created all of them.
    pub fn are_enrolled(&self, agent_id: &str) -> bool {
        self.know(agent_id) && self.tables().with_agent(agent_id).all(|(_, run)| run.enrolled)
    }

    /// Returns true if the action of the Workflow `namespace/name` may run.
    pub fn may_run(&self, workflow_id: &str, action_id: &str) -> bool {
        let run = self.by_id(workflow_id);
        run.is_some_and(|run| run.state.serves() && run.open.iter().any(|it| it == action_id))
    }

    /// Returns true if the Workflow `namespace/name` has a task for the agent.
    pub fn runs_for(&self, workflow_id: &str, agent_id: &str) -> bool {
        let run = self.by_id(workflow_id);
        run.is_some_and(|run| run.agents.iter().any(|it| it == agent_id))
    }

    fn by_id(&self, workflow_id: &str) -> Option<Arc<Run>> {
        let (namespace, name) = workflow_id.split_once('/')?;
        self.tables().runs.get(&ObjectKey::new(namespace, name)).cloned()
    }

    /// Returns true if a machine has a Workflow, ended or not.
    pub fn concern(&self, hardware: &ObjectKey) -> bool {
        self.tables().of_hardware.contains_key(hardware)
    }

    /// Returns the number of Workflows with a running action.
    pub fn at_work(&self) -> usize {
        self.tables().at_work
    }

    /// Returns the Workflows that a restart of the box would interrupt (preparing, running or in
    /// the state `Post`), sorted by name.
    pub fn under_way(&self) -> Vec<ObjectKey> {
        let at_work =
            |run: &Run| matches!(run.state, State::Preparing | State::Running | State::Post);
        let tables = self.tables();
        let own = tables.runs.iter().filter(|(_, run)| !run.idle && at_work(run));
        let mut keys: Vec<_> = own.map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// Returns true if a Workflow of the machine waits or runs, and the end of the last success.
    pub fn progress(&self, hardware: &ObjectKey) -> (bool, Option<End>) {
        let tables = self.tables();
        let own: Vec<_> = tables.with_hardware(hardware).map(|(_, run)| run).collect();
        let done = own.iter().filter(|run| run.state == State::Success);
        let end =
            |run: &Arc<Run>| Some(End { time: run.stopped.or(run.created)?, seen: run.succeeded });
        let ended = done.filter_map(end).max_by_key(|end| end.time);
        (own.iter().any(|run| !run.idle && !run.state.ended()), ended)
    }

    /// Returns the Workflow for which a machine must boot the agent OS: a Workflow of the machine,
    /// or a Workflow with an action left for one of `agents`, the possible agents of the machine.
    pub fn to_boot(&self, hardware: &ObjectKey, agents: &[String]) -> Option<Arc<Run>> {
        let tables = self.tables();
        // A machine may boot while the job of its boot is still being confirmed.
        let boots =
            |run: &Arc<Run>| !run.idle && (run.state.serves() || run.state == State::Preparing);
        let by_agent = agents.iter().flat_map(|agent| {
            tables.with_agent(agent).filter(move |(_, run)| run.awaited.contains(agent))
        });
        let runs = tables.with_hardware(hardware).chain(by_agent).map(|(_, run)| run);
        runs.filter(boots).min_by(|one, other| one.place.cmp(&other.place))
    }
}

impl Tables {
    fn with_agent(&self, agent_id: &str) -> impl Iterator<Item = (ObjectKey, Arc<Run>)> {
        self.of(self.of_agent.get(agent_id))
    }

    fn with_hardware(&self, hardware: &ObjectKey) -> impl Iterator<Item = (ObjectKey, Arc<Run>)> {
        self.of(self.of_hardware.get(hardware))
    }

    fn of(
        &self,
        keys: Option<&BTreeSet<ObjectKey>>,
    ) -> impl Iterator<Item = (ObjectKey, Arc<Run>)> {
        let keys = keys.into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), Arc::clone(self.runs.get(key)?))))
    }

    fn link(&mut self, key: &ObjectKey, run: &Run) {
        self.at_work += usize::from(run.at_work);
        for agent in &run.agents {
            self.of_agent.entry(agent.clone()).or_default().insert(key.clone());
        }
        self.of_hardware.entry(run.hardware.clone()).or_default().insert(key.clone());
    }

    fn unlink(&mut self, key: &ObjectKey, run: &Run) {
        self.at_work -= usize::from(run.at_work);
        for agent in &run.agents {
            remove(&mut self.of_agent, agent, key);
        }
        remove(&mut self.of_hardware, &run.hardware, key);
    }
}

fn remove<K: Eq + Hash>(keys: &mut Keys<K>, of: &K, key: &ObjectKey) {
    if let Some(those) = keys.get_mut(of) {
        those.remove(key);
        if those.is_empty() {
            keys.remove(of);
        }
    }
}

/// Registered wait of a request; dropping it removes the registration.
pub(crate) struct Waiter {
    runs: Runs,
    agent_id: String,
    notify: Arc<Notify>,
}

impl Waiter {
    /// Returns a future that ends at the first change after this call, even if polled later.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> {
        self.notify.notified()
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.runs.waiting();
        let Some(those) = waiting.get_mut(&self.agent_id) else { return };
        those.count -= 1;
        if those.count == 0 {
            waiting.remove(&self.agent_id);
        }
    }
}

#[cfg(test)]
mod tests;
