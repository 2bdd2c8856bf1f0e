//! `slurp`: uploads the whole SOURCE_DISK to DEST_URL by POST, as multipart/form-data. The form
//! field is `BootyImage`; the file name is IMG_NAME with `.img`, or `.img.gz` with COMPRESSED.
//!
//! Unlike upstream, an error status of the server fails the action. The content is not stored, so a
//! failed upload starts again from the beginning (`retries` of the action). Reading of preserved
//! disks is allowed.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, Uri, header};
use hyper::body::{Body, Frame, SizeHint};
use hyper_util::rt::TokioIo;
use imaging::StopOnDrop;
use imaging::disk::{Aligned, wait_for};
use imaging::stream::{NoConnection, Timeouts, Url, blocking, connect};
use imaging::{Meter, select};
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::environment::Environment;
use crate::Error;

/// Bytes of one read from the disk.
const PIECE: usize = 1 << 20;
/// Maximum number of pieces in the queue between disk and server.
const AHEAD: usize = 4;
/// Maximum time to establish a connection.
const CONNECT: Duration = Duration::from_secs(15);

/// Disk to upload, and its destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slurp {
    disk: PathBuf,
    url: Url,
    target: Target,
    file: String,
    compressed: bool,
    timeouts: Timeouts,
}

/// Path and query of the request. No details in `Debug`, because the query may contain a secret.
#[derive(Clone, PartialEq, Eq)]
struct Target(String);

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Target")
    }
}

impl Slurp {
    pub(super) fn parse(environment: &Environment<'_>, timeouts: Timeouts) -> Result<Self, Error> {
        let text = environment.required("DEST_URL")?;
        let (url, uri): (Url, _) = (text.parse()?, text.parse::<Uri>());
        let target = uri.ok().and_then(|uri| Some(uri.path_and_query()?.as_str().to_owned()));
        let name = environment.required("IMG_NAME")?;
        if name.contains(['"', '\\', '/']) || name.chars().any(char::is_control) {
            let reason = format!("{name:?} is not a file name without a folder");
            return Err(environment.bad("IMG_NAME", reason));
        }
        let compressed = environment.flag("COMPRESSED")?;
        Ok(Self {
            disk: environment.device("SOURCE_DISK")?,
            url,
            target: Target(target.unwrap_or_else(|| "/".to_owned())),
            file: format!("{name}.img{}", if compressed { ".gz" } else { "" }),
            compressed,
            timeouts,
        })
    }

    pub(super) async fn run(self, meter: &Arc<Meter>) -> Result<String, imaging::Error> {
        let _stop = StopOnDrop(meter.clone());
        let named = self.disk.clone();
        let source = blocking("opening the disk", move || Source::open(&named)).await?;
        meter.set_total(source.size);
        meter.say(format!("uploading {} to {}", source.path.display(), self.url));
        let (size, path) = (source.size, source.path.display().to_string());
        let boundary = boundary()?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (compressed, metered) = (self.compressed, meter.clone());
        let form = self.form(&boundary);
        let length = (!compressed).then(|| (form[0].len() + form[1].len()) as u64 + size);
        let reading = blocking("reading the disk", move || {
            let sent = source.send(&form, compressed, sender, &metered);
            sent.map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => imaging::Error::Stopped,
                _ => imaging::Error::Io {
                    doing: format!("read {}", source.path.display()),
                    source: error,
                },
            })
        });
        let uploading = self.upload(&boundary, Upload { receiver, left: length }, meter);
        let sent = match tokio::join!(reading, uploading) {
            (Ok(sent), Ok(())) => sent,
            // The side that closed the connection has the cause; the other side's error is a
            // consequence.
            (Err(imaging::Error::Stopped), Ok(())) => {
                return Err(
                    self.refused("the server responded before the upload was complete".to_owned())
                );
            }
            (Err(imaging::Error::Stopped), Err(error)) | (Err(error), _) | (Ok(_), Err(error)) => {
                return Err(error);
            }
        };
        let (bytes, url, file) = (stdx::bytes(size), &self.url, &self.file);
        let UploadSummary { length, sha256 } = sent;
        Ok(format!(
            "uploaded {bytes} of {path} to {url} as {file}: {length} bytes, sha256 {sha256}"
        ))
    }

    /// Returns the multipart text before and after the disk's content.
    fn form(&self, boundary: &str) -> [String; 2] {
        let file = &self.file;
        let before = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"BootyImage\"; \
             filename=\"{file}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        [before, format!("\r\n--{boundary}--\r\n")]
    }

    fn refused(&self, status: String) -> imaging::Error {
        imaging::Error::Status { url: self.url.to_string(), status }
    }

    async fn upload(
        &self,
        boundary: &str,
        upload: Upload,
        meter: &Meter,
    ) -> Result<(), imaging::Error> {
        let began = Instant::now();
        let given_up = |waited, reason| imaging::Error::GaveUp {
            url: self.url.to_string(),
            offset: meter.read().done,
            waited,
            reason,
        };
        let failed = |reason: String| given_up(began.elapsed(), reason);
        let connected = tokio::time::timeout(CONNECT, connect(&self.url)).await;
        let stream = connected
            .map_err(|_| failed(format!("no connection within {} s", CONNECT.as_secs())))?
            .map_err(|(NoConnection::Passing(why) | NoConnection::Lasting(why))| failed(why))?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| failed(stdx::chain(&error)))?;
        let request = Request::post(&self.target.0)
            .header(header::HOST, self.url.host_field())
            .header(header::USER_AGENT, concat!("tinbox-agent/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}"))
            .body(upload)
            .map_err(|error| failed(error.to_string()))?;
        // A server may keep the connection open after its response.
        let _driven = ConnectionTask(tokio::spawn(async move {
            // An error of the connection also ends the request, which reports it.
            let _ = connection.await;
        }));
        let answered = sender.send_request(request);
        tokio::pin!(answered);
        let (mut newest, mut done) = (Instant::now(), meter.read().done);
        let response = loop {
            match tokio::time::timeout(self.timeouts.stall, &mut answered).await {
                Ok(Ok(answer)) => break answer,
                Ok(Err(error)) => return Err(given_up(newest.elapsed(), stdx::chain(&error))),
                Err(_) if meter.read().done != done => {
                    (newest, done) = (Instant::now(), meter.read().done)
                }
                Err(_) if newest.elapsed() < self.timeouts.silence => {}
                Err(_) => {
                    let reason = "the server stopped reading and does not respond".to_owned();
                    return Err(given_up(newest.elapsed(), reason));
                }
            }
        };
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.refused(status.to_string())),
        }
    }
}

/// Task of a connection, aborted when the request is dropped.
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a random multipart boundary, which the disk's content practically never contains.
fn boundary() -> Result<String, imaging::Error> {
    const RANDOM: &str = "/proc/sys/kernel/random/uuid";
    let text =
        std::fs::read_to_string(RANDOM).map_err(imaging::Error::io(format!("read {RANDOM}")))?;
    Ok(format!("tinbox-{}", text.trim()))
}

/// Length and SHA-256 of the uploaded file, after compression.
struct UploadSummary {
    length: u64,
    sha256: String,
}

struct Source {
    file: File,
    path: PathBuf,
    size: u64,
}

impl Source {
    /// Opens a disk exclusively and with direct I/O. Fails if the disk is mounted.
    fn open(named: &Path) -> Result<Self, imaging::Error> {
        let path = select::resolve(named)?;
        wait_for(&path)?;
        if !path.metadata().is_ok_and(|it| it.file_type().is_block_device()) {
            return Err(imaging::Error::NotBlockDevice { path });
        }
        let flags = i32::try_from((OFlags::EXCL | OFlags::DIRECT).bits()).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        let mut file = match opened {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                return Err(imaging::Error::DiskBusy { path });
            }
            opened => opened.map_err(imaging::Error::io(format!("open {}", path.display())))?,
        };
        let size = file
            .seek(SeekFrom::End(0))
            .map_err(imaging::Error::io(format!("read the size of {}", path.display())))?;
        Ok(Self { file, path, size })
    }

    /// Sends the form with the disk's content to the queue. Blocks while the queue is full.
    fn send(
        &self,
        form: &[String; 2],
        compressed: bool,
        sender: mpsc::Sender<Bytes>,
        meter: &Meter,
    ) -> io::Result<UploadSummary> {
        let mut pipe = Pipe { sender, hash: Sha256::new(), length: 0 };
        pipe.pass(form[0].as_bytes())?;
        if compressed {
            let mut encoder = GzEncoder::new(pipe, Compression::fast());
            self.copy(&mut encoder, meter)?;
            pipe = encoder.finish()?;
        } else {
            self.copy(&mut pipe, meter)?;
        }
        pipe.pass(form[1].as_bytes())?;
        Ok(UploadSummary { length: pipe.length, sha256: stdx::hex(&pipe.hash.finalize()) })
    }

    fn copy(&self, into: &mut impl Write, meter: &Meter) -> io::Result<()> {
        let mut buffer = Aligned::new(PIECE);
        let mut at = 0;
        while at < self.size {
            if meter.is_stopped() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let count = usize::try_from(self.size - at).unwrap_or(PIECE).min(PIECE);
            let bytes = &mut buffer.bytes_mut()[..count];
            self.file.read_exact_at(bytes, at)?;
            into.write_all(bytes)?;
            at += count as u64;
            meter.set_done(at);
        }
        Ok(())
    }
}

/// Writer to the queue, which computes checksum and length of the content.
struct Pipe {
    sender: mpsc::Sender<Bytes>,
    hash: Sha256,
    length: u64,
}

impl Pipe {
    fn pass(&self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.sender.blocking_send(Bytes::copy_from_slice(bytes));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pass(bytes)?;
        self.hash.update(bytes);
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Body of the request. `left` is the number of unsent bytes; `None` if compressed.
struct Upload {
    receiver: mpsc::Receiver<Bytes>,
    left: Option<u64>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        self.receiver.poll_recv(context).map(|bytes| {
            let bytes = bytes?;
            self.left = self.left.map(|left| left.saturating_sub(bytes.len() as u64));
            Some(Ok(Frame::data(bytes)))
        })
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
