//! An answer that keeps its place among the requests until its last byte is on its way.

use std::pin::Pin;
use std::task::{Context, Poll};

use access::Share;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};

struct Held {
    body: Body,
    _share: Share,
}

/// Binds `share` to the life of the answer's body.
pub(super) fn hold(response: Response, share: Option<Share>) -> Response {
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
