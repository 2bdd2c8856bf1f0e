//! Forms with a file in them (RFC 7578), as they come: fields are short and come first, the file is
//! passed on piece by piece and never held.

use std::fmt;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

/// Bytes of the longest boundary (RFC 2046, section 5.1.1).
const BOUNDARY_BYTES_MAX: usize = 70;
/// Bytes of a part's header.
const HEADER_BYTES_MAX: usize = 4 << 10;
/// Bytes of a field that is no file.
const FIELD_BYTES_MAX: usize = 4 << 10;
/// Bytes of the whole form.
pub const FORM_BYTES_MAX: u64 = 513 << 20;

/// Why a form is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// It is of another kind, or not what it says.
    Shape,
    /// It ends too early.
    Cut,
    /// Something in it is longer than it may be.
    Long,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Broken::Shape => "The form cannot be read.",
            Broken::Cut => "The upload was cut short. Try again.",
            Broken::Long => "The form is too large.",
        })
    }
}

/// A form that is being read.
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
    /// [`Broken::Shape`].
    pub fn of(headers: &HeaderMap, stream: S) -> Result<Self, Broken> {
        let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let rest = kind.and_then(|kind| kind.strip_prefix("multipart/form-data;"));
        let boundary = rest.and_then(|rest| rest.trim().strip_prefix("boundary="));
        let boundary = boundary.ok_or(Broken::Shape)?.trim_matches('"');
        let good = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
        let fits = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len());
        if !fits || !boundary.bytes().all(good) {
            return Err(Broken::Shape);
        }
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first delimiter has no line before it.
        Ok(Self { stream, held: b"\r\n".to_vec(), delimiter, left: FORM_BYTES_MAX })
    }

    /// The text of the next field, which has to be this one.
    ///
    /// # Errors
    /// It is another, or too long, or no text.
    pub async fn field(&mut self, name: &str) -> Result<String, Broken> {
        self.begin(name).await?;
        let mut text = Vec::new();
        while let Some(piece) = self.piece().await? {
            text.extend(piece);
            if text.len() > FIELD_BYTES_MAX {
                return Err(Broken::Long);
            }
        }
        String::from_utf8(text).map_err(|_| Broken::Shape)
    }

    /// Passes on the next field, which has to be this one. What nobody wants any more is read all
    /// the same: a browser shows an answer only once it has sent everything.
    ///
    /// # Errors
    /// It is another, or ends too early, or the form is too large.
    pub async fn pass(&mut self, name: &str, to: mpsc::Sender<Bytes>) -> Result<(), Broken> {
        self.begin(name).await?;
        while let Some(piece) = self.piece().await? {
            if !piece.is_empty() {
                // Whoever does not listen has said why.
                let _ = to.send(piece.into()).await;
            }
        }
        Ok(())
    }

    /// Reads up to the content of the part of this name.
    async fn begin(&mut self, name: &str) -> Result<(), Broken> {
        while self.held.len() < self.delimiter.len() + 2 {
            self.more().await?;
        }
        let rest = self.held.strip_prefix(self.delimiter.as_slice()).ok_or(Broken::Shape)?;
        if !rest.starts_with(b"\r\n") {
            return Err(Broken::Shape);
        }
        let from = self.delimiter.len();
        let end = loop {
            match find(&self.held[from..], b"\r\n\r\n") {
                Some(at) => break from + at,
                None if self.held.len() > from + HEADER_BYTES_MAX => return Err(Broken::Long),
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
        if named { Ok(()) } else { Err(Broken::Shape) }
    }

    /// A piece of the part's content; `None` at its end.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        loop {
            if let Some(at) = find(&self.held, &self.delimiter) {
                let rest = self.held.split_off(at);
                let piece = std::mem::replace(&mut self.held, rest);
                return Ok((!piece.is_empty()).then_some(piece));
            }
            // The end of what there is may be the beginning of a delimiter.
            let sure = self.held.len().saturating_sub(self.delimiter.len() - 1);
            if sure > 0 {
                let rest = self.held.split_off(sure);
                return Ok(Some(std::mem::replace(&mut self.held, rest)));
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<(), Broken> {
        let piece = self.stream.next().await.and_then(Result::ok).ok_or(Broken::Cut)?;
        self.left = self.left.checked_sub(piece.len() as u64).ok_or(Broken::Long)?;
        self.held.extend(&piece);
        Ok(())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|found| found == wanted)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Bytes;
    use axum::http::HeaderMap;
    use futures_util::stream;
    use tokio::sync::mpsc;

    use super::{Broken, FIELD_BYTES_MAX, Form, HEADER_BYTES_MAX};

    const FORM: &str = "--xyz\r\nContent-Disposition: form-data; name=\"code\"\r\n\r\n7KQ4M2\r\n\
        --xyz\r\nContent-Disposition: form-data; name=\"passphrase\"\r\n\r\n\r\n\
        --xyz\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.boxbak\"\r\n\
        Content-Type: application/octet-stream\r\n\r\nTINBOX\r\n--xy\r\n\r\n--xyz--\r\n";

    fn headers(kind: &str) -> HeaderMap {
        [(axum::http::header::CONTENT_TYPE, kind.parse().unwrap())].into_iter().collect()
    }

    type Read = Result<(String, String, Vec<u8>), Broken>;

    async fn read(kind: &str, body: &[u8], piece: usize) -> Read {
        let pieces: Vec<_> =
            body.chunks(piece).map(|it| Ok::<_, Infallible>(Bytes::copy_from_slice(it))).collect();
        let mut form = Form::of(&headers(kind), stream::iter(pieces))?;
        let code = form.field("code").await?;
        let passphrase = form.field("passphrase").await?;
        let (send, mut pieces) = mpsc::channel(1);
        let collecting = async {
            let mut file = Vec::new();
            while let Some(piece) = pieces.recv().await {
                file.extend(piece);
            }
            file
        };
        let (passed, file) = tokio::join!(form.pass("file", send), collecting);
        passed.map(|()| (code, passphrase, file))
    }

    #[tokio::test]
    async fn a_form_is_read_however_it_is_cut_into_pieces() {
        let want = ("7KQ4M2".to_owned(), String::new(), b"TINBOX\r\n--xy\r\n".to_vec());
        for piece in 1..FORM.len() {
            for kind in
                ["multipart/form-data; boundary=xyz", "multipart/form-data; boundary=\"xyz\""]
            {
                assert_eq!(read(kind, FORM.as_bytes(), piece).await.unwrap(), want, "{piece}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_form_is_refused() {
        let kind = "multipart/form-data; boundary=xyz";
        let long = "x".repeat(71);
        for bad in [
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=a b",
            &format!("multipart/form-data; boundary={long}"),
            "multipart/form-data; boundary=other",
        ] {
            let refused = read(bad, FORM.as_bytes(), 100).await;
            assert_eq!(refused, Err(Broken::Shape), "{bad}");
        }
        for end in 0..FORM.len() - 10 {
            let refused = read(kind, &FORM.as_bytes()[..end], 100).await;
            assert!(refused.is_err(), "cut at {end}");
        }
        let swapped = FORM.replace("\"code\"", "\"passphrase\"");
        assert_eq!(read(kind, swapped.as_bytes(), 100).await, Err(Broken::Shape));
        let field = FORM.replace("7KQ4M2", &"7".repeat(FIELD_BYTES_MAX + 1));
        assert_eq!(read(kind, field.as_bytes(), 100).await, Err(Broken::Long));
        let head = FORM.replace("\r\n\r\n7", &"x".repeat(2 * HEADER_BYTES_MAX));
        assert_eq!(read(kind, head.as_bytes(), 100).await, Err(Broken::Long));
    }
}
