//! What the boot services need to know, in memory: machines by hardware address, IP address and
//! agent, and which workflow each is to run. Fed by [`crate::pump`] from watches; read on every
//! packet.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use api::meta::ObjectKey;
use api::tinkerbell::{Hardware, State, Workflow};
use jiff::Timestamp;
use stdx::MacAddr;

/// The part of a Workflow that the boot path needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its uid.
    pub uid: String,
    /// Its Hardware.
    pub hardware: ObjectKey,
    /// Agents with a task in it.
    pub agents: Vec<String>,
    /// Its state.
    pub state: State,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Switched off by its owner, or on its way out.
    pub idle: bool,
}

/// The index; clones share it.
#[derive(Clone, Default)]
pub struct Index(Arc<RwLock<Tables>>);

#[derive(Default)]
struct Tables {
    hardware: HashMap<ObjectKey, Arc<Hardware>>,
    by_mac: HashMap<MacAddr, ObjectKey>,
    by_address: HashMap<IpAddr, ObjectKey>,
    runs: HashMap<ObjectKey, Run>,
}

impl Index {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Take a Hardware in, or its new version.
    pub fn put_hardware(&self, hardware: Hardware) {
        let mut tables = self.write();
        tables.hardware.insert(hardware.key(), Arc::new(hardware));
        tables.link();
    }

    /// Forget a Hardware.
    pub fn remove_hardware(&self, key: &ObjectKey) {
        let mut tables = self.write();
        tables.hardware.remove(key);
        tables.link();
    }

    /// Take a Workflow in, or its new version.
    pub fn put_workflow(&self, workflow: &Workflow) {
        let mut agents: Vec<String> =
            workflow.status.tasks.iter().map(|task| task.agent_id.clone()).collect();
        agents.dedup();
        let namespace = &workflow.metadata.namespace;
        let run = Run {
            uid: workflow.metadata.uid.clone(),
            hardware: ObjectKey::new(namespace, &workflow.spec.hardware_ref),
            agents,
            state: workflow.status.state,
            created: workflow.metadata.creation_timestamp,
            idle: workflow.spec.disabled == Some(true)
                || workflow.metadata.deletion_timestamp.is_some(),
        };
        self.write().runs.insert(workflow.key(), run);
    }

    /// Forget a Workflow.
    pub fn remove_workflow(&self, key: &ObjectKey) {
        self.write().runs.remove(key);
    }

    /// The machine with this hardware address.
    pub fn by_mac(&self, mac: MacAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        tables.hardware.get(tables.by_mac.get(&mac)?).cloned()
    }

    /// The machine with this reserved address.
    pub fn by_address(&self, address: IpAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        tables.hardware.get(tables.by_address.get(&address)?).cloned()
    }

    /// The machine this agent runs on.
    pub fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let known = |hardware: &&Arc<Hardware>| {
            hardware.spec.agent_id.as_deref() == Some(agent_id)
                || hardware.spec.macs().any(|mac| mac.to_string() == agent_id)
        };
        tables.hardware.values().find(known).cloned()
    }

    /// The machine this management controller belongs to.
    pub fn by_machine(&self, machine: &ObjectKey) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let owns = |hardware: &&Arc<Hardware>| {
            hardware.metadata.namespace == machine.namespace
                && hardware.spec.bmc_ref.as_ref().is_some_and(|bmc| bmc.name == machine.name)
        };
        tables.hardware.values().find(owns).cloned()
    }

    /// The Workflows an agent may be served from: running ones first, then the oldest.
    pub fn runs_of_agent(&self, agent_id: &str) -> Vec<(ObjectKey, Run)> {
        let tables = self.read();
        let mut runs: Vec<(ObjectKey, Run)> = tables
            .runs
            .iter()
            .filter(|(_, run)| !run.state.ended() && run.agents.iter().any(|it| it == agent_id))
            .map(|(key, run)| (key.clone(), run.clone()))
            .collect();
        runs.sort_by_key(|(key, run)| (run.state != State::Running, run.created, key.clone()));
        runs
    }

    /// Whether some Hardware or some Workflow speaks of this agent.
    pub fn knows_agent(&self, agent_id: &str) -> bool {
        self.by_agent(agent_id).is_some() || !self.uids_of_agent(agent_id).is_empty()
    }

    /// Whether the Workflow `namespace/name` has a task for this agent.
    pub fn runs_for(&self, workflow_id: &str, agent_id: &str) -> bool {
        let Some((namespace, name)) = workflow_id.split_once('/') else { return false };
        let tables = self.read();
        let run = tables.runs.get(&ObjectKey::new(namespace, name));
        run.is_some_and(|run| run.agents.iter().any(|it| it == agent_id))
    }

    /// The uids of every Workflow, ended or not, that has a task for an agent.
    pub fn uids_of_agent(&self, agent_id: &str) -> Vec<String> {
        let tables = self.read();
        let of_agent =
            tables.runs.values().filter(|run| run.agents.iter().any(|it| it == agent_id));
        of_agent.map(|run| run.uid.clone()).collect()
    }

    /// The Workflow a machine is to boot the agent OS for, if any.
    pub fn run_of_hardware(&self, key: &ObjectKey) -> Option<Run> {
        let tables = self.read();
        let mut runs: Vec<&Run> = tables
            .runs
            .values()
            // A machine may ask while the last boot job is being confirmed.
            .filter(|run| {
                run.hardware == *key
                    && !run.idle
                    && (run.state.serves() || run.state == State::Preparing)
            })
            .collect();
        runs.sort_by_key(|run| (run.state != State::Running, run.created));
        runs.first().map(|run| (*run).clone())
    }
}

impl Tables {
    /// Rebuild the ways in. The older of two machines that claim one address keeps it.
    fn link(&mut self) {
        self.by_mac.clear();
        self.by_address.clear();
        let mut all: Vec<(&ObjectKey, &Arc<Hardware>)> = self.hardware.iter().collect();
        all.sort_by_key(|(key, hardware)| (hardware.metadata.creation_timestamp, (*key).clone()));
        for (key, hardware) in all {
            for mac in hardware.spec.macs() {
                let owner = self.by_mac.entry(mac).or_insert_with(|| key.clone());
                if owner != key {
                    tracing::warn!(%mac, %owner, other = %key, "two machines claim one MAC");
                }
            }
            for address in hardware.spec.addresses() {
                let owner = self.by_address.entry(address).or_insert_with(|| key.clone());
                if owner != key {
                    let other = key;
                    tracing::warn!(%address, %owner, %other, "two machines claim one address");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api::tinkerbell::{Hardware, State, TaskStatus, Workflow};
    use jiff::{SignedDuration, Timestamp};

    use super::Index;

    fn hardware(name: &str, mac: &str, created_secs: i64) -> Hardware {
        let object = serde_json::json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "interfaces": [{ "dhcp": { "mac": mac, "ip": { "address": "10.0.0.9" } } }] },
        });
        let mut hardware: Hardware = serde_json::from_value(object).unwrap();
        hardware.metadata.creation_timestamp = at(created_secs);
        hardware
    }

    fn at(secs: i64) -> Option<Timestamp> {
        Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(secs)).ok()
    }

    fn workflow(name: &str, state: State, created_secs: i64) -> Workflow {
        let mut workflow = Workflow::default();
        workflow.metadata.namespace = "default".into();
        workflow.metadata.name = name.into();
        workflow.metadata.creation_timestamp = at(created_secs);
        workflow.spec.hardware_ref = "a".into();
        workflow.status.state = state;
        workflow.status.tasks = vec![TaskStatus { agent_id: "x".into(), ..Default::default() }];
        workflow
    }

    #[test]
    fn the_older_of_two_claimants_keeps_the_address() {
        let index = Index::default();
        index.put_hardware(hardware("young", "52:54:00:00:00:01", 2));
        index.put_hardware(hardware("old", "52:54:00:00:00:01", 1));
        let mac = "52:54:00:00:00:01".parse().unwrap();
        assert_eq!(index.by_mac(mac).unwrap().metadata.name, "old");
        let key = index.by_mac(mac).unwrap().key();
        index.remove_hardware(&key);
        assert_eq!(index.by_mac(mac).unwrap().metadata.name, "young");
        assert!(index.by_address("10.0.0.9".parse().unwrap()).is_some());
        assert!(index.by_agent("52:54:00:00:00:01").is_some());
    }

    #[test]
    fn running_first_then_the_oldest_and_never_an_ended_one() {
        let index = Index::default();
        index.put_workflow(&workflow("ended", State::Success, 0));
        index.put_workflow(&workflow("late", State::Pending, 3));
        index.put_workflow(&workflow("early", State::Pending, 2));
        let names = |index: &Index| -> Vec<String> {
            index.runs_of_agent("x").into_iter().map(|(key, _)| key.name).collect()
        };
        assert_eq!(names(&index), ["early", "late"]);
        index.put_workflow(&workflow("late", State::Running, 3));
        assert_eq!(names(&index), ["late", "early"]);
        let hardware = api::meta::ObjectKey::new("default", "a");
        assert_eq!(index.run_of_hardware(&hardware).unwrap().state, State::Running);
        index.put_workflow(&workflow("late", State::Failed, 3));
        index.remove_workflow(&api::meta::ObjectKey::new("default", "early"));
        assert!(index.run_of_hardware(&hardware).is_none());
    }
}
