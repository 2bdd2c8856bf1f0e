//! Queue of passphrases to hash. Only one passphrase is hashed at a time, because a hash needs 19
//! MiB. Addresses with a recent wrong guess come last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::guess_limiter::Standing;

/// Maximum number of waiting requests per [`Standing`].
pub const WAITING_MAX: usize = 64;

/// Queue for hashing passphrases: one request hashes at a time.
#[derive(Default)]
pub struct HashQueue(Mutex<State>);

#[derive(Default)]
struct State {
    is_taken: bool,
    /// Waiting requests for each [`Standing`], in order of arrival.
    waiting: [VecDeque<oneshot::Sender<HashTurn>>; 3],
}

/// Permission to hash. The next request begins when this value is dropped.
pub struct HashTurn(Option<Arc<HashQueue>>);

impl HashQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the permission to hash; `None` if [`WAITING_MAX`] requests of this `standing`
    /// wait.
    pub async fn take(self: &Arc<Self>, standing: Standing) -> Option<HashTurn> {
        let waiting = {
            let mut state = self.state();
            if !std::mem::replace(&mut state.is_taken, true) {
                return Some(HashTurn(Some(Arc::clone(self))));
            }
            let line = &mut state.waiting[standing as usize];
            // Removes requests whose client is gone.
            line.retain(|waiting| !waiting.is_closed());
            if line.len() >= WAITING_MAX {
                return None;
            }
            let (give, waiting) = oneshot::channel();
            line.push_back(give);
            waiting
        };
        waiting.await.ok()
    }
}

impl Drop for HashTurn {
    fn drop(&mut self) {
        let Some(turns) = self.0.take() else { return };
        loop {
            let mut state = turns.state();
            let Some(next) = state.waiting.iter_mut().find_map(VecDeque::pop_front) else {
                state.is_taken = false;
                return;
            };
            drop(state);
            match next.send(HashTurn(Some(Arc::clone(&turns)))) {
                Ok(()) => return,
                // The client of that request is gone: takes the next request.
                Err(mut turn) => drop(turn.0.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{HashQueue, WAITING_MAX};
    use crate::guess_limiter::Standing::{Guesser, New, Proven};

    #[tokio::test]
    async fn those_who_guessed_wrong_wait_for_all_others() {
        let turns = Arc::new(HashQueue::default());
        let first = turns.take(Guesser).await.unwrap();
        let (sender, mut order) = tokio::sync::mpsc::channel(4);
        let mut tasks = Vec::new();
        for (name, standing) in [("a", Guesser), ("b", New), ("c", Guesser), ("d", Proven)] {
            let (turns, sender) = (Arc::clone(&turns), sender.clone());
            tasks.push(tokio::spawn(async move {
                let turn = turns.take(standing).await;
                sender.send(name).await.unwrap();
                drop(turn);
            }));
            tokio::task::yield_now().await;
        }
        tasks[0].abort();
        tokio::task::yield_now().await;
        drop(first);
        for name in ["d", "b", "c"] {
            assert_eq!(order.recv().await, Some(name));
        }
        assert!(turns.take(New).await.is_some());
    }

    #[tokio::test]
    async fn a_crowd_of_guessers_takes_no_other_s_place() {
        let turns = Arc::new(HashQueue::default());
        let first = turns.take(New).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_MAX {
            let turns = Arc::clone(&turns);
            waiting.push(tokio::spawn(async move { turns.take(Guesser).await.is_some() }));
        }
        while turns.state().waiting[Guesser as usize].len() < WAITING_MAX {
            tokio::task::yield_now().await;
        }
        assert!(turns.take(Guesser).await.is_none());
        let owner = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take(Proven).await.is_some() }
        });
        tokio::task::yield_now().await;
        drop(first);
        assert!(owner.await.unwrap());
        for guesser in waiting {
            assert!(guesser.await.unwrap());
        }
    }
}
