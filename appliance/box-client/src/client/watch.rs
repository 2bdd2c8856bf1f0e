//! Watch of a collection, across restarts of the box and network failures.
//!
//! A watch is a list, then a stream of events from the list's revision. After a stream ends, the
//! next stream begins at its last revision. If the box no longer has this revision, or was
//! unreachable, the collection is listed again.

use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::Value;
use stdx::Backoff;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{ANSWER_TIMEOUT, Client, Path, path, reach, read_answer};
use crate::error::ClientError;

/// Maximum number of queued events.
const QUEUE: usize = 64;
/// Maximum length of a line in the stream, in bytes.
const LINE_BYTES_MAX: usize = 8 << 20;
/// Maximum duration of one stream in seconds (`timeoutSeconds`); the next stream begins then.
const STREAM_SECONDS: u64 = 290;
/// First and maximum wait between attempts to reach the box.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// Change of the collection, or of the connection.
#[derive(Debug)]
pub enum WatchEvent {
    /// All objects: at the begin, and after every new list.
    Listed(Vec<Value>),
    /// Object that was created or changed.
    Changed(Value),
    /// An object was deleted.
    Deleted,
    /// The box is unreachable; the watch retries. Sent once per outage.
    Unreachable(String),
}

/// Running watch. Dropping the value ends the watch.
pub struct Watch {
    receiver: mpsc::Receiver<Result<WatchEvent, ClientError>>,
    task: JoinHandle<()>,
}

impl Watch {
    pub(super) fn start(client: Client, path: Path, selector: String) -> Watch {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let watcher = Watcher { client, path, selector, sender };
        Watch { receiver, task: tokio::spawn(watcher.run()) }
    }

    /// Waits for the next event. Cancelling the call loses no event.
    ///
    /// # Errors
    /// The request fails for a permanent reason. The watch has ended.
    pub async fn next(&mut self) -> Result<WatchEvent, ClientError> {
        self.receiver.recv().await.unwrap_or_else(|| {
            let why = "the watch has ended".to_owned();
            Err(ClientError::Answer { what: "watch".to_owned(), why })
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reason why a stream ended.
enum StreamEnd {
    /// The receiver was dropped.
    Unread,
    /// The box ended the stream; the next stream begins at this revision.
    Over(String),
    /// The stream cannot continue (revision too old); the collection must be listed again.
    Stale,
}

struct Watcher {
    client: Client,
    path: Path,
    selector: String,
    sender: mpsc::Sender<Result<WatchEvent, ClientError>>,
}

impl Watcher {
    async fn run(self) {
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut away = false;
        loop {
            match self.round(&mut backoff, &mut away).await {
                Ok(StreamEnd::Unread) => return,
                Ok(_) => {}
                Err(error) if error.is_passing() => {
                    if !away
                        && self.send(WatchEvent::Unreachable(error.to_string())).await.is_none()
                    {
                        return;
                    }
                    away = true;
                }
                Err(error) => {
                    // A failed send means that the receiver is gone: the watch ends in both cases.
                    let _ = self.sender.send(Err(error)).await;
                    return;
                }
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    /// Runs one list and the streams that follow it.
    async fn round(
        &self,
        backoff: &mut Backoff,
        away: &mut bool,
    ) -> Result<StreamEnd, ClientError> {
        let (items, mut revision) = self.client.list(&self.path, &self.selector).await?;
        *away = false;
        backoff.reset();
        if self.send(WatchEvent::Listed(items)).await.is_none() {
            return Ok(StreamEnd::Unread);
        }
        loop {
            match self.stream(&revision).await? {
                // A stream without news ends as fast as the box likes: never ask without a pause.
                StreamEnd::Over(next) if next == revision => tokio::time::sleep(FIRST_WAIT).await,
                StreamEnd::Over(next) => revision = next,
                end => return Ok(end),
            }
        }
    }

    async fn stream(&self, revision: &str) -> Result<StreamEnd, ClientError> {
        let seconds = STREAM_SECONDS.to_string();
        let query = path::query(&[
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds),
            ("resourceVersion", revision),
            ("fieldSelector", &self.selector),
        ]);
        let sent = self.client.send(http::Method::GET, &self.path, &query, None);
        let server = self.client.server();
        let response = tokio::time::timeout(ANSWER_TIMEOUT, sent)
            .await
            .unwrap_or_else(|_| Err(reach::silent(server)))?;
        let code = response.status().as_u16();
        if code != 200 {
            read_answer(&format!("watch {}", self.path), code, b"{}")?;
        }
        let mut body = response.into_body();
        let mut lines = Lines::default();
        let mut revision = revision.to_owned();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| reach::broken(server, &error))?;
            let Ok(data) = frame.into_data() else { continue };
            lines.push(&data)?;
            while let Some(line) = lines.next() {
                match self.take(&line?, &mut revision).await {
                    Some(true) => {}
                    Some(false) => return Ok(StreamEnd::Stale),
                    None => return Ok(StreamEnd::Unread),
                }
            }
        }
        Ok(StreamEnd::Over(revision))
    }

    /// Handles one event. Returns `false` if the stream cannot continue, `None` without a receiver.
    async fn take(&self, event: &Value, revision: &mut String) -> Option<bool> {
        let object = &event["object"];
        let version = object["metadata"]["resourceVersion"].as_str();
        let change = match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => Some(WatchEvent::Changed(object.clone())),
            Some("DELETED") => Some(WatchEvent::Deleted),
            Some("BOOKMARK") => None,
            _ => return Some(false),
        };
        if let Some(version) = version {
            version.clone_into(revision);
        }
        match change {
            Some(change) => self.send(change).await.map(|()| true),
            None => Some(true),
        }
    }

    async fn send(&self, change: WatchEvent) -> Option<()> {
        self.sender.send(Ok(change)).await.ok()
    }
}

/// Splits pieces of any length into lines of JSON.
#[derive(Default)]
struct Lines {
    buffer: Vec<u8>,
    /// Position before which the buffer has no newline.
    searched: usize,
}

impl Lines {
    fn push(&mut self, data: &[u8]) -> Result<(), ClientError> {
        if self.buffer.len() + data.len() > LINE_BYTES_MAX {
            return Err(unreadable(format!("a line has more than {LINE_BYTES_MAX} bytes")));
        }
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    fn next(&mut self) -> Option<Result<Value, ClientError>> {
        let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(self.searched + at + 1);
        let line = std::mem::replace(&mut self.buffer, rest);
        self.searched = 0;
        Some(serde_json::from_slice(&line).map_err(|error| unreadable(error.to_string())))
    }
}

fn unreadable(why: String) -> ClientError {
    ClientError::Answer { what: "read the watch".to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES_MAX, Lines};

    #[test]
    fn lines_come_out_whole_however_they_arrive() {
        let mut lines = Lines::default();
        let mut read = Vec::new();
        for piece in [&b"{\"a\""[..], b":1}\n{\"a\":2}", b"\n", b"{\"a\":3}\n{"] {
            lines.push(piece).unwrap();
            while let Some(line) = lines.next() {
                read.push(line.unwrap()["a"].as_i64());
            }
        }
        assert_eq!(read, [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn lines_that_are_no_lines_are_errors() {
        let mut lines = Lines::default();
        lines.push(b"nonsense\n").unwrap();
        assert!(lines.next().unwrap().is_err());
        assert!(lines.push(&vec![b'x'; LINE_BYTES_MAX + 1]).is_err());
    }
}
