//! An answer that keeps its place among the requests until its last byte is on its way.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use rbac::Share;

struct Held {
    body: Body,
    _share: Share,
}

/// The place of a request that goes on after its answer, as a WebSocket does; kept as long as a
/// clone of it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seat(Arc<Mutex<Option<Share>>>);

/// Binds `share` to the life of the answer's body, or of what goes on after it.
pub(super) fn hold(response: Response, share: Option<Share>) -> Response {
    if let Some(Seat(seat)) = response.extensions().get::<Seat>().cloned() {
        *seat.lock().unwrap_or_else(PoisonError::into_inner) = share;
        return response;
    }
    match share {
        Some(share) => response.map(|body| Body::new(Held { body, _share: share })),
        None => response,
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
