//! Time limit of a connection whose client has not authenticated.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Authentication state of one connection; clones share it. A listener puts it into the extensions
/// of each request. The code that finds a valid token in a request calls [`Proof::show`].
#[derive(Debug, Clone)]
pub struct Proof {
    shown: CancellationToken,
    due: Instant,
}

impl Proof {
    /// Creates the state of a connection that begins now. Its client must authenticate within
    /// `limit`.
    pub fn within(limit: Duration) -> Self {
        Self { shown: CancellationToken::new(), due: Instant::now() + limit }
    }

    /// Marks the client as authenticated, for the rest of the connection.
    pub fn show(&self) {
        self.shown.cancel();
    }

    /// Returns true if the client has authenticated.
    pub fn is_shown(&self) -> bool {
        self.shown.is_cancelled()
    }

    /// Waits until the time limit has passed without authentication; waits forever after
    /// [`Proof::show`].
    pub async fn overdue(&self) {
        if timeout_at(self.due, self.shown.cancelled()).await.is_ok() {
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep, timeout};

    use super::Proof;

    const LIMIT: Duration = Duration::from_secs(20);

    #[tokio::test(start_paused = true)]
    async fn a_client_has_its_time_and_no_more() {
        let began = Instant::now();
        Proof::within(LIMIT).overdue().await;
        assert_eq!(began.elapsed(), LIMIT);
        let proof = Proof::within(LIMIT);
        let showing = proof.clone();
        tokio::spawn(async move {
            sleep(LIMIT / 2).await;
            showing.show();
        });
        assert!(timeout(LIMIT * 100, proof.overdue()).await.is_err());
        assert!(proof.is_shown());
    }
}
