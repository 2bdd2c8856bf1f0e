//! How the box learns how far an action is, and what it prints.

use std::sync::Arc;
use std::time::Duration;

use agent_rpc::client::{Client, Error as CallError};
use agent_rpc::{Assignment, OUTPUT_LINES, Progress, WAITING};
use imaging::Meter;
use tokio::time::Instant;

/// The longest silence while an action runs.
const BEAT: Duration = Duration::from_secs(5);
/// How often progress is told.
const TELL: Duration = Duration::from_secs(1);
/// Longest wait for one telling; it holds up nothing but the next.
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Tell the box how far the action has come: once a second when that has changed, and every
/// [`BEAT`] when not, so that silence means that this machine is gone. Returns why the action must
/// be stopped once the box says so, `None` when the server does not listen.
pub async fn tell(client: Client, assignment: Assignment, meter: Arc<Meter>) -> Option<String> {
    let mut told = (0, 0, String::new());
    let mut beat = Instant::now();
    loop {
        tokio::time::sleep(TELL).await;
        let now = read(&meter);
        let output = meter.take_printed(OUTPUT_LINES);
        if now == told && output.is_empty() && beat.elapsed() < BEAT {
            continue;
        }
        beat = Instant::now();
        let progress = progress(&client, &assignment, now.clone(), output);
        match tokio::time::timeout(TELL_TIMEOUT, client.progress(progress)).await {
            Ok(Err(CallError::Unsupported { .. })) => return None,
            Ok(Ok(Some(why))) => return Some(why),
            Ok(Ok(None)) => told = now,
            // Its workflow was deleted, and with it this agent's right to speak of it.
            Ok(Err(error)) if error.is_no_action() => return Some(stdx::chain(&error)),
            // Losing one is harmless; the next says more.
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Tell what was printed since the last telling, which would be lost with the meter.
pub async fn rest(client: &Client, assignment: &Assignment, meter: &Meter) {
    let output = meter.take_printed(OUTPUT_LINES);
    if !output.is_empty() {
        let last = client.progress(progress(client, assignment, read(meter), output));
        // As any other: the action's end is told all the same.
        let _ = tokio::time::timeout(TELL_TIMEOUT, last).await;
    }
}

/// What `meter` shows; while the action waits, the reason stands in the place of what is being
/// done.
fn read(meter: &Meter) -> (u64, u64, String) {
    let (done, total, doing) = meter.read();
    let doing = meter.waiting().map_or(doing, |reason| format!("{WAITING}{reason}"));
    (done, total, doing)
}

/// What `meter` read, and lines, as it travels.
fn progress(
    client: &Client,
    assignment: &Assignment,
    (bytes_done, bytes_total, message): (u64, u64, String),
    output: Vec<String>,
) -> Progress {
    Progress {
        agent_id: client.agent_id().to_owned(),
        workflow_id: assignment.workflow_id.clone(),
        task_id: assignment.task_id.clone(),
        action_id: assignment.action_id.clone(),
        bytes_done,
        bytes_total,
        message,
        output,
    }
}

#[cfg(test)]
mod tests {
    use imaging::Meter;

    use super::read;

    #[test]
    fn a_wait_says_its_reason_until_it_ends() {
        let meter = Meter::default();
        meter.say("asking the box for alpine");
        meter.wait("the server answered 503");
        assert_eq!(read(&meter).2, "waiting: the server answered 503");
        meter.wait("");
        assert_eq!(read(&meter).2, "asking the box for alpine");
    }
}
