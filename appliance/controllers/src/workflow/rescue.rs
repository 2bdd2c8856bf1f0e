//! A machine that fell silent: power lost, agent crashed, boot gone wrong. Upstream notices only
//! when a global timeout happens to be armed; here the machine is booted into the agent OS again,
//! a few times, and the action it was at starts anew.

use std::time::Duration;

use api::state::workflow::Event;
use api::tinkerbell::{BootMode, State, Workflow};
use jiff::Timestamp;

use super::Patience;
use super::boot::{self, Progress};
use super::decide::{Decision, Step, moved};
use super::observe::Observed;

/// How often a machine is booted for one Workflow before it has failed.
const BOOTS_MAX: usize = 4;

/// Names of the boots of this Workflow so far, in order.
fn boots(workflow: &Workflow) -> Vec<String> {
    (1..=BOOTS_MAX)
        .map(|boot| name(workflow, boot))
        .filter(|name| workflow.status.boot_options.jobs.contains_key(name))
        .collect()
}

fn name(workflow: &Workflow, boot: usize) -> String {
    match boot {
        1 => format!("netboot-{}", workflow.metadata.name),
        boot => format!("netboot-{}-boot{boot}", workflow.metadata.name),
    }
}

/// Name of the Job that would boot the machine once more.
pub fn next_name(workflow: &Workflow) -> Option<String> {
    let boot = boots(workflow).len() + 1;
    (boot <= BOOTS_MAX).then(|| name(workflow, boot))
}

/// Whether the machine is to be booted again, and when to look next.
pub fn decide(observed: &Observed, patience: Patience, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    // Only a machine the box itself booted may be booted again.
    if workflow.spec.boot_options.boot_mode != Some(BootMode::Netboot) {
        return Decision::rest();
    }
    let boots = boots(workflow);
    if let Some(last) = boots.last() {
        match follow(observed, last, now) {
            None => {}
            Some(decision) => return decision,
        }
    }
    let running = workflow.status.state == State::Running;
    if running && !observed.life.beats {
        return Decision::rest();
    }
    let booted = last_boot(observed);
    // A machine that was just booted is given the time of a boot, whatever its agent said before.
    let patience = match running && observed.life.heard > booted {
        true => patience.agent,
        false => patience.boot,
    };
    let since = observed.life.heard.max(booted);
    let silent = now.duration_since(since);
    if silent < patience {
        let left = Duration::try_from(patience - silent).unwrap_or_default();
        return Decision::later(left + Duration::from_millis(100));
    }
    boot_again(observed, boots.len(), silent.as_secs())
}

fn follow(observed: &Observed, last: &str, now: Timestamp) -> Option<Decision> {
    let workflow = &observed.workflow;
    if workflow.status.boot_options.jobs.get(last).is_some_and(|job| job.complete) {
        return None;
    }
    Some(match boot::run_job(observed, last, boot::netboot(observed)) {
        Progress::Due(decision) => decision,
        Progress::Runs => Decision::rest(),
        Progress::Completed => {
            let status = boot::completed(&workflow.status, last, now);
            Decision { steps: vec![Step::Status(Box::new(status))], again: None }
        }
        Progress::Failed(why) => {
            let message = format!("boot job {last}: {why}");
            Decision {
                steps: moved(workflow, Event::BootFailed, "BootFailed", message),
                again: None,
            }
        }
    })
}

fn last_boot(observed: &Observed) -> Timestamp {
    let jobs = &observed.workflow.status.boot_options.jobs;
    let ended = observed
        .jobs
        .iter()
        .filter(|job| jobs.contains_key(&job.metadata.name))
        .filter_map(|job| job.status.completion_time);
    ended.max().unwrap_or(Timestamp::MIN)
}

fn boot_again(observed: &Observed, boots: usize, silent_secs: i64) -> Decision {
    let workflow = &observed.workflow;
    let agent = &workflow.status.agent_id;
    let Some(name) = next_name(workflow) else {
        let message = format!("agent {agent} is silent after {boots} boots; look at its screen");
        let steps = moved(workflow, Event::BootFailed, "BootFailed", message);
        return Decision { steps, again: None };
    };
    let message = format!("agent {agent} has been silent for {silent_secs} s: booting it again");
    let tell = Step::Tell { reason: "AgentSilent", message, warning: true };
    match boot::run_job(observed, &name, boot::netboot(observed)) {
        Progress::Due(mut decision) => {
            decision.steps.push(tell);
            decision
        }
        Progress::Runs | Progress::Completed => Decision::rest(),
        Progress::Failed(why) => {
            Decision { steps: moved(workflow, Event::BootFailed, "BootFailed", why), again: None }
        }
    }
}
