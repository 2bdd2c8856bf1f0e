//! Locks by machine: only one Workflow of a machine is observed and started at a time. The start is
//! stored before another Workflow is observed, so two Workflows never start together.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use api::meta::ObjectKey;
use api::state::queue;
use api::tinkerbell::{State, Workflow};
use tokio::sync::{Mutex, MutexGuard};

/// Number of locks. Machines with the same lock only wait for each other's writes.
const LOCKS: usize = 64;

/// Locks; the hash of the Hardware's key selects the lock of a machine.
#[derive(Debug)]
pub struct MachineLocks([Mutex<()>; LOCKS]);

impl Default for MachineLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl MachineLocks {
    /// Waits for the lock of the machine that the Workflow may start on. Returns `None` without
    /// waiting if the Workflow cannot start now.
    pub(super) async fn wait(&self, workflow: &Workflow) -> Option<MutexGuard<'_, ()>> {
        let may_begin = matches!(workflow.status.state, State::Preparing | State::Pending)
            && !queue::begun(&workflow.status);
        let hardware = &workflow.spec.hardware_ref;
        if !may_begin || hardware.is_empty() {
            return None;
        }
        let key = ObjectKey::new(&workflow.metadata.namespace, hardware);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&key);
        let lock = self.0.get(usize::try_from(hash % LOCKS as u64).unwrap_or_default())?;
        Some(lock.lock().await)
    }
}
