//! Turns of machines: of the Workflows of one machine, one at a time is looked at and begun. What
//! one begins is stored before another looks, so two never begin both.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use api::meta::ObjectKey;
use api::state::queue;
use api::tinkerbell::{State, Workflow};
use tokio::sync::{Mutex, MutexGuard};

/// Turns that can be held at once. Machines that share one wait for each other's writes alone.
const TURNS: usize = 64;

/// The turns.
#[derive(Debug)]
pub struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Turns {
    /// Waits for the turn of the machine that this Workflow is about to use; `None` when it begins
    /// nothing.
    pub(super) async fn wait(&self, workflow: &Workflow) -> Option<MutexGuard<'_, ()>> {
        let may_begin = matches!(workflow.status.state, State::Preparing | State::Pending)
            && !queue::begun(&workflow.status);
        let hardware = &workflow.spec.hardware_ref;
        if !may_begin || hardware.is_empty() {
            return None;
        }
        let key = ObjectKey::new(&workflow.metadata.namespace, hardware);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&key);
        let turn = self.0.get(usize::try_from(hash % TURNS as u64).unwrap_or_default())?;
        Some(turn.lock().await)
    }
}
