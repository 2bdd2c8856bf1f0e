//! An HTTP/1.1 server of one file that ends a transfer at a given byte.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};

/// Fault of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The first connection ends at this byte; later ones are complete.
    CutOnce {
        at: u64,
    },
    /// No connection sends this byte or any later one.
    CutForGood {
        at: u64,
    },
}

/// The running server, stopped when dropped.
pub struct FaultServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    file: PathBuf,
    fault: Fault,
    sent: AtomicU64,
    ended: AtomicBool,
}

impl FaultServer {
    /// Serves a file to one client at a time.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(file: &Path, fault: Fault) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let address = listener.local_addr()?;
        let (sent, ended) = (AtomicU64::new(0), AtomicBool::new(false));
        let shared = Arc::new(Shared { file: file.to_owned(), fault, sent, ended });
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                if serving.ended.load(Ordering::Relaxed) {
                    return;
                }
                // A client that closes the connection has received enough.
                let _ = stream.and_then(|stream| serving.answer(stream, number == 0));
            }
        });
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// URL of the file.
    pub fn url(&self) -> String {
        format!("http://{}/image", self.address)
    }

    /// Bytes of the file sent so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }
}

impl Drop for FaultServer {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Ends the blocking accept by a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream, first: bool) -> io::Result<()> {
        let mut start = 0;
        for line in BufReader::new(stream.try_clone()?).lines() {
            let line = line?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(range) = line.strip_prefix("range: bytes=") {
                start = range.trim_end_matches('-').parse().unwrap_or(0);
            }
        }
        let mut file = File::open(&self.file)?;
        let length = file.metadata()?.len();
        let status = match start {
            0 => "HTTP/1.1 200 OK".to_owned(),
            _ => {
                let last = length - 1;
                let range = format!("Content-Range: bytes {start}-{last}/{length}");
                format!("HTTP/1.1 206 Partial Content\r\n{range}")
            }
        };
        let tail = format!("Content-Length: {}\r\nETag: \"one\"", length - start);
        write!(stream, "{status}\r\n{tail}\r\nConnection: close\r\n\r\n")?;
        let end = match self.fault {
            Fault::CutOnce { at } if first => at,
            Fault::CutForGood { at } => at,
            Fault::None | Fault::CutOnce { .. } => length,
        };
        file.seek(SeekFrom::Start(start))?;
        let sent = io::copy(&mut file.take(end.saturating_sub(start)), &mut stream)?;
        self.sent.fetch_add(sent, Ordering::Relaxed);
        Ok(())
    }
}
