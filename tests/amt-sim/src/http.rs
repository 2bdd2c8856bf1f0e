//! HTTP/1.1 as AMT writes it: chunked answers with sizes of four digits.

use std::io::{BufRead, Error, ErrorKind, Result, Write};

/// Maximum bytes of a request.
const BODY_MAX: usize = 1 << 20;

/// Request of a client.
#[derive(Debug, Default)]
pub struct HttpRequest {
    pub authorization: Option<String>,
    /// True if the client asks to close the connection.
    pub closes: bool,
    pub body: Vec<u8>,
}

impl HttpRequest {
    /// Reads the next request; `None` at the end of the connection.
    pub fn read(reader: &mut impl BufRead) -> Result<Option<Self>> {
        // TLS without a server of TLS would wait for an end of the line.
        if reader.fill_buf()?.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
            return Err(ErrorKind::InvalidData.into());
        }
        let Some(first) = line(reader)? else { return Ok(None) };
        // Browsers and scanners read the page `/`, which also answers with the version.
        if !first.starts_with("POST /wsman ") && !first.starts_with("GET / ") {
            return Err(ErrorKind::InvalidInput.into());
        }
        let mut request = Self::default();
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let header = line(reader)?.ok_or(ErrorKind::UnexpectedEof)?;
            let Some((name, value)) = header.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "authorization" => request.authorization = Some(value.to_owned()),
                "connection" => request.closes = value.eq_ignore_ascii_case("close"),
                "content-length" => length = value.parse().map_err(Error::other)?,
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                _ => {}
            }
        }
        if !is_chunked {
            request.take(reader, length)?;
            return Ok(Some(request));
        }
        loop {
            let size = line(reader)?.ok_or(ErrorKind::UnexpectedEof)?;
            let size = usize::from_str_radix(size.trim(), 16).map_err(Error::other)?;
            request.take(reader, size)?;
            line(reader)?;
            if size == 0 {
                return Ok(Some(request));
            }
        }
    }

    fn take(&mut self, reader: &mut impl BufRead, count: usize) -> Result<()> {
        if self.body.len() + count > BODY_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let start = self.body.len();
        self.body.resize(start + count, 0);
        reader.read_exact(&mut self.body[start..])
    }
}

fn line(reader: &mut impl BufRead) -> Result<Option<String>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(line.trim_end().to_owned()))
}

/// Answer of the engine.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub content_type: &'static str,
    /// Value of the header `WWW-Authenticate`.
    pub challenge: Option<String>,
    pub closes: bool,
    pub body: String,
}

impl Answer {
    /// Page in HTML, after which the engine closes the connection.
    pub fn page(status: u16, text: &str) -> Self {
        let body = format!("<html><head><title>{text}</title></head><body>{text}</body></html>");
        Self { status, content_type: "text/html", challenge: None, closes: true, body }
    }

    pub fn write(&self, stream: &mut impl Write) -> Result<()> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            _ => "Error",
        };
        let mut text = format!(
            "HTTP/1.1 {} {reason}\r\nServer: Intel(R) Active Management Technology 12.0.67\r\n\
             X-Frame-Options: DENY\r\nContent-Type: {}\r\n",
            self.status, self.content_type
        );
        if let Some(challenge) = &self.challenge {
            text += &format!("WWW-Authenticate: {challenge}\r\n");
        }
        if self.closes {
            text += "Connection: close\r\n";
        }
        if self.status == 401 {
            text += &format!("Content-Length: {}\r\n\r\n{}", self.body.len(), self.body);
        } else {
            text += "Transfer-Encoding: chunked\r\n\r\n";
            let mut bytes = text.into_bytes();
            for chunk in self.body.as_bytes().chunks(0x0513) {
                write!(bytes, "{:04X}\r\n", chunk.len())?;
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0000\r\n\r\n");
            stream.write_all(&bytes)?;
            return stream.flush();
        }
        stream.write_all(text.as_bytes())?;
        stream.flush()
    }
}
