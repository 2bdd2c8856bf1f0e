//! A watch as a body: one JSON event a line, sent as it happens.
//!
//! A task of its own fetches the events. It is two lines ahead of the connection at most, and what
//! the engine holds for a watch has a limit too, so a client that reads slowly costs little; one
//! that falls behind what the store keeps is told 410. The task ends with the watch's time, even
//! when nothing is read at all, and when the client goes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::answer::{self, Form};
use super::negotiate::Shape;
use super::query::Query;
use crate::definition::ResourceDefinition;
use crate::engine::{Engine, EventKind, ObjectWatch, RawEvent};
use crate::status_error::StatusError;
use crate::table::RowObject;

/// A watch that says no end of its own ends after this long, and up to as much again.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Longest watch.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a client may take to read what is left at the end.
const LAST_CALL: Duration = Duration::from_secs(5);

/// A watch on its way to a client.
pub struct Feed {
    /// The watch, or why it cannot begin.
    watch: Result<ObjectWatch, StatusError>,
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    shape: Shape,
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
        shape: Shape,
    ) -> Self {
        Self {
            watch,
            engine,
            definition,
            shape,
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
        let (lines, mut taken) = mpsc::channel(1);
        tokio::spawn(self.send(lines));
        let events = stream::poll_fn(move |context| taken.poll_recv(context));
        let events = events.map(Ok::<_, Infallible>);
        let mut response = Response::new(Body::from_stream(events));
        answer::headers(&mut response);
        response
    }

    /// Fetches and sends events until the watch is over, or nobody takes them any more.
    async fn send(mut self, lines: mpsc::Sender<Bytes>) {
        loop {
            let line = tokio::select! {
                biased;
                () = lines.closed() => return,
                line = self.next() => line,
            };
            let Some(line) = line else { return };
            let sent = tokio::time::timeout_at(self.ends + LAST_CALL, lines.send(line)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let watch = match &mut self.watch {
            Ok(watch) => watch,
            Err(error) => {
                self.over = true;
                return Some(line("ERROR", error.to_value().to_string().as_bytes()));
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
            line("ERROR", error.to_value().to_string().as_bytes())
        }))
    }

    fn line(&mut self, event: RawEvent) -> Result<Bytes, StatusError> {
        let kind = match event.kind {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
            EventKind::Bookmark => "BOOKMARK",
        };
        if self.shape == Shape::Object {
            let mut text = Vec::new();
            event.write(&mut text)?;
            return Ok(line(kind, &text));
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
        Ok(line(kind, object.to_string().as_bytes()))
    }
}

/// One event: `{"type":KIND,"object":OBJECT}` and a line's end.
fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(object.len() + 40);
    text.extend_from_slice(b"{\"type\":\"");
    text.extend_from_slice(kind.as_bytes());
    text.extend_from_slice(b"\",\"object\":");
    text.extend_from_slice(object);
    text.extend_from_slice(b"}\n");
    text.into()
}
