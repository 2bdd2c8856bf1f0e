//! Response body that occupies the request's slot until the last byte is sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use rbac::Share;

struct SeatedBody {
    body: Body,
    _share: Share,
}

/// Slot of a request that continues after the response, such as a WebSocket. Dropping the last
/// clone releases the slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seat(Arc<Mutex<Option<Share>>>);

/// Keeps the slot `share` until the response body, or the response's [`Seat`], is dropped.
pub(super) fn hold(response: Response, share: Option<Share>) -> Response {
    if let Some(Seat(seat)) = response.extensions().get::<Seat>().cloned() {
        *seat.lock().unwrap_or_else(PoisonError::into_inner) = share;
        return response;
    }
    match share {
        Some(share) => response.map(|body| Body::new(SeatedBody { body, _share: share })),
        None => response,
    }
}

impl HttpBody for SeatedBody {
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
