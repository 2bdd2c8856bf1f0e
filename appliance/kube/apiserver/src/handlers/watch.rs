//! Watches as response bodies with one JSON event per line, or as WebSockets with one event per
//! frame.
//!
//! A separate task reads an event from the store only if the connection can take one, so that for a
//! slow client only a revision and one line are in memory. A large line counts against the client's
//! response bytes. A client that falls behind the store's change log gets 410. The task ends when
//! the client disconnects, and at the watch's timeout even if the client reads nothing.

mod frame;
mod line;
mod socket;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use tokio::time::Instant;

use self::line::{Line, Writer};
pub use self::socket::Handshake;
use crate::budget::HeldBytes;
use crate::wire::negotiate::Shape;
use crate::wire::query::Query;
use crate::wire::response::{self, Form};
use resources::StatusError;
use resources::definition::ResourceDefinition;
use resources::engine::{Engine, EventKind, ObjectWatch, RawEvent};
use resources::table::RowObject;

/// Minimum duration of a watch without `timeoutSeconds`; the maximum is twice as long.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Maximum duration of a watch; a longer `timeoutSeconds` is reduced to this value.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Time for the client to read the last data after the end of a watch.
const LAST_CALL: Duration = Duration::from_secs(5);
/// Maximum time for which a piece of a large line may stay unread; then the watch ends.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size in bytes of a line that is not counted against the client's response bytes.
const SMALL_LINE_BYTES: usize = 16 * 1024;

/// Watch that is being sent to a client.
pub struct Feed {
    /// Watch, or the error that the client gets as the first event.
    watch: Result<ObjectWatch, StatusError>,
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    shape: Shape,
    /// Counter of the client's response bytes.
    held: HeldBytes,
    row: RowObject,
    ends: Instant,
    bookmarks: bool,
    /// True if a Table with columns was already sent; later Tables have no columns.
    headed: bool,
    over: bool,
}

impl Feed {
    pub fn new(
        watch: Result<ObjectWatch, StatusError>,
        engine: Engine,
        definition: Arc<ResourceDefinition>,
        (shape, held): (Shape, HeldBytes),
    ) -> Self {
        Self {
            watch,
            engine,
            definition,
            shape,
            held,
            row: RowObject::default(),
            ends: Instant::now() + DEFAULT_TIMEOUT,
            bookmarks: false,
            headed: false,
            over: false,
        }
    }

    /// Sets the part of the object that each Table row contains (`includeObject`).
    pub fn with_rows(mut self, row: RowObject) -> Self {
        self.row = row;
        self
    }

    /// Enables a bookmark at the end of the watch if the query has `allowWatchBookmarks`.
    pub fn bookmarks(mut self, query: &Query) -> Self {
        self.bookmarks = query.flag("allowWatchBookmarks");
        self
    }

    /// Sets the duration. Without `length`, the duration is random (30 to 60 minutes), so that
    /// clients that started together do not reconnect together.
    pub fn until(mut self, length: Option<Duration>) -> Self {
        let length = match length {
            Some(length) => length.min(MAX_TIMEOUT),
            None => {
                let random = uuid::Uuid::new_v4().into_bytes()[0];
                DEFAULT_TIMEOUT + DEFAULT_TIMEOUT * u32::from(random) / 256
            }
        };
        self.ends = Instant::now() + length;
        self
    }

    /// Returns the response; headers are sent at once, events as they occur.
    pub fn respond(self) -> Response {
        let (writer, body) = line::pair(STALL_TIMEOUT);
        tokio::spawn(self.send(writer));
        let mut response = Response::new(Body::new(body));
        response::headers(&mut response);
        response
    }

    /// Returns the response 101, after which the events are sent over a WebSocket.
    pub fn respond_to(self, handshake: Handshake) -> Response {
        handshake.respond(self)
    }

    /// Frees the memory of events that the watch has read ahead.
    fn rest(&mut self) {
        if let Ok(watch) = &mut self.watch {
            watch.rest();
        }
    }

    /// Fetches and sends events until the watch ends or the client disconnects.
    async fn send(mut self, mut writer: Writer) {
        loop {
            if !writer.is_wanted() {
                self.rest();
            }
            let wanted = tokio::time::timeout_at(self.ends + LAST_CALL, writer.wanted()).await;
            if !matches!(wanted, Ok(true)) {
                return;
            }
            let line = tokio::select! {
                biased;
                () = writer.closed() => return,
                line = self.next() => line,
            };
            let Some(line) = line else { return };
            writer.write(line);
        }
    }

    async fn next(&mut self) -> Option<Line> {
        if self.over {
            return None;
        }
        let watch = match &mut self.watch {
            Ok(watch) => watch,
            Err(error) => {
                self.over = true;
                return Some(failed(error));
            }
        };
        let event = match tokio::time::timeout_at(self.ends, watch.next_raw()).await {
            // If the kind changed, the client must start a new watch.
            Ok(event) => event.transpose()?,
            Err(_) => {
                self.over = true;
                if !(self.bookmarks && watch.is_caught_up()) {
                    return None;
                }
                Ok(watch.bookmark_raw())
            }
        };
        let written = event.and_then(|event| self.line(event));
        Some(written.unwrap_or_else(|error| {
            self.over = true;
            failed(&error)
        }))
    }

    /// Returns the line of an event; 429 if a large object exceeds the client's byte limit. The
    /// watch then ends, and the client can continue from its last revision.
    fn line(&mut self, event: RawEvent) -> Result<Line, StatusError> {
        let bytes = event.bytes();
        let held = match bytes > SMALL_LINE_BYTES {
            true => {
                let mut held = self.held.another();
                if !held.take(bytes) {
                    return Err(StatusError::too_many_requests());
                }
                Some(held)
            }
            false => None,
        };
        let kind = match event.kind {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
            EventKind::Bookmark => "BOOKMARK",
        };
        if self.shape == Shape::Object {
            let mut text = Vec::new();
            event.write(&mut text)?;
            return Ok(Line::new(line(kind, &text), held));
        }
        let event = event.read()?;
        let form = Form {
            definition: &self.definition,
            shape: self.shape,
            row: self.row,
            now: self.engine.clock().now(),
        };
        let object = match self.shape {
            Shape::Table(meta) if event.kind == EventKind::Bookmark => {
                form.progress(&event.object, meta)
            }
            Shape::Table(meta) => form.rows(&event.object, !self.headed, meta),
            _ => form.object(event.object),
        };
        self.headed |= event.kind != EventKind::Bookmark;
        Ok(Line::new(line(kind, object.to_string().as_bytes()), held))
    }
}

/// Returns the line that ends a watch with an error.
fn failed(error: &StatusError) -> Line {
    Line::new(line("ERROR", error.to_value().to_string().as_bytes()), None)
}

/// Formats one event as `{"type":KIND,"object":OBJECT}` and a newline.
fn line(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(object.len() + 40);
    text.extend_from_slice(b"{\"type\":\"");
    text.extend_from_slice(kind.as_bytes());
    text.extend_from_slice(b"\",\"object\":");
    text.extend_from_slice(object);
    text.extend_from_slice(b"}\n");
    text
}
