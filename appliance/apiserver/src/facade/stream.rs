//! A watch as a body: one JSON event a line, sent as it happens.
//!
//! Nothing is queued here: the next event is fetched when the connection takes more, so a client
//! that reads slowly costs no memory. One that falls behind what the store keeps is told 410.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::answer::{self, Form};
use super::negotiate::Shape;
use super::query::Query;
use crate::definition::ResourceDefinition;
use crate::engine::{Engine, EventKind, ObjectWatch, WatchEvent};
use crate::table::RowObject;

/// A watch that says no end of its own ends after this long, and up to as much again.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Longest watch.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// A watch on its way to a client.
pub struct Feed {
    watch: ObjectWatch,
    engine: Engine,
    definition: Arc<ResourceDefinition>,
    shape: Shape,
    row: RowObject,
    ends: Instant,
    bookmarks: bool,
    /// Whether the client has been sent the columns of its Table.
    headed: bool,
    over: bool,
    _permit: OwnedSemaphorePermit,
}

impl Feed {
    pub fn new(
        watch: ObjectWatch,
        engine: Engine,
        definition: Arc<ResourceDefinition>,
        shape: Shape,
        permit: OwnedSemaphorePermit,
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
            _permit: permit,
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

    /// Ends after `seconds`; without a number at a time that differs from watch to watch, so that
    /// clients that began together do not all come back together.
    pub fn until(mut self, seconds: Option<u64>) -> Self {
        let length = match seconds.filter(|seconds| *seconds > 0) {
            Some(seconds) => Duration::from_secs(seconds).min(MAX_TIMEOUT),
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
        let events = stream::unfold(self, |mut feed| async move {
            let line = feed.next().await?;
            Some((Ok::<_, Infallible>(line), feed))
        });
        let mut response = Response::new(Body::from_stream(events));
        answer::headers(&mut response);
        response
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        match tokio::time::timeout_at(self.ends, self.watch.next()).await {
            Ok(Ok(event)) => Some(self.line(event)),
            Ok(Err(error)) => {
                self.over = true;
                Some(line("ERROR", &error.to_value()))
            }
            Err(_) => {
                self.over = true;
                let last = self.bookmarks && self.watch.is_caught_up();
                last.then(|| self.line(self.watch.bookmark()))
            }
        }
    }

    fn line(&mut self, event: WatchEvent) -> Bytes {
        let kind = match event.kind {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
            EventKind::Bookmark => "BOOKMARK",
        };
        let form = Form {
            definition: &self.definition,
            shape: self.shape,
            row: self.row,
            now: self.engine.clock().now(),
        };
        let object = match self.shape {
            Shape::Table => form.rows(&event.object, !self.headed),
            _ => form.object(event.object),
        };
        self.headed = true;
        line(kind, &object)
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut text = json!({ "type": kind, "object": object }).to_string();
    text.push('\n');
    text.into()
}
