//! A machine that fell silent: power lost, agent crashed, boot gone wrong. Upstream notices only
//! when a global timeout happens to be armed; here the machine is booted into the agent OS again,
//! a few times, and the action it was at starts anew.

use std::time::Duration;

use api::state::agents::Life;
use api::state::workflow::Event;
use api::tinkerbell::{ActionState, BootMode, State, Workflow};
use jiff::Timestamp;

use super::Patience;
use super::boot::{self, Progress};
use super::decide::{Decision, Step, moved, with_condition};
use super::observe::Observed;

/// Between two looks while a machine is left alone.
const LOOK_WAIT: Duration = Duration::from_secs(5);
/// Longest wait for a machine of which neither the agent nor the BMC answers: a weekend without
/// power.
const UNREACHABLE_MAX: Duration = Duration::from_secs(72 * 3600);
/// Longest time for which the silence of all agents at once is taken for the box's own trouble.
/// Machines that all hang at once look the same: after this time each is looked at for itself.
const ALL_SILENT_MAX: Duration = Duration::from_secs(30 * 60);
/// Fewest running actions of which no agent is heard that make it silence of all.
const ALL_MIN: usize = 2;
/// A look falls after the moment that it waits for.
const MARGIN: Duration = Duration::from_millis(100);

/// Condition of a Workflow that waits for its machine's BMC, or for any agent, to answer.
const UNREACHABLE: &str = "Unreachable";

/// How often a machine is booted for one Workflow before it has failed.
const BOOTS_MAX: usize = 4;

/// Names of the boots of this Workflow so far, in order.
fn boots(workflow: &Workflow) -> Vec<String> {
    (1..=BOOTS_MAX)
        .map(|boot| name(workflow, boot))
        .filter(|name| workflow.status.boot_options.jobs.contains_key(name))
        .collect()
}

/// Upstream's name for the first boot. The later ones carry the uid, so that no other Workflow's
/// name can make the same.
fn name(workflow: &Workflow, boot: usize) -> String {
    let metadata = &workflow.metadata;
    let uid: String = metadata.uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    match boot {
        1 => format!("netboot-{}", metadata.name),
        boot => format!("netboot-{}-{uid}-{boot}", metadata.name),
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
    if workflow.spec.boot_options.boot_mode != Some(BootMode::Netboot) || !ours(observed) {
        return lost(observed, patience, now);
    }
    let boots = boots(workflow);
    if let Some(decision) = boots.last().and_then(|last| follow(observed, last, now)) {
        return decision;
    }
    let running = workflow.status.state == State::Running;
    if running && !observed.life.beats {
        return Decision::rest();
    }
    let booted = last_boot(observed);
    let life = observed.life;
    // Only an agent that was heard since the last boot, and that is at work, owes a heartbeat. A
    // machine on its way through its firmware is given the time of a boot.
    let patience = match life.heard {
        Some(heard) if at_work(workflow) && heard > booted => patience.agent,
        _ => patience.boot,
    };
    let silent = silence(observed).min(observed.moments.since(booted));
    let is_silent = silent >= patience;
    let holds = holds(observed, silent, patience);
    if let Some(decision) = held_back(observed, silent, holds, now) {
        return decision;
    }
    if !is_silent {
        return Decision::later(patience - silent + MARGIN);
    }
    boot_again(observed, boots.len(), silent.as_secs(), now)
}

/// Time since the agent was last heard, as far as is known.
fn silence(observed: &Observed) -> Duration {
    let Life { heard, listening_since, .. } = observed.life;
    observed.moments.since(heard.unwrap_or_default().max(listening_since))
}

/// Why the silence of an agent is no reason to touch its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Its BMC is silent too: the way to both is broken, and what is queued now would strike a
    /// healthy machine later.
    BmcAway,
    /// So are all other agents: that is the trouble of the box or of its network.
    AllSilent,
}

impl Hold {
    fn reason(self) -> &'static str {
        match self {
            Self::BmcAway => "NoAnswer",
            Self::AllSilent => "AllSilent",
        }
    }

    fn message(self, agent: &str) -> String {
        match self {
            Self::BmcAway => format!(
                "waits for the BMC of the machine: neither it nor agent {agent} answers; look at \
                 the machine's power and network"
            ),
            Self::AllSilent => format!(
                "waits for agent {agent}: no agent at all is heard, so its machine is left alone; \
                 look at the network of the box"
            ),
        }
    }
}

/// The reason not to touch the machine of an agent that has been silent for `silent`, if any.
fn holds(observed: &Observed, silent: Duration, patience: Duration) -> Option<Hold> {
    if silent < patience {
        return None;
    }
    if observed.bmc_away {
        return Some(Hold::BmcAway);
    }
    let Life { any_heard, listening_since, at_work: others, .. } = observed.life;
    let none_heard = observed.moments.since(any_heard.max(listening_since)) >= patience;
    let is_all = others >= ALL_MIN && at_work(&observed.workflow) && none_heard;
    let is_fresh = silent < patience + ALL_SILENT_MAX;
    (is_all && is_fresh && !observed.powered_off).then_some(Hold::AllSilent)
}

/// Decides about an agent whose silence says nothing about its machine: shows the wait, and ends
/// it.
fn held_back(
    observed: &Observed,
    silent: Duration,
    hold: Option<Hold>,
    now: Timestamp,
) -> Option<Decision> {
    let workflow = &observed.workflow;
    let agent = &workflow.status.agent_id;
    let status = match hold {
        Some(Hold::BmcAway) if silent >= UNREACHABLE_MAX => {
            let hours = silent.as_secs() / 3600;
            let message = format!(
                "neither agent {agent} nor the BMC of its machine has answered for {hours} h: look \
                 at its power and its network"
            );
            let steps = moved(workflow, Event::TimeRanOut, "AgentLost", message, now);
            return Some(Decision { steps, again: None });
        }
        Some(hold) => {
            let (reason, message) = (hold.reason(), hold.message(agent));
            with_condition(&workflow.status, UNREACHABLE, true, reason, &message, now)
        }
        None => {
            let mut status = workflow.status.clone();
            status.conditions.retain(|it| it.kind != UNREACHABLE);
            status
        }
    };
    let is_news = status != workflow.status;
    let steps = is_news.then(|| Step::Status(Box::new(status))).into_iter().collect();
    // A written status is a signal.
    let again = hold.map(|_| LOOK_WAIT);
    (is_news || hold.is_some()).then_some(Decision { steps, again })
}

/// The agent whose turn it is runs on the machine that this Workflow may boot: in one of several
/// machines that is true of one.
pub fn ours(observed: &Observed) -> bool {
    let agent = &observed.workflow.status.agent_id;
    observed.hardware.as_ref().is_some_and(|hardware| {
        hardware.spec.agent_id.as_ref() == Some(agent)
            || hardware.spec.macs().any(|mac| mac.to_string() == *agent)
    })
}

fn at_work(workflow: &Workflow) -> bool {
    let current = workflow.status.current_state.as_ref();
    workflow.status.state == State::Running
        && current.is_some_and(|it| it.state == ActionState::Running)
}

/// A machine that died at work and that nothing can boot: somebody may switch it on again within
/// the time of a boot; then the Workflow has ended, and says why.
fn lost(observed: &Observed, patience: Patience, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    if !at_work(workflow) || !observed.life.beats {
        return Decision::rest();
    }
    let silent = silence(observed);
    // The BMC of a machine that is not booted from here is nobody's business.
    let holds = holds(observed, silent, patience.boot).filter(|hold| *hold == Hold::AllSilent);
    if let Some(decision) = held_back(observed, silent, holds, now) {
        return decision;
    }
    if silent < patience.boot {
        return Decision::later(patience.boot - silent + MARGIN);
    }
    let agent = &workflow.status.agent_id;
    let secs = silent.as_secs();
    let message = format!(
        "agent {agent} has been silent for {secs} s in the middle of an action, and nothing here \
         can boot its machine"
    );
    let steps = moved(workflow, Event::TimeRanOut, "AgentLost", message, now);
    Decision { steps, again: None }
}

fn follow(observed: &Observed, last: &str, now: Timestamp) -> Option<Decision> {
    let workflow = &observed.workflow;
    if workflow.status.boot_options.jobs.get(last).is_some_and(|job| job.complete) {
        return None;
    }
    Some(match boot::run_job(observed, last, boot::netboot(observed)) {
        Progress::Due(decision) => decision,
        // A machine that was switched off is switched on by the same Job.
        Progress::Runs
            if is_back(observed, last) && !observed.off_jobs.iter().any(|it| it == last) =>
        {
            call_off(workflow, last)
        }
        Progress::Runs => Decision::rest(),
        Progress::Completed => {
            let status = boot::completed(&workflow.status, last, now);
            Decision { steps: vec![Step::Status(Box::new(status))], again: None }
        }
        Progress::Failed(why) => {
            let message = format!("boot job {last}: {why}");
            Decision {
                steps: moved(workflow, Event::BootFailed, "BootFailed", message, now),
                again: None,
            }
        }
    })
}

/// The agent was heard after the Job was made that is to boot its machine again.
fn is_back(observed: &Observed, job: &str) -> bool {
    let made = observed.job(job).and_then(|job| job.metadata.creation_timestamp);
    let made = made.map(|made| observed.moments.at(made));
    matches!((observed.life.heard, made), (Some(heard), Some(made)) if heard > made)
}

/// Its Tasks find their Job gone and do nothing more.
fn call_off(workflow: &Workflow, job: &str) -> Decision {
    let mut status = workflow.status.clone();
    status.boot_options.jobs.remove(job);
    let message = format!("agent {} is back: it is not booted again", status.agent_id);
    let steps = vec![
        Step::DeleteJob(job.to_owned()),
        Step::Status(Box::new(status)),
        Step::Tell { reason: "AgentBack", message, warning: false },
    ];
    Decision { steps, again: None }
}

fn last_boot(observed: &Observed) -> Duration {
    let jobs = &observed.workflow.status.boot_options.jobs;
    let ended = observed
        .jobs
        .iter()
        .filter(|job| jobs.contains_key(&job.metadata.name))
        .filter_map(|job| job.status.completion_time);
    // The books know of the boot although somebody removed its Job.
    let conditions = observed.workflow.status.conditions.iter();
    let booked = conditions.filter(|it| it.kind == "BootJobComplete").filter_map(|it| it.time);
    ended.chain(booked).map(|time| observed.moments.at(time)).max().unwrap_or_default()
}

fn boot_again(observed: &Observed, boots: usize, silent_secs: u64, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    let agent = &workflow.status.agent_id;
    let Some(name) = next_name(workflow) else {
        let message = format!("agent {agent} is silent after {boots} boots; look at its screen");
        let steps = moved(workflow, Event::BootFailed, "BootFailed", message, now);
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
            let steps = moved(workflow, Event::BootFailed, "BootFailed", why, now);
            Decision { steps, again: None }
        }
    }
}
