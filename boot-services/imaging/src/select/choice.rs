//! The box records which disk a hint chose before the disk is used, and refuses another one later
//! in the same workflow: a hint such as `model=Samsung` may fit another disk after a restart.
//!
//! The work of an action runs in the scope of its [`Choices`], so that whatever names a disk in it
//! is recorded. Outside of such a scope nothing is recorded.

use std::future::Future;
use std::sync::mpsc as std_mpsc;

use tokio::sync::mpsc;

use super::Described;

/// Choices of one action that wait for their answers.
const WAITING_MAX: usize = 16;

tokio::task_local! {
    static CHOICES: Choices;
}

/// Records the choices of one action. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Choices(mpsc::Sender<Request>);

/// A choice that is to be recorded.
#[derive(Debug)]
pub struct Request {
    /// The hint, without a partition.
    pub hint: String,
    /// The disk that it chose.
    pub disk: Described,
    answer: std_mpsc::SyncSender<Result<(), String>>,
}

impl Request {
    /// Lets the work go on, or says why the disk must not be used.
    pub fn answer(self, answer: Result<(), String>) {
        // The work may have ended.
        let _ = self.answer.try_send(answer);
    }
}

impl Choices {
    /// One action's, and what it asks to be recorded.
    pub fn new() -> (Self, mpsc::Receiver<Request>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// The work of the action.
    pub fn scope<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CHOICES.scope(self, work)
    }
}

/// Blocking work in the scope of whoever starts it.
pub fn in_scope<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let choices = CHOICES.try_with(Clone::clone);
    move || match choices {
        Ok(choices) => CHOICES.sync_scope(choices, work),
        Err(_) => work(),
    }
}

/// Has a choice recorded, and waits until it is. Blocks.
///
/// # Errors
/// Why the disk must not be used, as a sentence.
pub fn record(hint: String, disk: &Described) -> Result<(), String> {
    let Ok(choices) = CHOICES.try_with(Clone::clone) else { return Ok(()) };
    let stopped = "the action was stopped before its choice of a disk was recorded";
    let (answer, answered) = std_mpsc::sync_channel(1);
    let request = Request { hint, disk: disk.clone(), answer };
    choices.0.try_send(request).map_err(|_| stopped.to_owned())?;
    // Without it the receiver would wait for itself.
    drop(choices);
    answered.recv().unwrap_or_else(|_| Err(stopped.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Choices, in_scope, record};
    use crate::select::Described;
    use crate::stream::blocking;

    #[tokio::test]
    async fn a_disk_is_used_once_its_choice_is_recorded() {
        let disk = Described { name: "sda".to_owned(), ..Described::default() };
        let (choices, mut asked) = Choices::new();
        let answering = tokio::spawn(async move {
            let first = asked.recv().await.unwrap();
            let seen = (first.hint.clone(), first.disk.name.clone());
            first.answer(Ok(()));
            asked.recv().await.unwrap().answer(Err("another one".to_owned()));
            // Gone without an answer, as when the action is stopped.
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
