//! Multipart forms with a file (RFC 7578), parsed as a stream by the crate `multer`. Short fields
//! come first; the file is passed on in pieces and never held in memory as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use futures_util::{Stream, StreamExt as _, stream};
use multer::{Constraints, Error, Field, Multipart, SizeLimit};
use tokio::sync::mpsc;

/// Maximum length of a boundary in bytes (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Limit of a part's header in bytes: after it, no further piece of the body is read.
const HEADER_BYTES_MAX: usize = 4 << 10;
/// Maximum size of a field that is not a file, in bytes.
const FIELD_BYTES_MAX: usize = 4 << 10;
/// Name of the field with the file.
const FILE: &str = "file";
/// Maximum wait for a header, field or piece, so that a lost browser does not block a restore.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum size of a form with a backup or an update, in bytes.
const FORM_BYTES_MAX: u64 = 513 << 20;
/// Maximum number of pieces of a file that wait for the disk.
const PIECES_MAX: usize = 4;

/// Error in a multipart form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// The form does not have the expected fields.
    #[error("The form is incomplete or malformed. Reload the page and try again.")]
    Shape,
    /// The form ends before its last boundary.
    #[error("The upload was interrupted. Try again.")]
    Cut,
    /// A field, a header or the form exceeds its limit.
    #[error("The form is too large.")]
    Long,
}

impl From<Error> for FormError {
    fn from(error: Error) -> Self {
        match error {
            Error::StreamReadFailed(cause) => *cause.downcast_ref().unwrap_or(&FormError::Cut),
            Error::IncompleteFieldData { .. } => FormError::Cut,
            Error::FieldSizeExceeded { .. } | Error::StreamSizeExceeded { .. } => FormError::Long,
            _ => FormError::Shape,
        }
    }
}

/// Multipart form that is being received.
pub struct Form {
    parts: Multipart<'static>,
    /// Number of bytes that may still be read for the header of the next part.
    head: Arc<AtomicUsize>,
}

impl Form {
    /// Begins to read the form of a request with these headers, of at most 513 MiB.
    ///
    /// # Errors
    /// The content type is not a multipart form with a valid boundary ([`FormError::Shape`]).
    pub fn of<S, E>(headers: &HeaderMap, body: S) -> Result<Self, FormError>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
        E: 'static,
    {
        Self::with_limit(headers, body, FORM_BYTES_MAX)
    }

    /// Begins to read a form like [`Self::of`], of at most `bytes_max`.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn with_limit<S, E>(headers: &HeaderMap, body: S, bytes_max: u64) -> Result<Self, FormError>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin + Send + 'static,
        E: 'static,
    {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let boundary = multer::parse_boundary(kind.unwrap_or_default())?;
        if !(1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()) {
            return Err(FormError::Shape);
        }
        let limits = SizeLimit::new().whole_stream(bytes_max);
        let limits = limits.per_field(FIELD_BYTES_MAX as u64).for_field(FILE, bytes_max);
        let limits = Constraints::new().size_limit(limits);
        let head = Arc::new(AtomicUsize::new(0));
        let pieces = pieces(body, Arc::clone(&head));
        Ok(Self { parts: Multipart::with_constraints(pieces, boundary, limits), head })
    }

    /// Returns the text of the next field, which must have this name.
    ///
    /// # Errors
    /// The next field has another name, is too long, or is not UTF-8.
    pub async fn field(&mut self, name: &str) -> Result<String, FormError> {
        let bytes = in_time(self.begin(name).await?.bytes()).await?;
        String::from_utf8(bytes.into()).map_err(|_| FormError::Shape)
    }

    /// Sends the pieces of the next field, which must have this name, to `to`. Reads the whole
    /// field even without a receiver: a browser shows a response only after it has sent the form.
    ///
    /// # Errors
    /// The next field has another name, the form ends early, or the form is too large.
    pub async fn pass(&mut self, name: &str, to: mpsc::Sender<Bytes>) -> Result<(), FormError> {
        let mut field = self.begin(name).await?;
        while let Some(piece) = in_time(field.chunk()).await? {
            if !piece.is_empty() {
                // A receiver that is gone has reported its reason.
                let _ = to.send(piece).await;
            }
        }
        Ok(())
    }

    /// Sends the next field, which must have this name, to `to`, as [`Self::pass`] does. The stream
    /// of the receiver ends only after the whole field; else its last item is an error.
    ///
    /// # Errors
    /// As [`Self::pass`].
    pub async fn pass_whole(&mut self, name: &str, to: FileSender) -> Result<(), FormError> {
        self.pass(name, to.0.clone()).await?;
        // An empty piece is the end: no other piece is empty.
        let _ = to.0.send(Bytes::new()).await;
        Ok(())
    }

    /// Reads the header of the next part, which must have this name.
    async fn begin(&mut self, name: &str) -> Result<Field<'static>, FormError> {
        self.head.store(HEADER_BYTES_MAX, Ordering::Relaxed);
        let field = in_time(self.parts.next_field()).await?;
        self.head.store(usize::MAX, Ordering::Relaxed);
        field.filter(|field| field.name() == Some(name)).ok_or(FormError::Shape)
    }
}

/// Sender of a file for [`Form::pass_whole`].
pub struct FileSender(mpsc::Sender<Bytes>);

/// Creates the channel of a file whose receiver notices if the file is cut off.
pub fn file_channel() -> (FileSender, impl Stream<Item = Result<Bytes, FormError>> + Send) {
    let (sender, pieces) = mpsc::channel::<Bytes>(PIECES_MAX);
    let stream = stream::unfold(Some(pieces), |pieces| async {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(end) if end.is_empty() => None,
            Some(piece) => Some((Ok(piece), Some(pieces))),
            None => Some((Err(FormError::Cut), None)),
        }
    });
    (FileSender(sender), stream)
}

/// Waits for a step of the parser; fails after [`SILENCE`].
async fn in_time<T>(step: impl Future<Output = Result<T, Error>>) -> Result<T, FormError> {
    let step = tokio::time::timeout(SILENCE, step).await;
    Ok(step.map_err(|_| FormError::Cut)??)
}

/// Returns the pieces of a body for multer. The stream is pending before each piece, because multer
/// reads until a stream is pending and holds all that it read; and before the end, because multer
/// treats a form as incomplete if the end comes with the first piece (rwf2/multer#70). It is
/// pending twice, because multer reads twice before it looks for the first boundary. multer has no
/// limit for headers: after `head` bytes, the next piece is an error.
fn pieces<S, E>(body: S, head: Arc<AtomicUsize>) -> impl Stream<Item = Result<Bytes, FormError>>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    stream::unfold((body, head), |(mut body, head)| async move {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        let piece = body.next().await?.map_err(|_| FormError::Cut);
        let piece = piece.and_then(|piece| {
            let left = head.load(Ordering::Relaxed);
            head.store(left.saturating_sub(piece.len()), Ordering::Relaxed);
            if left == 0 { Err(FormError::Long) } else { Ok(piece) }
        });
        Some((piece, (body, head)))
    })
}

#[cfg(test)]
mod tests;
