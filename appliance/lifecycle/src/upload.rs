//! Uploads of backups and bundles. A client that stops sending is disconnected, because a half-open
//! connection would block backups and updates of all other clients.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

/// Maximum wait for the next piece of an upload.
const SILENCE: Duration = Duration::from_secs(30);
/// Minimum number of bytes that a client must send per [`WINDOW`] of waiting time.
const WINDOW_BYTES: usize = 64 << 10;
/// Waiting time after which a client that sent less than [`WINDOW_BYTES`] is disconnected.
const WINDOW: Duration = Duration::from_secs(60);

/// Reason why an upload ended, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The body ended, or the client disconnected. The reader of the data can distinguish both.
    Body,
    /// The reader stopped reading.
    Reader,
    /// The client sent too slowly.
    Stalled,
}

/// Forwards the pieces of a body. Closes `to` at the end, or if the client sends too slowly.
pub async fn pass(mut body: BodyDataStream, to: mpsc::Sender<Bytes>) -> End {
    let (mut waited, mut bytes) = (Duration::ZERO, 0);
    loop {
        let begun = Instant::now();
        let piece = match timeout(SILENCE, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None | Some(Err(_))) => return End::Body,
            Err(_) => return stalled(),
        };
        // Only the wait for the client counts, not the time that the reader takes.
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
    tracing::warn!("an upload was too slow and was stopped");
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

    /// Body of `pieces` pieces, each after a pause; then the end if `ends`, else no more data.
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
            // No data after ten bytes.
            (body(1, 10, second, false), End::Stalled, 1, second + SILENCE),
            // One small piece every 20 seconds.
            (body(1000, 1, second * 20, false), End::Stalled, 2, WINDOW),
            // Slow, but above the minimum.
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
