//! One workflow, and one incident at an exact step of it.

use std::collections::BTreeMap;

use api::tinkerbell::HARDWARE;

use super::incident::Injection;
use super::ledger::Begun;
use super::plan::{self, Kind};
use super::world::World;
use super::{Failure, Faults, Settings, Summary, finish, on_virtual_time};

/// Result of a workflow in which an incident happened.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The counts of the run.
    pub summary: Summary,
    /// Description of each step.
    pub steps: Vec<&'static str>,
    /// True when the incident happened.
    pub has_happened: bool,
    /// Attempts of the workflow.
    pub attempts: i64,
    /// Number of times each action began, by machine and name.
    pub begun: BTreeMap<(String, String), usize>,
    /// Number of times a management controller switched a machine on, by machine.
    pub switched_on: BTreeMap<String, usize>,
    /// Last state of each machine.
    pub machines: BTreeMap<String, &'static str>,
    /// Number of start events that the box recorded for each action, by the message of the event.
    pub started: BTreeMap<String, usize>,
}

/// Runs one workflow of a kind without other faults, and injects `injection`.
///
/// # Errors
/// A rule is broken, or the workflow does not end as planned.
pub fn trial(kind: Kind, seed: u64, injection: Option<Injection>) -> Result<Trial, Failure> {
    let settings = Settings { machines: 1, seed, faults: Faults::CALM };
    on_virtual_time(seed, async {
        let world = World::new(settings, Some((kind, injection)));
        world.begin();
        let summary =
            finish(&world).await.map_err(|what| format!("{kind:?} {injection:?}: {what}"))?;
        let mut begun = BTreeMap::new();
        for Begun { machine, action, .. } in world.ledger().begun() {
            *begun.entry((machine.clone(), action.clone())).or_default() += 1;
        }
        let mut started = BTreeMap::new();
        let machines = world.plan.members(0).map(plan::name);
        let events = machines.flat_map(|it| world.objects.events(HARDWARE.kind, &it));
        for (_, message, times) in events.filter(|(reason, ..)| reason == "ActionStarted") {
            *started.entry(message).or_default() += times;
        }
        let members = || world.plan.members(0).map(|it| (plan::name(it), &world.nucs[&it]));
        Ok(Trial {
            summary,
            steps: world.steps.names(),
            has_happened: world.steps.has_happened(),
            attempts: world.workflow(0).map_or(0, |workflow| workflow.status.attempts.max(1)),
            begun,
            switched_on: members().map(|(name, nuc)| (name, nuc.switched_on())).collect(),
            machines: members().map(|(name, nuc)| (name, nuc.story())).collect(),
            started,
        })
    })
}
