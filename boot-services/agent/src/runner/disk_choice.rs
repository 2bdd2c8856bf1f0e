//! Reports the disk that a hint selected to the box, before an action uses the disk.

use agent_rpc::client::{Client, Error as CallError};
use agent_rpc::{Assignment, DiskChoice};
use imaging::select::Request;
use stdx::Backoff;
use tokio::sync::mpsc;

use super::{FIRST_WAIT, LONGEST_WAIT};

/// Reports each selected disk, and answers its request. Returns when the action has ended.
pub async fn record(client: Client, assignment: Assignment, mut requests: mpsc::Receiver<Request>) {
    while let Some(request) = requests.recv().await {
        let disk = &request.disk;
        let choice = DiskChoice {
            agent_id: client.agent_id().to_owned(),
            workflow_id: assignment.workflow_id.clone(),
            task_id: assignment.task_id.clone(),
            action_id: assignment.action_id.clone(),
            hint: request.hint.clone(),
            wwn: disk.wwn.clone(),
            serial: disk.serial.clone(),
            model: disk.model.clone(),
            bytes: disk.size,
        };
        let answer = ask(&client, choice).await;
        request.answer(answer);
    }
}

/// Sends the report until the box responds, without a time limit. `Err` is the box's reason to
/// refuse the disk.
async fn ask(client: &Client, choice: DiskChoice) -> Result<(), String> {
    let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
    loop {
        match client.choose_disk(choice.clone()).await {
            // A stock Tinkerbell server does not record disks.
            Ok(()) | Err(CallError::Unsupported { .. }) => return Ok(()),
            Err(CallError::Refused { refusal, .. }) if refusal.is_permanent() => {
                return Err(refusal.to_string());
            }
            Err(error) => {
                let reason = stdx::chain(&error);
                tracing::warn!(hint = %choice.hint, %reason, "the disk is not recorded yet");
            }
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}
