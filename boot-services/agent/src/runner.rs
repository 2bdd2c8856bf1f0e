//! The agent's loop: hello, request, run, report. The loop never ends by itself.

mod disk_choice;
mod handler;
mod host;
mod power;
mod progress;

use std::sync::Arc;
use std::time::Duration;

use agent_rpc::client::{Client, Error as CallError};
use agent_rpc::{ActionState, Assignment, Attributes, Hello, Inventory, Report};
use imaging::Meter;
use imaging::select::Choices;
use imaging::stream::crashed;
use jiff::Timestamp;
use stdx::Backoff;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::actions::Limits;
use crate::outcome::{Leave, Outcome};
pub use host::{Host, ProcessHost, RunningAction};
pub use power::obey;

/// Delay after the first request without a response or an action; doubles with each further
/// request.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Maximum delay between two requests, and so the maximum time until a new workflow starts.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// Minimum duration of a request that the box has delayed (long poll). The next request follows
/// without a delay.
const HELD: Duration = Duration::from_secs(5);
/// Main loop of one agent.
pub struct Runner<H> {
    /// Client of the workflow service, with this agent's id.
    pub client: Client,
    /// Interface to the machine on which the actions run.
    pub host: H,
    /// Settings for all actions.
    pub limits: Limits,
    /// Hardware facts in Tinkerbell's format, for the box.
    pub attributes: Attributes,
    /// Hardware facts beyond Tinkerbell's format.
    pub inventory: Inventory,
    /// Random boot id of the kernel, which identifies this boot.
    pub boot_id: String,
}

/// State of the hello message in this boot.
#[derive(PartialEq, Eq)]
enum Greeting {
    Due,
    Made,
    /// The server is a stock Tinkerbell server without hello: the attributes go with every request.
    Unknown,
}

/// Result of a report: acknowledged or refused by the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receipt {
    Acknowledged,
    Refused,
}

impl<H: Host> Runner<H> {
    /// Requests and runs actions, forever.
    pub async fn run(&self) {
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut greeting = Greeting::Due;
        let mut last = String::new();
        loop {
            if greeting == Greeting::Due {
                greeting = self.greet().await;
            }
            let attributes = (greeting == Greeting::Unknown).then(|| self.attributes.clone());
            let asked = Instant::now();
            match self.client.next(attributes).await {
                Ok(assignment) => {
                    last.clear();
                    // After a refused report the box and the agent disagree about the action. An
                    // immediate request would only repeat that.
                    if self.perform(assignment).await == Receipt::Acknowledged {
                        backoff.reset();
                        continue;
                    }
                }
                Err(error) => {
                    if !error.is_no_action() {
                        greeting = Greeting::Due;
                    }
                    let text = stdx::chain(&error);
                    if text != last {
                        tracing::info!(reason = %text, "nothing to do yet");
                        last = text;
                    }
                    if error.is_no_action() && asked.elapsed() >= HELD {
                        backoff.reset();
                        continue;
                    }
                }
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    /// Returns the hello of this agent, the first message to the box.
    pub fn hello(&self) -> Hello {
        Hello {
            agent_id: self.client.agent_id().to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: self.boot_id.clone(),
            attributes: Some(self.attributes.clone()),
            inventory: Some(self.inventory.clone()),
        }
    }

    async fn greet(&self) -> Greeting {
        match self.client.hello(self.hello()).await {
            Ok(()) => Greeting::Made,
            Err(CallError::Unsupported { .. }) => Greeting::Unknown,
            Err(_) => Greeting::Due,
        }
    }

    /// Runs one action and reports its start and end. Returns the result of the last report.
    async fn perform(&self, assignment: Assignment) -> Receipt {
        let (name, image) = (&assignment.name, &assignment.image);
        let begun = Instant::now();
        let start = Timestamp::now();
        let mut report = Report {
            workflow_id: assignment.workflow_id.clone(),
            agent_id: self.client.agent_id().to_owned(),
            task_id: assignment.task_id.clone(),
            action_id: assignment.action_id.clone(),
            action_name: name.clone(),
            state: ActionState::Running,
            start: Some(start),
            stop: None,
            duration: String::new(),
            message: "running action".to_owned(),
        };
        if self.report(&report).await == Receipt::Refused {
            return Receipt::Refused;
        }
        tracing::info!(action = %name, image = %image, "action begins");
        let ActionEnd { state, mut message, leave, wanted } = self.execute(&assignment).await;
        if wanted {
            message.push_str(&self.handle(&assignment, state).await);
        }
        report.state = state;
        report.stop = Some(Timestamp::now());
        report.duration = go_duration(begun.elapsed());
        report.message = message;
        let (state, took, message) = (report.state, &report.duration, &report.message);
        tracing::info!(action = %name, %state, %took, result = %message, "action ended");
        let receipt = self.report(&report).await;
        if let (Some(how), Receipt::Acknowledged) = (leave, receipt) {
            tracing::info!(?how, "leaving the agent's OS");
            if let Err(error) = self.host.leave(how) {
                tracing::error!(reason = %stdx::chain(&error), "cannot leave the agent's OS");
            }
        }
        receipt
    }

    async fn execute(&self, assignment: &Assignment) -> ActionEnd {
        let meter = Arc::new(Meter::default());
        let acting = match self.host.act(assignment, &self.limits, &meter) {
            Ok(acting) => acting,
            Err(error) => return ActionEnd::new(ActionState::Failed, stdx::chain(&error)),
        };
        let ended = self.watch(assignment, acting, &meter).await;
        progress::send_rest(&self.client, assignment, &meter).await;
        ended
    }

    /// Waits until the action ends, exceeds its timeout, or is stopped by the box.
    async fn watch(
        &self,
        assignment: &Assignment,
        acting: RunningAction,
        meter: &Arc<Meter>,
    ) -> ActionEnd {
        let mut reporting = AbortOnDrop(tokio::spawn(progress::report(
            self.client.clone(),
            assignment.clone(),
            meter.clone(),
        )));
        let (choices, requests) = Choices::new();
        let recording = disk_choice::record(self.client.clone(), assignment.clone(), requests);
        let _recording = AbortOnDrop(tokio::spawn(recording));
        let mut running = AbortOnDrop(tokio::spawn(choices.scope(acting)));
        let limit = time_limit(assignment.timeout_secs);
        let outcome = tokio::select! {
            joined = &mut running.0 => {
                joined.unwrap_or_else(|error| Err(crashed("the action", error).into()))
            }
            () = tokio::time::sleep(limit) => {
                meter.stop();
                let message = format!("stopped after its limit of {} s", limit.as_secs());
                return ActionEnd::new(ActionState::Timeout, message);
            }
            // An agent whose progress task ended without a reason continues the action.
            Ok(Some(why)) = &mut reporting.0 => {
                meter.stop();
                let ended = ActionEnd::new(ActionState::Failed, format!("stopped: {why}"));
                return ActionEnd { wanted: false, ..ended };
            }
        };
        match outcome {
            Ok(Outcome::Done(message)) => ActionEnd::new(ActionState::Success, message),
            Ok(Outcome::Leave(how)) => {
                let message = match how {
                    Leave::Reboot => "restarting the machine",
                    Leave::Kexec => "starting the loaded kernel",
                    Leave::PowerOff => "powering the machine off",
                };
                ActionEnd { leave: Some(how), ..ActionEnd::new(ActionState::Success, message) }
            }
            Err(error) => ActionEnd::new(ActionState::Failed, stdx::chain(&error)),
        }
    }

    /// Sends a report, and repeats it without a time limit until the box responds.
    async fn report(&self, report: &Report) -> Receipt {
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut unanswered = false;
        loop {
            let error = match self.client.report(report.clone()).await {
                Ok(()) => return Receipt::Acknowledged,
                Err(error) => error,
            };
            if error.is_permanent() {
                let (state, reason) = (report.state, stdx::chain(&error));
                tracing::warn!(%state, %reason, "the box refused the report");
                // An earlier attempt may have arrived, with only its answer lost. The box has then
                // moved on from this report.
                let arrived = unanswered && report.state != ActionState::Running;
                return if arrived { Receipt::Acknowledged } else { Receipt::Refused };
            }
            unanswered |= matches!(error, CallError::Unreachable { .. });
            tracing::warn!(reason = %stdx::chain(&error), "cannot send the report, trying again");
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }
}

/// Result of an ended action, for the report.
struct ActionEnd {
    state: ActionState,
    message: String,
    leave: Option<Leave>,
    /// False if the box stopped the action; no handler runs then.
    wanted: bool,
}

impl ActionEnd {
    fn new(state: ActionState, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), leave: None, wanted: true }
    }
}

/// Task handle that aborts the task on drop.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the timeout of an action. 0 and negative values mean unlimited: about a hundred years,
/// which tokio's clock supports.
fn time_limit(seconds: i64) -> Duration {
    const NEVER: u64 = 3_000_000_000;
    let seconds = u64::try_from(seconds).unwrap_or(0);
    Duration::from_secs(if seconds == 0 { NEVER } else { seconds.min(NEVER) })
}

/// Formats a duration as Go does, with a precision of 1 ms: `1m2.5s`, `340ms`.
fn go_duration(time: Duration) -> String {
    let millis = time.as_millis();
    if millis < 1000 {
        return format!("{millis}ms");
    }
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let mut seconds = format!("{}.{:03}", rest / 1000, rest % 1000);
    seconds.truncate(seconds.trim_end_matches('0').trim_end_matches('.').len());
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{go_duration, time_limit};

    #[test]
    fn durations_read_like_go() {
        for (millis, text) in [
            (0, "0ms"),
            (340, "340ms"),
            (1000, "1s"),
            (62_500, "1m2.5s"),
            (60_000, "1m0s"),
            (3_600_010, "1h0m0.01s"),
        ] {
            assert_eq!(go_duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn zero_and_less_mean_no_limit() {
        assert_eq!(time_limit(5), Duration::from_secs(5));
        assert_eq!(time_limit(0), time_limit(-1));
        assert_eq!(time_limit(i64::MAX), time_limit(0));
    }
}
