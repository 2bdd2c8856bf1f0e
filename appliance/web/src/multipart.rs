//! Multipart forms with a file (RFC 7578), parsed as a stream. Fields are short and come first; the
//! file is passed on in pieces and never held.

use std::fmt;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

/// Maximum length of a boundary in bytes (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Maximum length of a part's header, in bytes.
const HEADER_BYTES_MAX: usize = 4 << 10;
/// Limit of a field that is not a file, in bytes.
const FIELD_BYTES_MAX: usize = 4 << 10;
/// Maximum wait for the next piece, so that a lost browser does not block a restore.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum size of the whole form, in bytes.
pub const FORM_BYTES_MAX: u64 = 513 << 20;

/// Error in a multipart form.
#[derive(Debug, PartialEq, Eq)]
pub enum FormError {
    /// The form does not have the expected fields.
    Shape,
    /// The form ends too early.
    Cut,
    /// A field, a header or the form exceeds its limit.
    Long,
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FormError::Shape => "The form cannot be read.",
            FormError::Cut => "The upload was interrupted. Try again.",
            FormError::Long => "The form is too large.",
        })
    }
}

/// Form during its upload.
pub struct Form<S> {
    stream: S,
    held: Vec<u8>,
    delimiter: Vec<u8>,
    left: u64,
}

impl<S, E> Form<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    /// The form of a request with these headers.
    ///
    /// # Errors
    /// [`FormError::Shape`].
    pub fn of(headers: &HeaderMap, stream: S) -> Result<Self, FormError> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let rest = kind.and_then(|kind| kind.strip_prefix("multipart/form-data;"));
        let boundary = rest.and_then(|rest| rest.trim().strip_prefix("boundary="));
        let boundary = boundary.ok_or(FormError::Shape)?.trim_matches('"');
        let good = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
        let fits = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len());
        if !fits || !boundary.bytes().all(good) {
            return Err(FormError::Shape);
        }
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first delimiter has no preceding line break.
        Ok(Self { stream, held: b"\r\n".to_vec(), delimiter, left: FORM_BYTES_MAX })
    }

    /// The text of the next field, which has to be this one.
    ///
    /// # Errors
    /// It is another, or too long, or no text.
    pub async fn field(&mut self, name: &str) -> Result<String, FormError> {
        self.begin(name).await?;
        let mut text = Vec::new();
        while let Some(piece) = self.piece().await? {
            text.extend(piece);
            if text.len() > FIELD_BYTES_MAX {
                return Err(FormError::Long);
            }
        }
        String::from_utf8(text).map_err(|_| FormError::Shape)
    }

    /// Passes on the next field, which must have this name. All of it is read even if the receiver
    /// is gone: a browser shows a response only after it has sent everything.
    ///
    /// # Errors
    /// Another field, an early end, or a form that is too large.
    pub async fn pass(&mut self, name: &str, to: mpsc::Sender<Bytes>) -> Result<(), FormError> {
        self.begin(name).await?;
        while let Some(piece) = self.piece().await? {
            if !piece.is_empty() {
                // A receiver that is gone has reported its reason.
                let _ = to.send(piece.into()).await;
            }
        }
        Ok(())
    }

    /// Reads up to the content of the part with this name.
    async fn begin(&mut self, name: &str) -> Result<(), FormError> {
        while self.held.len() < self.delimiter.len() + 2 {
            self.more().await?;
        }
        let rest = self.held.strip_prefix(self.delimiter.as_slice()).ok_or(FormError::Shape)?;
        if !rest.starts_with(b"\r\n") {
            return Err(FormError::Shape);
        }
        let from = self.delimiter.len();
        let end = loop {
            match find(&self.held[from..], b"\r\n\r\n") {
                Some(at) => break from + at,
                None if self.held.len() > from + HEADER_BYTES_MAX => return Err(FormError::Long),
                None => self.more().await?,
            }
        };
        let head = String::from_utf8_lossy(&self.held[from..end]).into_owned();
        self.held.drain(..end + 4);
        let wanted = format!("name=\"{name}\"");
        let named = head.lines().any(|line| {
            let line = line.to_ascii_lowercase();
            let about = line.strip_prefix("content-disposition: form-data;");
            about.is_some_and(|rest| rest.split(';').any(|word| word.trim() == wanted))
        });
        if named { Ok(()) } else { Err(FormError::Shape) }
    }

    /// Returns a piece of the part's content; `None` at its end.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, FormError> {
        loop {
            if let Some(at) = find(&self.held, &self.delimiter) {
                let rest = self.held.split_off(at);
                let piece = std::mem::replace(&mut self.held, rest);
                return Ok((!piece.is_empty()).then_some(piece));
            }
            // The last bytes may be the beginning of a delimiter.
            let sure = self.held.len().saturating_sub(self.delimiter.len() - 1);
            if sure > 0 {
                let rest = self.held.split_off(sure);
                return Ok(Some(std::mem::replace(&mut self.held, rest)));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), FormError> {
        let next = tokio::time::timeout(SILENCE, self.stream.next()).await;
        let piece = next.ok().flatten().and_then(Result::ok).ok_or(FormError::Cut)?;
        self.left = self.left.checked_sub(piece.len() as u64).ok_or(FormError::Long)?;
        self.held.extend(&piece);
        Ok(())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|found| found == wanted)
}

#[cfg(test)]
mod tests;
