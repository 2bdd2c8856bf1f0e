//! Tracks the use of a connection: the number of requests in progress, and the end of the last
//! response.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, sleep_until};

/// Activity of one connection; clones share the state.
#[derive(Clone)]
pub(super) struct Activity {
    limit: Duration,
    state: Arc<Mutex<State>>,
}

struct State {
    running: usize,
    /// Time at which the last response ended, or the connection began.
    ended: Instant,
}

/// Request that is in progress until this value is dropped.
pub(super) struct Running(Activity);

impl Activity {
    /// Creates the state of a connection that begins now. The connection is idle after `limit`
    /// without a request.
    pub(super) fn new(limit: Duration) -> Self {
        let state = State { running: 0, ended: Instant::now() };
        Self { limit, state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as in progress, until the returned value is dropped.
    pub(super) fn begin(&self) -> Running {
        self.state().running += 1;
        Running(self.clone())
    }

    /// Waits until the connection has had no request for the limit.
    pub(super) async fn is_idle(&self) {
        loop {
            let (now, until) = {
                let state = self.state();
                let now = Instant::now();
                let since = if state.running > 0 { now } else { state.ended };
                (now, since + self.limit)
            };
            if until <= now {
                return;
            }
            sleep_until(until).await;
        }
    }
}

impl Running {
    /// Extends the request until the response's body has ended.
    pub(super) fn until_end(self, body: Body) -> Body {
        Body::new(Answer { body, _running: self })
    }
}

struct Answer {
    body: Body,
    _running: Running,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running -= 1;
        state.ended = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::Activity;

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_its_last_answer_has_ended() {
        let activity = Activity::new(LIMIT);
        let begun = Instant::now();
        let (first, second) = (activity.begin(), activity.begin());
        tokio::spawn(async move {
            sleep(Duration::from_secs(600)).await;
            drop(first);
            sleep(Duration::from_secs(1)).await;
            drop(second);
        });
        activity.is_idle().await;
        let idle = begun.elapsed() - Duration::from_secs(601);
        assert!(idle >= LIMIT && idle <= 2 * LIMIT, "{idle:?}");
        let unused = Instant::now();
        Activity::new(LIMIT).is_idle().await;
        assert_eq!(unused.elapsed(), LIMIT);
    }
}
