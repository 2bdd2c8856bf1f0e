//! Response body that is compressed frame by frame while it is sent.

use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::Frame;

/// Body with its gzip compressor, which is dropped after the last byte.
pub(super) struct GzipBody {
    body: Body,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipBody {
    pub fn new(body: Body) -> Self {
        Self { body, encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())) }
    }
}

impl HttpBody for GzipBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        while let Some(encoder) = &mut this.encoder {
            let data = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(frame) => frame?.into_data().unwrap_or_default(),
                None => {
                    let encoder = this.encoder.take();
                    let last = encoder.map(GzEncoder::finish).transpose();
                    let last = last.map_err(axum::Error::new)?.unwrap_or_default();
                    return Poll::Ready(Some(Ok(Frame::data(last.into()))));
                }
            };
            encoder.write_all(&data).map_err(axum::Error::new)?;
            let packed = std::mem::take(encoder.get_mut());
            if !packed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(packed.into()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.encoder.is_none()
    }
}
