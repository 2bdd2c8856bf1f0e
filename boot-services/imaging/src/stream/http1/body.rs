//! Body of an HTTP response, read from the socket directly into the reader's memory. A cut
//! connection is distinguished from the end of the body (RFC 9112 sections 6.3 and 7.1).

use std::io;

use bytes::{Buf as _, BytesMut};
use http::header::{self, HeaderMap};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes to read ahead, for a response head or a chunk's size. Only these bytes are copied.
const AHEAD: usize = 4 << 10;
/// Maximum length of a chunk-size line or trailer field, in bytes.
const LINE: usize = 4 << 10;
/// Maximum length of a trailer, in bytes.
const TRAILER: usize = 64 << 10;

/// Framing of a body, which determines its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Content-Length, with the number of remaining bytes.
    Length(u64),
    /// Chunked transfer coding, with the next element.
    Chunked(Chunk),
    /// End of the body at the end of the connection.
    Close,
}

/// Next element of a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Line with the size of the next chunk.
    Size,
    /// Data of a chunk, with the number of remaining bytes.
    Data(u64),
    /// Line end after the data of a chunk.
    Gap,
    /// Trailer fields after the last chunk, with the number of trailer bytes read.
    Trailer(usize),
    /// End of the body.
    End,
}

impl Framing {
    /// Returns the framing of a response. `Err` is the reason why its fields are invalid.
    pub(super) fn of(fields: &HeaderMap) -> Result<Self, String> {
        let text = |name| fields.get_all(name).into_iter().map(|value| value.to_str().ok());
        let mut codings = text(header::TRANSFER_ENCODING);
        if let Some(coding) = codings.next() {
            let chunked =
                coding.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"));
            if chunked && codings.next().is_none() {
                return Ok(Self::Chunked(Chunk::Size));
            }
            return Err("the response has a transfer coding other than chunked".to_owned());
        }
        let mut lengths = text(header::CONTENT_LENGTH);
        let Some(length) = lengths.next() else { return Ok(Self::Close) };
        let usable = length.filter(|first| lengths.all(|other| other == Some(*first)));
        usable
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse().ok())
            .map(Self::Length)
            .ok_or_else(|| "the response's Content-Length is invalid".to_owned())
    }
}

/// Connection with a response, and bytes read ahead.
pub(super) struct Body<S> {
    stream: S,
    ahead: BytesMut,
    framing: Framing,
}

impl<S: AsyncRead + Unpin> Body<S> {
    /// Wraps a connection before the first byte of the response.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, ahead: BytesMut::new(), framing: Framing::Close }
    }

    /// Returns the buffer of bytes read ahead.
    pub(super) fn ahead(&mut self) -> &mut BytesMut {
        &mut self.ahead
    }

    /// Reads more bytes ahead. Returns their number; 0 if the connection has ended.
    pub(super) async fn look_ahead(&mut self) -> io::Result<usize> {
        self.ahead.reserve(AHEAD);
        self.stream.read_buf(&mut self.ahead).await
    }

    /// Begins the body, after its head was consumed.
    pub(super) fn begin(&mut self, framing: Framing) {
        self.framing = framing;
    }

    /// Reads available bytes of the body into `out`, which must not be empty. Returns their number;
    /// 0 at the end of the body. No byte is lost when the future is dropped.
    pub(super) async fn read(&mut self, out: &mut [u8]) -> Result<usize, String> {
        match self.framing {
            Framing::Close => self.take(out).await.map_err(|error| error.to_string()),
            Framing::Length(left) => {
                let count = self.read_part(out, left).await?;
                self.framing = Framing::Length(left - count as u64);
                Ok(count)
            }
            Framing::Chunked(_) => self.read_chunks(out).await,
        }
    }

    /// Reads from the bytes read ahead; if there are none, from the connection.
    async fn take(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            return self.stream.read(out).await;
        }
        let count = self.ahead.len().min(out.len());
        self.ahead.copy_to_slice(&mut out[..count]);
        Ok(count)
    }

    /// Reads bytes of a body or chunk with `left` remaining bytes. An earlier end is an error.
    async fn read_part(&mut self, out: &mut [u8], left: u64) -> Result<usize, String> {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        let count = self.take(&mut out[..most]).await.map_err(|error| error.to_string())?;
        if count == 0 && most > 0 {
            return Err(format!("the connection ended {left} bytes early"));
        }
        Ok(count)
    }

    async fn read_chunks(&mut self, out: &mut [u8]) -> Result<usize, String> {
        loop {
            let Framing::Chunked(next) = self.framing else { return Ok(0) };
            let then = match next {
                Chunk::End => return Ok(0),
                Chunk::Data(left) => {
                    let count = self.read_part(out, left).await?;
                    let left = left - count as u64;
                    let then = if left > 0 { Chunk::Data(left) } else { Chunk::Gap };
                    self.framing = Framing::Chunked(then);
                    return Ok(count);
                }
                Chunk::Size => match self.line(chunk_size).await?? {
                    0 => Chunk::Trailer(0),
                    size => Chunk::Data(size),
                },
                Chunk::Gap => match self.line(<[u8]>::len).await? {
                    0 => Chunk::Size,
                    _ => return Err("a chunk is longer than its size".to_owned()),
                },
                Chunk::Trailer(read) => match self.line(<[u8]>::len).await? {
                    0 => Chunk::End,
                    more if read + more > TRAILER => {
                        return Err("the trailer has no end".to_owned());
                    }
                    more => Chunk::Trailer(read + more),
                },
            };
            self.framing = Framing::Chunked(then);
        }
    }

    /// Calls `read` with the next line, without its line end.
    async fn line<T>(&mut self, read: impl FnOnce(&[u8]) -> T) -> Result<T, String> {
        loop {
            if let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let line = &self.ahead[..end];
                let taken = read(line.strip_suffix(b"\r").unwrap_or(line));
                self.ahead.advance(end + 1);
                return Ok(taken);
            }
            if self.ahead.len() > LINE {
                return Err("a line between two chunks has no end".to_owned());
            }
            if self.look_ahead().await.map_err(|error| error.to_string())? == 0 {
                return Err("the connection ended between two chunks".to_owned());
            }
        }
    }
}

/// Parses a chunk size: hexadecimal digits, and an optional extension, which is ignored.
fn chunk_size(line: &[u8]) -> Result<u64, String> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_hexdigit));
    text.and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| "a chunk's size is invalid".to_owned())
}

#[cfg(test)]
mod tests;
