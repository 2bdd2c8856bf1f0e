//! HTTP/1.1 server for one body, with configurable faults.

use std::sync::{Arc, Mutex};

use stdx::testing::Wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Length of a chunk in bytes; no other length in the tests is a multiple of this length.
const CHUNK: usize = 77_777;

/// Fault of the server. Each request uses up one fault, except for permanent properties of the
/// server.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Closes the connection at this offset of the whole body.
    CutAt(usize),
    /// Stops sending at this offset, and keeps the connection open.
    StallAt(usize),
    /// Responds with this status code.
    Answer(u16),
    /// Serves this body from the second request on.
    ChangeTo(&'static [u8]),
    /// Ignores the Range field of requests.
    NoRanges,
    /// Sends neither ETag nor Last-Modified.
    NoTag,
    /// Sends no Content-Length: the body ends with the connection.
    NoLength,
    /// Sends the body in chunks, without Content-Length.
    Chunked,
    /// Reports these holes in the response.
    Holes(&'static str),
}

#[derive(Debug, Clone)]
pub(super) struct LoggedRequest {
    pub(super) range: Option<usize>,
    pub(super) path: String,
    pub(super) if_range: bool,
}

#[derive(Clone)]
pub(super) struct Server {
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
}

struct Shared {
    body: Vec<u8>,
    change: Option<&'static [u8]>,
    ranges: bool,
    length: bool,
    chunked: bool,
    tag: bool,
    holes: Option<&'static str>,
    sums: Mutex<String>,
    faults: Mutex<std::vec::IntoIter<Fault>>,
    seen: Mutex<Vec<LoggedRequest>>,
    sent: Mutex<usize>,
}

impl Server {
    pub(super) async fn start(body: Vec<u8>, faults: &[Fault]) -> Self {
        let is = |wanted: fn(&Fault) -> bool| faults.iter().any(wanted);
        let change = faults.iter().find_map(|fault| match fault {
            Fault::ChangeTo(body) => Some(*body),
            _ => None,
        });
        let once =
            |fault: &Fault| matches!(fault, Fault::CutAt(_) | Fault::StallAt(_) | Fault::Answer(_));
        let once: Vec<_> = faults.iter().copied().filter(once).collect();
        let shared = Arc::new(Shared {
            body,
            change,
            ranges: !is(|fault| matches!(fault, Fault::NoRanges)),
            length: !is(|fault| matches!(fault, Fault::NoLength | Fault::Chunked)),
            chunked: is(|fault| matches!(fault, Fault::Chunked)),
            tag: !is(|fault| matches!(fault, Fault::NoTag)),
            holes: faults.iter().find_map(|fault| match fault {
                Fault::Holes(holes) => Some(*holes),
                _ => None,
            }),
            sums: Mutex::default(),
            faults: Mutex::new(once.into_iter()),
            seen: Mutex::default(),
            sent: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { shared: shared.clone(), address };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move {
                    // A client that disconnects is part of the test.
                    let _ = shared.serve(stream).await;
                });
            }
        });
        server
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/images/disk", self.address)
    }

    /// Returns a URL of this server that redirects to `location`.
    pub(super) fn redirect(&self, location: &str) -> String {
        format!("http://{}/to?{location}", self.address)
    }

    /// Sets the text of the file of checksums. Returns its URL.
    pub(super) fn sums(&self, text: &str) -> String {
        *self.shared.sums.lock().unwrap() = text.to_owned();
        format!("http://{}/SUMS", self.address)
    }

    pub(super) fn requests(&self) -> Vec<LoggedRequest> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub(super) fn sent(&self) -> usize {
        *self.shared.sent.lock().unwrap()
    }
}

impl Shared {
    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let head = read_head(&mut stream).await?;
        let field = |name: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            fields.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path == "/SUMS" {
            let text = self.sums.lock().unwrap().clone();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", text.len());
            return stream.write_all((head + &text).as_bytes()).await;
        }
        if let Some(location) = path.strip_prefix("/to?") {
            let head = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\n");
            return stream.write_all((head + "content-length: 0\r\n\r\n").as_bytes()).await;
        }
        let (range, last) = field("range")
            .and_then(|value| value.strip_prefix("bytes=")?.split_once('-'))
            .map_or((None, None), |(start, last)| (start.parse().ok(), last.parse().ok()));
        let seen = LoggedRequest { range, path, if_range: field("if-range").is_some() };
        let number = {
            let mut all = self.seen.lock().unwrap();
            all.push(seen);
            all.len()
        };
        let fault = self.faults.lock().unwrap().next();
        if let Some(Fault::Answer(status)) = fault {
            let text = format!(
                "HTTP/1.1 {status} No\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\n\
                 why so"
            );
            return stream.write_all(text.as_bytes()).await;
        }
        let body = self.change.filter(|_| number > 1).unwrap_or(&self.body);
        let tag = format!("\"{}-{}\"", body.len(), body.iter().map(|b| u64::from(*b)).sum::<u64>());
        let same = field("if-range").is_none_or(|value| value == tag);
        let part = range.filter(|_| self.ranges && same);
        let start = part.unwrap_or(0);
        let whole = last.filter(|_| part.is_some()).map_or(body.len(), |last: usize| last + 1);
        let span = part.map(|start| (start, whole));
        stream.write_all(self.head(body.len(), span, &tag).as_bytes()).await?;
        let end = match fault {
            Some(Fault::CutAt(at) | Fault::StallAt(at)) => at.clamp(start, whole),
            _ => whole,
        };
        if self.chunked {
            for chunk in body[start..end].chunks(CHUNK) {
                stream.write_all(format!("{:x};a=b\r\n", chunk.len()).as_bytes()).await?;
                stream.write_all(&[chunk, b"\r\n"].concat()).await?;
            }
            if end == whole {
                stream.write_all(b"0\r\nx: y\r\n\r\n").await?;
            }
        } else {
            stream.write_all(&body[start..end]).await?;
        }
        *self.sent.lock().unwrap() += end - start;
        if let Some(Fault::StallAt(_)) = fault {
            // Waits until the client disconnects.
            let _ = stream.read(&mut [0]).await;
        }
        stream.shutdown().await
    }

    fn head(&self, length: usize, span: Option<(usize, usize)>, tag: &str) -> String {
        let (start, end) = span.unwrap_or((0, length));
        let mut head = match span {
            None => "HTTP/1.1 200 OK\r\n".to_owned(),
            Some(_) => format!(
                "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {start}-{}/{length}\r\n",
                end.saturating_sub(1)
            ),
        };
        if self.length {
            head.push_str(&format!("content-length: {}\r\n", end - start));
        }
        if self.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        if self.tag {
            head.push_str(&format!("etag: {tag}\r\n"));
        }
        if let Some(holes) = self.holes {
            head.push_str(&format!("tinbox-holes: {holes}\r\n"));
        }
        head + "connection: close\r\n\r\n"
    }
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Waits until the condition is true.
pub(super) async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = Wait::new(what);
    while !condition() {
        tokio::time::sleep(wait.pause()).await;
    }
}
