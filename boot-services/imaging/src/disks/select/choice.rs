//! Record of the disk that a hint selected. The box stores the record before the action uses the
//! disk, and later refuses another disk in the same workflow: after a restart, a hint such as
//! `model=Samsung` may match another disk.
//!
//! An action runs in the scope of its [`Choices`] (task-local). Each selection in the scope is
//! recorded. Outside of a scope nothing is recorded.

use std::future::Future;
use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;

use super::DiskInfo;

/// Maximum number of an action's unanswered record requests.
const WAITING_MAX: usize = 16;

tokio::task_local! {
    static CHOICES: Choices;
}

/// Sender of one action's record requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Choices(mpsc::Sender<Request>);

/// Request to record a selected disk.
#[derive(Debug)]
pub struct Request {
    /// Sorted hints of the action, without a partition.
    pub hint: String,
    /// Disk that the hint selected.
    pub disk: DiskInfo,
    answer: std_mpsc::SyncSender<Result<(), String>>,
}

impl Request {
    /// Answers the request: `Ok` lets the action use the disk, `Err` refuses it with a reason.
    pub fn answer(self, answer: Result<(), String>) {
        // The work may have ended.
        let _ = self.answer.try_send(answer);
    }
}

impl Choices {
    /// Creates the channel of an action. The receiver must answer each [`Request`].
    pub fn new() -> (Self, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// Runs `work` in the scope of this sender.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CHOICES.scope(self, work)
    }
}

/// Wraps blocking work so that it runs in the caller's scope on another thread.
pub fn in_scope<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let choices = CHOICES.try_with(Clone::clone);
    move || match choices {
        Ok(choices) => CHOICES.sync_scope(choices, work),
        Err(_) => work(),
    }
}

/// Requests the record of a disk and waits for the answer. Blocks. Returns `Ok` outside a scope.
///
/// # Errors
/// The disk must not be used; the text is the reason.
pub fn record(hint: String, disk: &DiskInfo) -> Result<(), String> {
    let Ok(choices) = CHOICES.try_with(Clone::clone) else { return Ok(()) };
    let stopped = "the action was stopped before its choice of a disk was recorded";
    let (answer, answered) = std_mpsc::sync_channel(1);
    let request = Request { hint, disk: disk.clone(), answer };
    choices.0.try_send(request).map_err(|_| stopped.to_owned())?;
    // This sender would keep the channel open while this thread waits for the receiver.
    drop(choices);
    answered.recv().unwrap_or_else(|_| Err(stopped.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Choices, in_scope, record};
    use crate::disks::select::DiskInfo;
    use crate::task::blocking;

    #[tokio::test]
    async fn a_disk_is_used_once_its_choice_is_recorded() {
        let disk = DiskInfo { name: "sda".to_owned(), ..DiskInfo::default() };
        let (choices, mut asked) = Choices::new();
        let answering = tokio::spawn(async move {
            let first = asked.recv().await.unwrap();
            let seen = (first.hint.clone(), first.disk.name.clone());
            first.answer(Ok(()));
            asked.recv().await.unwrap().answer(Err("another one".to_owned()));
            // Dropped without a response, as when the action is stopped.
            drop(asked.recv().await);
            seen
        });
        let used = disk.clone();
        let work = choices.scope(async move {
            let mut answers = Vec::new();
            for hint in ["one", "two", "three"] {
                let disk = used.clone();
                let work = move || Ok(record(hint.to_owned(), &disk));
                answers.push(blocking("recording", work).await.unwrap());
            }
            answers
        });
        let answers = work.await;
        assert_eq!(answering.await.unwrap(), ("one".to_owned(), "sda".to_owned()));
        assert_eq!(answers[0], Ok(()));
        assert_eq!(answers[1], Err("another one".to_owned()));
        assert!(answers[2].as_ref().unwrap_err().contains("stopped"), "{answers:?}");
        assert_eq!(in_scope(|| record("one".to_owned(), &disk))(), Ok(()), "no workflow");
    }
}
