//! One incident at every step of a workflow. Steps are the writes of the box and the commands to
//! management controllers, before and after each takes effect, and steps of machines. A machine
//! requests its boot files, starts an agent, begins an action, does half of it, ends it, and leaves
//! the agent's system.

use sim::fleet::{Incident, Injection, Kind, Trial, trial};

use crate::seeds::Seeds;

/// Distance of the steps at which an incident is injected; a death of the box is injected at every
/// step. The seed selects the first step, so that this number of seeds covers every step.
const STRIDE: usize = 4;
/// Steps that every workflow has.
const STEPS: [&str; 10] = [
    "a write is due",
    "a write took effect",
    "a controller is asked",
    "a controller answers",
    "a machine asks",
    "an agent starts",
    "an action begins",
    "an action is half done",
    "an action ends",
    "an agent leaves",
];

#[track_caller]
fn lived(kind: Kind, seed: u64, incident: Option<Injection>) -> Trial {
    trial(kind, seed, incident).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Injects each of `incidents` at the steps of a kind of workflow, on each of its machines.
fn each_step(kind: Kind, incidents: &[Incident], check: impl Fn(&str, &Trial, &Trial)) {
    for seed in Seeds::new(1).all {
        let quiet = lived(kind, seed, None);
        for name in STEPS {
            assert!(quiet.steps.contains(&name), "{kind:?} has no step {name:?}");
        }
        let machines = 0..quiet.machines.len();
        for (incident, machine) in
            incidents.iter().flat_map(|it| machines.clone().map(move |m| (*it, m)))
        {
            let (first, stride) = match incident {
                Incident::Box => (0, 1),
                _ => (usize::try_from(seed).unwrap_or(0) % STRIDE, STRIDE),
            };
            if incident.spares_machines() && machine > 0 {
                continue;
            }
            for (at, name) in quiet.steps.iter().enumerate().skip(first).step_by(stride) {
                let trial = lived(kind, seed, Some(Injection { incident, at, machine }));
                let what = format!("{kind:?}, {incident:?} of nuc{machine} at step {at}, {name}");
                assert!(trial.has_happened, "{what}: {:?}", trial.steps);
                check(&what, &quiet, &trial);
            }
        }
    }
}

/// A box that dies, or loses its agents' connections, must not repeat an action.
fn nothing_is_repeated(kind: Kind) {
    each_step(kind, &[Incident::Box, Incident::Connections], |what, quiet, trial| {
        assert_eq!(trial.attempts, 1, "{what}");
        assert_eq!(trial.begun, quiet.begun, "{what}");
        assert!(trial.begun.values().all(|times| *times == 1), "{what}: {:?}", trial.begun);
        assert_eq!(trial.switched_on, quiet.switched_on, "{what}");
        assert_eq!(trial.machines, quiet.machines, "{what}");
        // The box may die after it stored an action's begin and before it recorded the event.
        assert!(trial.started.values().all(|times| *times == 1), "{what}: {:?}", trial.started);
        assert!(trial.started.len() + 1 >= quiet.started.len(), "{what}: {:?}", trial.started);
    });
}

/// A machine that is lost, with the box or without, repeats only its current action.
fn one_action_is_repeated(kind: Kind) {
    each_step(kind, &Incident::OF_MACHINES, |what, quiet, trial| {
        assert_eq!(trial.attempts, 1, "{what}");
        let again: usize = trial.begun.values().map(|times| times - 1).sum();
        assert!(again <= 1, "{what}: {:?}", trial.begun);
        assert!(trial.begun.keys().eq(quiet.begun.keys()), "{what}: {:?}", trial.begun);
        // The box may boot only the machine that the workflow is for.
        let switched: Vec<usize> = trial.switched_on.values().copied().collect();
        assert!((1..=2).contains(&switched[0]), "{what}: {switched:?}");
        assert!(switched[1..].iter().all(|times| *times == 0), "{what}: {switched:?}");
    });
}

#[test]
fn nothing_of_an_installation_is_repeated_when_the_box_dies() {
    nothing_is_repeated(Kind::Install);
}

#[test]
fn nothing_of_two_tasks_is_repeated_when_the_box_dies() {
    nothing_is_repeated(Kind::Restarts);
}

#[test]
fn nothing_of_two_machines_is_repeated_when_the_box_dies() {
    nothing_is_repeated(Kind::Pair);
}

#[test]
fn one_action_of_an_installation_is_repeated_when_its_machine_is_lost() {
    one_action_is_repeated(Kind::Install);
}

#[test]
fn one_action_of_two_tasks_is_repeated_when_its_machine_is_lost() {
    one_action_is_repeated(Kind::Restarts);
}

#[test]
fn one_action_of_two_machines_is_repeated_when_one_is_lost() {
    one_action_is_repeated(Kind::Pair);
}
