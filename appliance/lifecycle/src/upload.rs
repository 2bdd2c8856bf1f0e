//! Uploads as they come. A client that falls silent holds nothing: a half-open connection would
//! keep backups and updates from everybody else.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Longest wait for the next piece.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes that must come within [`WINDOW`] of waiting for them.
const WINDOW_BYTES: usize = 64 << 10;
/// See [`WINDOW_BYTES`].
const WINDOW: Duration = Duration::from_secs(60);

/// End of an upload, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All of it came, or the client went away: the reader knows which.
    Body,
    /// Nobody wants more of it.
    Reader,
    /// It came too slowly.
    Stalled,
}

/// Passes the pieces of a body on. With its end, or when too little comes, `to` is closed.
pub async fn pass(mut body: BodyDataStream, to: mpsc::Sender<Bytes>) -> End {
    let (mut waited, mut bytes) = (Duration::ZERO, 0);
    loop {
        let begun = Instant::now();
        let piece = match timeout(SILENCE, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None | Some(Err(_))) => return End::Body,
            Err(_) => return stalled(),
        };
        // The time that the reader takes is not the client's.
        waited += begun.elapsed();
        bytes += piece.len();
        if bytes >= WINDOW_BYTES {
            (waited, bytes) = (Duration::ZERO, 0);
        } else if waited >= WINDOW {
            return stalled();
        }
        if to.send(piece).await.is_err() {
            return End::Reader;
        }
    }
}

fn stalled() -> End {
    tracing::warn!("an upload came too slowly and was ended");
    End::Stalled
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::body::{Body, Bytes};
    use futures_util::{StreamExt as _, stream};
    use tokio::sync::mpsc;
    use tokio::time::{Instant, sleep};

    use super::{End, SILENCE, WINDOW, WINDOW_BYTES, pass};

    /// Pieces of so many bytes, each after a pause; then silence, or the end.
    fn body(pieces: usize, size: usize, pause: Duration, ends: bool) -> Body {
        let sent = stream::iter(0..pieces).then(move |_| async move {
            sleep(pause).await;
            Ok::<_, Infallible>(Bytes::from(vec![7; size]))
        });
        if ends {
            Body::from_stream(sent)
        } else {
            Body::from_stream(sent.chain(stream::pending()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_that_stalls_is_ended() {
        let second = Duration::from_secs(1);
        for (body, end, pieces, limit) in [
            (body(3, 100, second, true), End::Body, 3, second * 3),
            // Silent after ten bytes.
            (body(1, 10, second, false), End::Stalled, 1, second + SILENCE),
            // A byte now and then.
            (body(1000, 1, second * 20, false), End::Stalled, 2, WINDOW),
            // Slow, and fast enough.
            (body(20, WINDOW_BYTES / 2, second * 25, true), End::Body, 20, second * 25 * 20),
        ] {
            let (send, mut receive) = mpsc::channel(1);
            let begun = Instant::now();
            let counting = async {
                let mut count = 0;
                while receive.recv().await.is_some() {
                    count += 1;
                }
                count
            };
            let (found, count) = tokio::join!(pass(body.into_data_stream(), send), counting);
            assert_eq!((found, count), (end, pieces));
            assert_eq!(begun.elapsed(), limit, "{end:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_no_slow_client() {
        let (send, mut receive) = mpsc::channel(1);
        let reading = async {
            let mut count = 0;
            while receive.recv().await.is_some() {
                count += 1;
                sleep(WINDOW * 2).await;
            }
            count
        };
        let body = body(5, 10, Duration::from_secs(1), true).into_data_stream();
        assert_eq!(tokio::join!(pass(body, send), reading), (End::Body, 5));
    }
}
