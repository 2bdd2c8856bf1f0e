//! Time limit of a connection whose client has not shown that it is known.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// Of one connection: whether its client has shown that it is known. A listener puts it into the
/// extensions of each request; what finds a good token in one says so here. Clones are of the same
/// connection.
#[derive(Debug, Clone)]
pub struct Proof {
    shown: CancellationToken,
    due: Instant,
}

impl Proof {
    /// Of a connection that begins now, due within `limit`.
    pub fn within(limit: Duration) -> Self {
        Self { shown: CancellationToken::new(), due: Instant::now() + limit }
    }

    /// The client has shown that it is known.
    pub fn show(&self) {
        self.shown.cancel();
    }

    /// True if it has.
    pub fn is_shown(&self) -> bool {
        self.shown.is_cancelled()
    }

    /// Waits until the proof is due and was not shown; for ever once it is shown.
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
