//! Handling of a silent machine after a power loss, an agent crash or a failed boot. The machine is
//! booted into the agent OS again, a limited number of times, and its current action starts again.
//! Upstream notices a silent machine only by a global timeout.

use std::time::Duration;

use api::state::agents::Life;
use api::state::workflow::Event;
use api::tinkerbell::{ActionState, BootMode, State, Workflow};
use jiff::Timestamp;

use super::Timeouts;
use super::boot::{self, Progress};
use super::decide::{Decision, Step, moved, with_condition};
use super::observe::Observed;

/// Interval between two checks while the controller waits and does not boot the machine.
const LOOK_WAIT: Duration = Duration::from_secs(5);
/// Maximum wait for a machine with a silent agent and a silent BMC: a weekend without power.
const UNREACHABLE_MAX: Duration = Duration::from_secs(72 * 3600);
/// Maximum time for which the silence of all agents counts as a fault of the box, which looks the
/// same as a crash of all machines. After this time, each machine is handled separately.
const ALL_SILENT_MAX: Duration = Duration::from_secs(30 * 60);
/// Minimum number of running actions for the rule that all agents are silent.
const ALL_MIN: usize = 2;
/// Extra wait, so that a check runs after its due time.
const MARGIN: Duration = Duration::from_millis(100);

/// Condition of a Workflow that waits for its machine's BMC, or for any agent, to respond.
const UNREACHABLE: &str = "Unreachable";

/// Maximum number of boots for one Workflow, which then fails if the agent stays silent.
const BOOTS_MAX: usize = 4;

/// Returns the names of the boot Jobs of this Workflow so far, in order.
fn boots(workflow: &Workflow) -> Vec<String> {
    (1..=BOOTS_MAX)
        .map(|boot| name(workflow, boot))
        .filter(|name| workflow.status.boot_options.jobs.contains_key(name))
        .collect()
}

/// Returns the name of a boot Job: upstream's name for the first boot. Later names contain the UID,
/// so that they differ from the names of other Workflows' Jobs.
fn name(workflow: &Workflow, boot: usize) -> String {
    let metadata = &workflow.metadata;
    let uid: String = metadata.uid.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    match boot {
        1 => format!("netboot-{}", metadata.name),
        boot => format!("netboot-{}-{uid}-{boot}", metadata.name),
    }
}

/// Returns the name of the next boot Job, or `None` after the last allowed boot.
pub fn next_name(workflow: &Workflow) -> Option<String> {
    let boot = boots(workflow).len() + 1;
    (boot <= BOOTS_MAX).then(|| name(workflow, boot))
}

/// Decides if a silent machine is booted again, and when the next check is due.
pub fn decide(observed: &Observed, timeouts: Timeouts, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    // The box may only boot a machine again that it booted itself.
    if workflow.spec.boot_options.boot_mode != Some(BootMode::Netboot) || !ours(observed) {
        return lost(observed, timeouts, now);
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
    // Only an agent that was active since the last boot and runs an action must send heartbeats. A
    // machine in its firmware gets the time of a boot.
    let timeout = match life.heard {
        Some(heard) if at_work(workflow) && heard > booted => timeouts.agent,
        _ => timeouts.boot,
    };
    let silent = silence(observed).min(observed.moments.since(booted));
    let is_silent = silent >= timeout;
    let holds = holds(observed, silent, timeout);
    if let Some(decision) = held_back(observed, silent, holds, now) {
        return decision;
    }
    if !is_silent {
        return Decision::later(timeout - silent + MARGIN);
    }
    boot_again(observed, boots.len(), silent.as_secs(), now)
}

/// Returns the time since the agent's last message, or since the start of the observation.
fn silence(observed: &Observed) -> Duration {
    let Life { heard, listening_since, .. } = observed.life;
    observed.moments.since(heard.unwrap_or_default().max(listening_since))
}

/// Reason why the machine of a silent agent is not booted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// The BMC is silent too. The network to both may be broken, and a delayed command would later
    /// hit a healthy machine.
    BmcAway,
    /// All other agents are silent too, which is a fault of the box or of its network.
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
                "waits for the BMC of the machine: neither the BMC nor agent {agent} responds; \
                 check the power and the network of the machine"
            ),
            Self::AllSilent => format!(
                "waits for agent {agent}: no agent responds, so its machine is not restarted; \
                 check the network of the box"
            ),
        }
    }
}

/// Returns the reason not to boot the machine of an agent that is silent for `silent`, if any.
fn holds(observed: &Observed, silent: Duration, timeout: Duration) -> Option<Hold> {
    if silent < timeout {
        return None;
    }
    if observed.bmc_away {
        return Some(Hold::BmcAway);
    }
    let Life { any_heard, listening_since, at_work: others, .. } = observed.life;
    let none_heard = observed.moments.since(any_heard.max(listening_since)) >= timeout;
    let is_all = others >= ALL_MIN && at_work(&observed.workflow) && none_heard;
    let is_fresh = silent < timeout + ALL_SILENT_MAX;
    (is_all && is_fresh && !observed.powered_off).then_some(Hold::AllSilent)
}

/// Returns the steps while `hold` prevents a boot: a condition shows the wait. Without `hold`, the
/// condition is removed; `None` if no step is needed.
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
                "neither agent {agent} nor the BMC of its machine has responded for {hours} h: \
                 check the power and the network of the machine"
            );
            let steps = moved(workflow, Event::TimeRanOut, "AgentLost", message, now);
            return Some(Decision { steps, requeue: None });
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
    // Writing the status is itself a signal.
    let requeue = hold.map(|_| LOOK_WAIT);
    (is_news || hold.is_some()).then_some(Decision { steps, requeue })
}

/// Returns true if the current agent runs on the Hardware that the Workflow may boot.
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

/// Handles a machine that stopped during an action and that the box cannot boot. A person may
/// switch the machine on within the boot timeout. Then the Workflow ends with the reason.
fn lost(observed: &Observed, timeouts: Timeouts, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    if !at_work(workflow) || !observed.life.beats {
        return Decision::rest();
    }
    let silent = silence(observed);
    // The BMC of a machine that the box does not boot is not considered.
    let holds = holds(observed, silent, timeouts.boot).filter(|hold| *hold == Hold::AllSilent);
    if let Some(decision) = held_back(observed, silent, holds, now) {
        return decision;
    }
    if silent < timeouts.boot {
        return Decision::later(timeouts.boot - silent + MARGIN);
    }
    let agent = &workflow.status.agent_id;
    let secs = silent.as_secs();
    let message = format!(
        "agent {agent} has not responded for {secs} s during an action, and the box cannot boot \
         its machine"
    );
    let steps = moved(workflow, Event::TimeRanOut, "AgentLost", message, now);
    Decision { steps, requeue: None }
}

fn follow(observed: &Observed, last: &str, now: Timestamp) -> Option<Decision> {
    let workflow = &observed.workflow;
    if workflow.status.boot_options.jobs.get(last).is_some_and(|job| job.complete) {
        return None;
    }
    Some(match boot::run_job(observed, last, boot::netboot(observed)) {
        Progress::Due(decision) => decision,
        // If the Job has switched the machine off, it must also switch the machine on.
        Progress::Runs
            if is_back(observed, last) && !observed.off_jobs.iter().any(|it| it == last) =>
        {
            call_off(workflow, last)
        }
        Progress::Runs => boot::runs(observed, last, now),
        Progress::Completed => {
            let status = boot::completed(&workflow.status, last, now);
            Decision { steps: vec![Step::Status(Box::new(status))], requeue: None }
        }
        Progress::Failed(why) => {
            let message = format!("boot job {last}: {why}");
            Decision {
                steps: moved(workflow, Event::BootFailed, "BootFailed", message, now),
                requeue: None,
            }
        }
    })
}

/// Returns true if the agent sent a message after the boot Job was created.
fn is_back(observed: &Observed, job: &str) -> bool {
    let made = observed.job(job).and_then(|job| job.metadata.creation_timestamp);
    let made = made.map(|made| observed.moments.at(made));
    matches!((observed.life.heard, made), (Some(heard), Some(made)) if heard > made)
}

/// Deletes a boot Job. Its Tasks then end without another command.
fn call_off(workflow: &Workflow, job: &str) -> Decision {
    let mut status = boot::without_error(&workflow.status);
    status.boot_options.jobs.remove(job);
    let message = format!("agent {} is back: its machine is not booted again", status.agent_id);
    let steps = vec![
        Step::DeleteJob(job.to_owned()),
        Step::Status(Box::new(status)),
        Step::Tell { reason: "AgentBack", message, warning: false },
    ];
    Decision { steps, requeue: None }
}

fn last_boot(observed: &Observed) -> Duration {
    let jobs = &observed.workflow.status.boot_options.jobs;
    let ended = observed
        .jobs
        .iter()
        .filter(|job| jobs.contains_key(&job.metadata.name))
        .filter_map(|job| job.status.completion_time);
    // The status still records the boot if a user deleted its Job.
    let conditions = observed.workflow.status.conditions.iter();
    let booked = conditions.filter(|it| it.kind == "BootJobComplete").filter_map(|it| it.time);
    ended.chain(booked).map(|time| observed.moments.at(time)).max().unwrap_or_default()
}

fn boot_again(observed: &Observed, boots: usize, silent_secs: u64, now: Timestamp) -> Decision {
    let workflow = &observed.workflow;
    let agent = &workflow.status.agent_id;
    let Some(name) = next_name(workflow) else {
        let message = format!(
            "agent {agent} does not respond after {boots} boots; check the screen of its machine"
        );
        let steps = moved(workflow, Event::BootFailed, "BootFailed", message, now);
        return Decision { steps, requeue: None };
    };
    let message =
        format!("agent {agent} has not responded for {silent_secs} s: booting its machine again");
    let tell = Step::Tell { reason: "AgentSilent", message, warning: true };
    match boot::run_job(observed, &name, boot::netboot(observed)) {
        Progress::Due(mut decision) => {
            decision.steps.push(tell);
            decision
        }
        Progress::Runs | Progress::Completed => Decision::rest(),
        Progress::Failed(why) => {
            let steps = moved(workflow, Event::BootFailed, "BootFailed", why, now);
            Decision { steps, requeue: None }
        }
    }
}
