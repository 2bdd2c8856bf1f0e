//! Computes the checksum of the downloaded bytes on a separate thread, from shared buffers.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::{Algorithm, Checksum, Hasher};
use crate::Error;
use crate::stream::piece::{PIECES, Piece};
use crate::task::crashed;

const PART: &str = "computing the checksum of the image";

enum Task {
    Add(Piece),
    /// Requests a copy of the current hash state.
    Tell(oneshot::Sender<Hasher>),
}

/// Running computation of a checksum. The drop ends the thread.
pub(in crate::stream) struct Summing {
    algorithm: Algorithm,
    tasks: mpsc::Sender<Task>,
    thread: JoinHandle<Hasher>,
}

impl Summing {
    pub(in crate::stream) fn start(algorithm: Algorithm) -> Self {
        // Space for all pieces and one request.
        let (tasks, mut asked) = mpsc::channel(PIECES + 1);
        let thread = tokio::task::spawn_blocking(move || {
            let mut hasher = Hasher::new(algorithm);
            while let Some(task) = asked.blocking_recv() {
                match task {
                    Task::Add(piece) => hasher.update(piece.bytes()),
                    Task::Tell(answer) => {
                        // The requesting task may have ended.
                        let _ = answer.send(hasher.clone());
                    }
                }
            }
            hasher
        });
        Self { algorithm, tasks, thread }
    }

    pub(in crate::stream) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(in crate::stream) async fn add(&self, piece: Piece) -> Result<(), Error> {
        // If the thread has ended, it has panicked. `finish` reports the panic.
        self.tasks.send(Task::Add(piece)).await.map_err(|_| Error::Stopped)
    }

    /// Returns the hash state over all pieces added before.
    pub(in crate::stream) async fn so_far(&self) -> Result<Hasher, Error> {
        let (answer, reply) = oneshot::channel();
        self.tasks.send(Task::Tell(answer)).await.map_err(|_| Error::Stopped)?;
        reply.await.map_err(|_| Error::Stopped)
    }

    /// Returns the checksum over all added pieces.
    pub(in crate::stream) async fn finish(self) -> Result<Checksum, Error> {
        let Self { tasks, thread, .. } = self;
        drop(tasks);
        thread.await.map(Hasher::finish).map_err(|error| crashed(PART, error))
    }
}
