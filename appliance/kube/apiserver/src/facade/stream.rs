//! A watch as a body: one JSON event a line, sent as it happens; or as a WebSocket, one event a
//! frame.
//!
//! A task of its own fetches an event when the connection wants one, not before: a client that
//! reads slowly costs the box a revision and one line, and a large line counts among the bytes of
//! answers that the client may hold. One that falls behind what the store keeps is told 410. The
//! task ends with the watch's time, even when nothing is read at all, and when the client goes.

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
use super::answer::{self, Form};
use super::negotiate::Shape;
use super::query::Query;
use crate::budget::Held;
use resources::StatusError;
use resources::definition::ResourceDefinition;
use resources::engine::{Engine, EventKind, ObjectWatch, RawEvent};
use resources::table::RowObject;

/// A watch that says no end of its own ends after this long, and up to as much again.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Longest watch.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a client may take to read what is left at the end.
const LAST_CALL: Duration = Duration::from_secs(5);
/// Longest time in which a client takes no piece of a large line.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Lines up to this size are not counted: all watches together may hold so many of them.
const SMALL_LINE_BYTES: usize = 16 * 1024;

/// A watch on its way to a client.
pub struct Feed {
    /// The watch, or why it cannot begin.
    watch: Result<ObjectWatch, StatusError>,
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    shape: Shape,
    /// Of the bytes of answers that the client may hold.
    held: Held,
    row: RowObject,
    ends: Instant,
    bookmarks: bool,
    /// Whether the client has been sent the columns of its Table.
    headed: bool,
    over: bool,
}

impl Feed {
    pub fn new(
        watch: Result<ObjectWatch, StatusError>,
        engine: Engine,
        definition: Arc<ResourceDefinition>,
        (shape, held): (Shape, Held),
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

    /// What the rows of a Table carry.
    pub fn with_rows(mut self, row: RowObject) -> Self {
        self.row = row;
        self
    }

    /// Whether a last bookmark goes out before the end.
    pub fn bookmarks(mut self, query: &Query) -> Self {
        self.bookmarks = query.flag("allowWatchBookmarks");
        self
    }

    /// Ends after `length`; without one at a time that differs from watch to watch, so that clients
    /// that began together do not all come back together.
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

    /// The answer: headers now, events as they come.
    pub fn respond(self) -> Response {
        let (writer, body) = line::pair(STALL_TIMEOUT);
        tokio::spawn(self.send(writer));
        let mut response = Response::new(Body::new(body));
        answer::headers(&mut response);
        response
    }

    /// The answer as a WebSocket.
    pub fn respond_to(self, handshake: Handshake) -> Response {
        handshake.respond(self)
    }

    /// Lets go of what the watch has looked at ahead.
    fn rest(&mut self) {
        if let Ok(watch) = &mut self.watch {
            watch.rest();
        }
    }

    /// Fetches and sends events until the watch is over, or nobody takes them any more.
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
            // A kind that has changed is watched anew.
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

    /// The event's line. Where its object is larger than what the client may hold now, the watch
    /// ends; clients go on from the revision they have.
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

/// The line that ends a watch.
fn failed(error: &StatusError) -> Line {
    Line::new(line("ERROR", error.to_value().to_string().as_bytes()), None)
}

/// One event: `{"type":KIND,"object":OBJECT}` and a line's end.
fn line(kind: &str, object: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(object.len() + 40);
    text.extend_from_slice(b"{\"type\":\"");
    text.extend_from_slice(kind.as_bytes());
    text.extend_from_slice(b"\",\"object\":");
    text.extend_from_slice(object);
    text.extend_from_slice(b"}\n");
    text
}
