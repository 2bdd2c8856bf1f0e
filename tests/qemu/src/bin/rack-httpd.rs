//! `rack-httpd --dir DIR --listen ADDRESS`: a file server with optional faults.
//!
//! HTTP/1.1 with GET, HEAD and single ranges, one request per connection (RFC 9110 section 14, RFC
//! 9112). `--drop-at-percent 50` closes the connection in the middle of a body, for every request
//! or with `--once` for the first one only. With `--stall` the connection stays open without
//! further data. Every request for a file is one line on standard output: `METHOD PATH STATUS
//! FIRST-BYTE SENT/PROMISED`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;

/// Connections served at once; further connections are closed without an answer.
const MAX_CONNECTIONS: usize = 64;
/// Maximum bytes of a request head.
const MAX_HEAD: u64 = 16 << 10;
/// Timeout of a client that stops reading or writing.
const IDLE: Duration = Duration::from_secs(120);
const CHUNK: usize = 64 << 10;

/// Serves files, with faults on request.
#[derive(Debug, Parser)]
struct Options {
    /// The folder to serve.
    #[arg(long)]
    dir: PathBuf,
    /// Address to listen on; port 0 picks a free port. The address is the first line printed.
    #[arg(long)]
    listen: SocketAddr,
    /// Drop the connection after this percentage of a body.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..100))]
    drop_at_percent: Option<u8>,
    /// Drop only the first GET response that has a body.
    #[arg(long)]
    once: bool,
    /// Drop only files whose path has this suffix.
    #[arg(long, default_value = "")]
    drop_suffix: String,
    /// Keep the connection open instead, without further data.
    #[arg(long)]
    stall: bool,
    /// Bytes per second and connection; unlimited when absent.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Send an entity tag, the same for every file: the files do not change.
    #[arg(long)]
    etag: bool,
}

struct Server {
    options: Options,
    dropped: AtomicBool,
    connections: AtomicUsize,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let listener = TcpListener::bind(options.listen)?;
    say(&format!("listening on {}", listener.local_addr()?));
    let server = Arc::new(Server {
        options,
        dropped: AtomicBool::new(false),
        connections: AtomicUsize::new(0),
    });
    for stream in listener.incoming() {
        let stream = stream?;
        if server.connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            server.connections.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let server = Arc::clone(&server);
        std::thread::spawn(move || {
            // An error of the client's connection does not concern the server.
            let _ = server.serve(stream);
            server.connections.fetch_sub(1, Ordering::SeqCst);
        });
    }
    Ok(())
}

/// Prints one line on standard output and flushes it, even into a pipe.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    head_only: bool,
    path: PathBuf,
    range: Option<Range>,
}

/// A single byte range (RFC 9110, 14.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    From(u64),
    Between(u64, u64),
    Last(u64),
}

impl Range {
    /// First byte and length of the range within a file of `size` bytes; `None` for a range that
    /// the file does not have.
    fn within(self, size: u64) -> Option<(u64, u64)> {
        let (first, last) = match self {
            Self::From(first) => (first, size.checked_sub(1)?),
            Self::Between(first, last) => (first, last.min(size.checked_sub(1)?)),
            Self::Last(0) => return None,
            Self::Last(count) => (size.saturating_sub(count), size.checked_sub(1)?),
        };
        (first <= last && first < size).then(|| (first, last - first + 1))
    }

    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
        match (first, last) {
            ("", count) => count.parse().ok().map(Self::Last),
            (first, "") => first.parse().ok().map(Self::From),
            (first, last) => Some(Self::Between(first.parse().ok()?, last.parse().ok()?)),
        }
    }
}

impl Server {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(IDLE))?;
        stream.set_write_timeout(Some(IDLE))?;
        let Some(request) = read_request(&stream)? else {
            return refuse(&mut stream, "400 Bad Request", "");
        };
        let Ok(mut file) = File::open(self.options.dir.join(&request.path)) else {
            say(&format!("GET /{} 404 0 0/0", request.path.display()));
            return refuse(&mut stream, "404 Not Found", "");
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return refuse(&mut stream, "404 Not Found", "");
        }
        let size = meta.len();
        let part = request.range.map(|range| range.within(size));
        let (status, first, length, extra) = match part {
            None => ("200 OK", 0, size, String::new()),
            Some(None) => {
                let extra = format!("Content-Range: bytes */{size}\r\n");
                return refuse(&mut stream, "416 Range Not Satisfiable", &extra);
            }
            Some(Some((first, length))) => {
                let last = first + length - 1;
                let extra = format!("Content-Range: bytes {first}-{last}/{size}\r\n");
                ("206 Partial Content", first, length, extra)
            }
        };
        let tag = if self.options.etag { "ETag: \"unchanged\"\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nAccept-Ranges: bytes\r\n{tag}\
             Content-Type: application/octet-stream\r\n{extra}Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        let code = status.get(..3).unwrap_or_default();
        let path = request.path.display();
        if request.head_only {
            say(&format!("HEAD /{path} {code} {first} 0/{length}"));
            return Ok(());
        }
        file.seek(SeekFrom::Start(first))?;
        let limit = self.limit(&request.path, length);
        let sent = self.copy(file.take(limit), &mut stream);
        if self.options.stall && sent < length {
            outlast(&mut stream);
        }
        say(&format!("GET /{path} {code} {first} {sent}/{length}"));
        Ok(())
    }

    /// Number of bytes to send of a body of `length` bytes.
    fn limit(&self, path: &Path, length: u64) -> u64 {
        let Some(percent) = self.options.drop_at_percent else { return length };
        let suffix = &self.options.drop_suffix;
        let chosen = length > 0 && path.to_string_lossy().ends_with(suffix.as_str());
        if !chosen || (self.dropped.swap(true, Ordering::SeqCst) && self.options.once) {
            return length;
        }
        length.saturating_mul(percent.into()) / 100
    }

    /// Sends `body` to its end, or until the client's timeout; returns the bytes sent.
    fn copy(&self, mut body: impl Read, stream: &mut TcpStream) -> u64 {
        let start = Instant::now();
        let mut buffer = vec![0; CHUNK];
        let mut sent = 0u64;
        while let Ok(count @ 1..) = body.read(&mut buffer) {
            if stream.write_all(buffer.get(..count).unwrap_or_default()).is_err() {
                break;
            }
            sent += count as u64;
            if let Some(rate) = self.options.rate {
                let due = Duration::from_secs_f64(sent as f64 / rate as f64);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
        }
        sent
    }
}

/// Keeps the connection until the client has closed it.
fn outlast(stream: &mut TcpStream) {
    let mut byte = [0];
    loop {
        match stream.read(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => return,
        }
    }
}

fn refuse(stream: &mut TcpStream, status: &str, extra: &str) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n{extra}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes())
}

/// Reads one request head; `None` for a request that this server does not support.
fn read_request(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream.take(MAX_HEAD));
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next(), words.next());
    let head_only = match method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Ok(None),
    };
    let path = target.and_then(plain_path);
    let mut range = None;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(None);
        }
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("range")
        {
            range = Range::parse(value);
        }
    }
    Ok(path.map(|path| Request { head_only, path, range }))
}

/// Returns the path below the served folder; `None` when it would lead out of the folder.
fn plain_path(target: &str) -> Option<PathBuf> {
    let path = target.split(['?', '#']).next()?.trim_start_matches('/');
    let path = Path::new(path);
    path.components().all(|part| matches!(part, Component::Normal(_))).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_stay_within_the_file() {
        let cases = [
            ("bytes=0-", 10, Some((0, 10))),
            ("bytes=4-", 10, Some((4, 6))),
            ("bytes=4-5", 10, Some((4, 2))),
            ("bytes=4-99", 10, Some((4, 6))),
            ("bytes=-3", 10, Some((7, 3))),
            ("bytes=-99", 10, Some((0, 10))),
            ("bytes=10-", 10, None),
            ("bytes=5-4", 10, None),
            ("bytes=-0", 10, None),
            ("bytes=0-", 0, None),
        ];
        for (text, size, expected) in cases {
            let range = Range::parse(text).expect(text);
            assert_eq!(range.within(size), expected, "{text} of {size}");
        }
        assert_eq!(Range::parse("items=1-2"), None);
        assert_eq!(Range::parse("bytes=a-b"), None);
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        assert_eq!(plain_path("/a/b.img?x=1"), Some("a/b.img".into()));
        assert_eq!(plain_path("/../etc/passwd"), None);
        assert_eq!(plain_path("/a/../../b"), None);
    }
}
