//! Lists as response bodies. A short list is made at once. A long list is read from the store page
//! by page, at the client's speed, in the state of the first page's revision. Therefore only one
//! page is in memory for a client that stops reading.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use serde_json::{Map, Value};

use super::finish::{ENCODER_BYTES, MAX_YAML, PagedResponse};
use crate::budget::HeldBytes;
use crate::wire::negotiate::Shape;
use crate::wire::response::{self, Form};
use resources::definition::ResourceDefinition;
use resources::engine::{
    Engine, ListOptions, ObjectList, RevisionMatch, TextList, WriteItem, text,
};
use resources::object::decode;
use resources::table::RowObject;
use resources::{Reason, StatusError};

/// Maximum bytes of objects in a page of a list; a smaller list is sent as a whole.
const PAGE_BYTES: usize = 256 * 1024;
/// Bytes counted for a long list: a page, its copy in transit, and the compressor.
const LONG_LIST_BYTES: usize = 2 * PAGE_BYTES + ENCODER_BYTES;

/// List request, with the requested form of the response.
#[derive(Clone)]
pub(super) struct Listing {
    pub engine: Engine,
    pub definition: Arc<ResourceDefinition>,
    pub resource: String,
    pub namespace: Option<String>,
    pub shape: Shape,
    pub row: RowObject,
    pub options: ListOptions,
}

/// Body of a long list that is being sent.
struct ListStream {
    listing: Listing,
    /// Pieces of the text that are ready to send.
    ready: VecDeque<Bytes>,
    /// True if more pages follow.
    more: bool,
    held: HeldBytes,
    /// Bytes of the present page beyond [`PAGE_BYTES`], counted separately.
    extra: usize,
}

impl Listing {
    /// Returns the response. The bytes in memory are counted in `held`.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::list`]; 406 if the list is too long for YAML, 429 if the
    /// client's response bytes exceed its limit.
    pub async fn respond(
        self,
        in_yaml: bool,
        mut held: HeldBytes,
    ) -> Result<Response, StatusError> {
        let room = if in_yaml { usize::try_from(MAX_YAML).unwrap_or(0) } else { PAGE_BYTES };
        let page = self.page(room).await?;
        if self.is_over(&page) {
            let (head, tail) = self.frame(&page.list, false);
            let pieces = std::iter::once(head).chain(page.items.into_vec()).chain([tail]);
            let pieces = pieces.filter(|piece| !piece.is_empty()).collect();
            return Ok(response::pieces(StatusCode::OK, pieces));
        }
        if in_yaml {
            let why = "the list is too long for YAML: request JSON, or pages";
            return Err(StatusError::new(Reason::NotAcceptable, why));
        }
        if !held.take(LONG_LIST_BYTES) {
            return Err(StatusError::too_many_requests());
        }
        let (head, _) = self.frame(&page.list, true);
        let mut sending = ListStream {
            listing: self,
            ready: VecDeque::from([head]),
            more: false,
            held,
            extra: 0,
        };
        sending.put(page)?;
        let body = Body::from_stream(stream::try_unfold(sending, ListStream::next));
        let mut response = Response::new(body);
        response::headers(&mut response);
        response.extensions_mut().insert(PagedResponse);
        Ok(response)
    }

    async fn page(&self, room: usize) -> Result<TextList, StatusError> {
        let (shape, row) = (self.shape, self.row);
        let now = self.engine.clock().now();
        let write: WriteItem = match shape {
            Shape::Object => Arc::new(text::write_item),
            _ => Arc::new(move |definition, stored, out| {
                let form = Form { definition, shape, row, now };
                text::write_value(&form.item(decode(definition, stored)?), out)
            }),
        };
        let (namespace, options) = (self.namespace.as_deref(), self.options.clone());
        self.engine.list_text(&self.resource, namespace, options, (room, write)).await
    }

    /// Returns true if `page` is the end of the list or reaches the requested limit.
    fn is_over(&self, page: &TextList) -> bool {
        let limit = self.options.limit;
        page.list.continue_token.is_none() || (limit > 0 && page.count >= limit)
    }

    /// Returns the text before and after the items. With `late`, the metadata of a long list follow
    /// the items, because the end of the list is still unknown when the head is sent.
    fn frame(&self, list: &ObjectList, late: bool) -> (Bytes, Bytes) {
        let form = Form {
            definition: &self.definition,
            shape: self.shape,
            row: self.row,
            now: self.engine.clock().now(),
        };
        let items = if matches!(self.shape, Shape::Table(_)) { "rows" } else { "items" };
        let mut frame = match form.list(ObjectList { items: Vec::new(), ..list.clone() }) {
            Value::Object(frame) => frame,
            _ => Map::new(),
        };
        frame.remove(items);
        let (mut head, mut tail) = (String::from("{"), String::from("]"));
        for (key, value) in frame {
            let field = format!("\"{key}\":{value}");
            if key.as_str() < items && !(late && key == "metadata") {
                head.push_str(&field);
                head.push(',');
            } else {
                tail.push(',');
                tail.push_str(&field);
            }
        }
        head.push_str(&format!("\"{items}\":["));
        tail.push('}');
        (head.into(), tail.into())
    }
}

impl ListStream {
    /// Returns the next piece of the text with the rest of the list; `None` after the last piece.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, StatusError> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some((piece, self)));
            }
            self.held.give_back(std::mem::take(&mut self.extra));
            if !std::mem::take(&mut self.more) {
                return Ok(None);
            }
            let page = self.listing.page(PAGE_BYTES).await.inspect_err(|error| {
                tracing::debug!(%error, "a list was truncated: its rest cannot be read");
            })?;
            self.ready.push_back(Bytes::from_static(b","));
            self.put(page)?;
        }
    }

    /// Adds a page to send; 429 if a large object would exceed the client's byte limit.
    fn put(&mut self, page: TextList) -> Result<(), StatusError> {
        let is_over = self.listing.is_over(&page);
        let TextList { list, items, count } = page;
        let pieces = items.into_vec();
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        self.extra = bytes.saturating_sub(PAGE_BYTES);
        if !self.held.take(self.extra) {
            self.extra = 0;
            tracing::debug!(bytes, "a list was cut: too many bytes of responses are held");
            return Err(StatusError::too_many_requests());
        }
        self.ready.extend(pieces);
        if is_over {
            self.ready.push_back(self.listing.frame(&list, true).1);
            return Ok(());
        }
        let options = &mut self.listing.options;
        options.limit = options.limit.saturating_sub(count);
        options.revision = RevisionMatch::Newest;
        options.continue_token = list.continue_token;
        self.more = true;
        Ok(())
    }
}
