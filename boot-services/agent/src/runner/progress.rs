//! Reports progress and output of an action to the box.

use std::sync::Arc;
use std::time::Duration;

use agent_rpc::client::{Client, Error as CallError};
use agent_rpc::{Assignment, OUTPUT_LINES, Progress, WAITING};
use imaging::{Meter, MeterReading};
use tokio::time::Instant;

/// Maximum interval between two messages while an action runs.
const BEAT: Duration = Duration::from_secs(5);
/// Interval of progress messages.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Timeout of one progress message. A slow message delays only the next one.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Reports progress to the box: once a second if it has changed, and otherwise every [`BEAT`], so
/// that silence means a lost machine. Returns the reason once the box stops the action, or `None`
/// when the server does not support progress.
pub async fn report(client: Client, assignment: Assignment, meter: Arc<Meter>) -> Option<String> {
    let mut reported = MeterReading::default();
    let mut beat = Instant::now();
    loop {
        tokio::time::sleep(REPORT_EVERY).await;
        let now = read(&meter);
        let output = meter.take_printed(OUTPUT_LINES);
        if now == reported && output.is_empty() && beat.elapsed() < BEAT {
            continue;
        }
        beat = Instant::now();
        let progress = progress(&client, &assignment, now.clone(), output);
        match tokio::time::timeout(REPORT_TIMEOUT, client.progress(progress)).await {
            Ok(Err(CallError::Unsupported { .. })) => return None,
            Ok(Ok(Some(why))) => return Some(why),
            Ok(Ok(None)) => reported = now,
            // The workflow was deleted, so the agent may not report on it any more.
            Ok(Err(error)) if error.is_no_action() => return Some(stdx::chain(&error)),
            // A lost message is harmless, because the next one has newer values.
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Sends the output since the last message, which would be lost with the meter.
pub async fn send_rest(client: &Client, assignment: &Assignment, meter: &Meter) {
    let output = meter.take_printed(OUTPUT_LINES);
    if !output.is_empty() {
        let last = client.progress(progress(client, assignment, read(meter), output));
        // A failure is ignored, because the end of the action is reported in any case.
        let _ = tokio::time::timeout(REPORT_TIMEOUT, last).await;
    }
}

/// Reads the meter. While the action waits, the reason of the wait replaces the current step.
fn read(meter: &Meter) -> MeterReading {
    let mut reading = meter.read();
    if let Some(reason) = meter.waiting() {
        reading.doing = format!("{WAITING}{reason}");
    }
    reading
}

/// Returns a progress message from the values of the meter and the output.
fn progress(
    client: &Client,
    assignment: &Assignment,
    reading: MeterReading,
    output: Vec<String>,
) -> Progress {
    Progress {
        agent_id: client.agent_id().to_owned(),
        workflow_id: assignment.workflow_id.clone(),
        task_id: assignment.task_id.clone(),
        action_id: assignment.action_id.clone(),
        bytes_done: reading.done,
        bytes_total: reading.total,
        message: reading.doing,
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
        meter.say("requesting alpine from the box");
        meter.wait("the server answered 503");
        assert_eq!(read(&meter).doing, "waiting: the server answered 503");
        meter.wait("");
        assert_eq!(read(&meter).doing, "requesting alpine from the box");
    }
}
