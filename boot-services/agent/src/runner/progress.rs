//! Reports progress and output of a running action to the box.

use std::sync::Arc;
use std::time::Duration;

use agent_rpc::client::{Client, Error as CallError};
use agent_rpc::{Assignment, OUTPUT_LINES, Progress, WAITING};
use imaging::{Meter, MeterReading};
use tokio::time::Instant;

/// Maximum interval between two progress messages of a running action (heartbeat).
const BEAT: Duration = Duration::from_secs(5);
/// Interval of progress messages while the progress changes.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// Timeout of one progress message.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// Reports progress each second if changed, and at least every [`BEAT`], so that the box can detect
/// a lost machine. Returns the reason if the box stops the action; `None` if the server does not
/// support progress.
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

/// Sends the output since the last message, after the action's end.
pub async fn send_rest(client: &Client, assignment: &Assignment, meter: &Meter) {
    let output = meter.take_printed(OUTPUT_LINES);
    if !output.is_empty() {
        let last = client.progress(progress(client, assignment, read(meter), output));
        // A failure is ignored, because the end of the action is reported in any case.
        let _ = tokio::time::timeout(REPORT_TIMEOUT, last).await;
    }
}

/// Reads the meter. During a wait, `doing` is [`WAITING`] and the reason instead of the step.
fn read(meter: &Meter) -> MeterReading {
    let mut reading = meter.read();
    if let Some(reason) = meter.waiting() {
        reading.doing = format!("{WAITING}{reason}");
    }
    reading
}

/// Builds a progress message from the meter's values and the output.
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
