//! The sum of an image as served, computed beside everything else, on a thread of its own and over
//! the same buffers.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::checksum::{Algorithm, Checksum, Hasher};
use super::crashed;
use super::piece::{PIECES, Piece};
use crate::Error;

const PART: &str = "summing the image";

enum Task {
    Add(Piece),
    /// Say how far it is.
    Tell(oneshot::Sender<Hasher>),
}

/// A sum under way. Dropping it ends the thread.
pub(super) struct Summing {
    algorithm: Algorithm,
    tasks: mpsc::Sender<Task>,
    thread: JoinHandle<Hasher>,
}

impl Summing {
    pub(super) fn start(algorithm: Algorithm) -> Self {
        // The pieces there are, and one question.
        let (tasks, mut asked) = mpsc::channel(PIECES + 1);
        let thread = tokio::task::spawn_blocking(move || {
            let mut hasher = Hasher::new(algorithm);
            while let Some(task) = asked.blocking_recv() {
                match task {
                    Task::Add(piece) => hasher.update(piece.bytes()),
                    Task::Tell(answer) => {
                        // Who asked may have gone away.
                        let _ = answer.send(hasher.clone());
                    }
                }
            }
            hasher
        });
        Self { algorithm, tasks, thread }
    }

    pub(super) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(super) async fn add(&self, piece: Piece) -> Result<(), Error> {
        // A thread that is gone has crashed: `finish` says how.
        self.tasks.send(Task::Add(piece)).await.map_err(|_| Error::Stopped)
    }

    /// Of all that was added so far.
    pub(super) async fn so_far(&self) -> Result<Hasher, Error> {
        let (answer, told) = oneshot::channel();
        self.tasks.send(Task::Tell(answer)).await.map_err(|_| Error::Stopped)?;
        told.await.map_err(|_| Error::Stopped)
    }

    /// Of all that was added.
    pub(super) async fn finish(self) -> Result<Checksum, Error> {
        let Self { tasks, thread, .. } = self;
        drop(tasks);
        thread.await.map(Hasher::finish).map_err(|error| crashed(PART, error))
    }
}
