//! Download of one file: attempts, resumption and checks.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use sha2::{Digest as _, Sha256, Sha512};
use stdx::Backoff;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::Instant;

use super::layout::{at, read_note, write_note};
use super::origin::{Origin, Part, Refusal};
use super::{Blob, Cache, Checksum, Digest, RemoteFile, blocking};
use crate::Error;

pub(crate) mod in_progress;
mod min_rate;
pub(crate) mod slots;
mod zeros;

use in_progress::{Progress, State};
use min_rate::MinRate;
use zeros::Zeros;

/// Consecutive attempts without progress after which a download fails.
const MAX_ATTEMPTS: u32 = 6;
/// Bytes of disk space that are reserved at a time if the origin does not report the size of the
/// file.
const STRIDE: u64 = 64 << 20;

/// Downloads the file from `origin`, checks it and moves it to its final path.
pub(super) async fn run(
    cache: &Cache,
    origin: &dyn Origin,
    remote: &RemoteFile,
    progress_sender: &watch::Sender<State>,
) -> Result<Blob, Error> {
    let _slot = cache.0.slots.acquire(&remote.url).await;
    // An earlier download may have ended just before this request. Without a checksum, an upload
    // replaces a stored file of the same name.
    if remote.checksum.is_some() || !remote.is_upload() {
        let (own, file) = (cache.clone(), remote.clone());
        if let Some(blob) = blocking(move || own.get(&file)).await? {
            return Ok(blob);
        }
    }
    let mut partial = PartialFile::resume(cache, remote, progress_sender).await?;
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
    let (mut attempts, mut furthest) = (0, partial.received);
    loop {
        let begun = Instant::now();
        let refusal = match partial.attempt(origin, remote, progress_sender).await? {
            None => break,
            Some(refusal) => refusal,
        };
        if min_rate::is_progress(partial.received.saturating_sub(furthest), begun.elapsed()) {
            attempts = 0;
            backoff.reset();
        } else {
            attempts += 1;
        }
        furthest = furthest.max(partial.received);
        match refusal {
            Refusal::Later(reason) if attempts < MAX_ATTEMPTS => {
                tracing::debug!(url = remote.shown(), reason, "a download was interrupted");
                tokio::time::sleep(backoff.next_wait()).await;
            }
            Refusal::Later(reason) => return Err(remote.failed(reason, true)),
            Refusal::Never(reason) => return Err(remote.failed(reason, false)),
        }
    }
    partial.finish(cache, remote).await
}

/// Part of a file that has arrived, with its digests.
struct PartialFile {
    file: File,
    path: PathBuf,
    tag_path: PathBuf,
    tag: Option<String>,
    /// SHA-256 of the file as the origin reports it, if it does.
    promised: Option<Digest>,
    received: u64,
    /// Offset in the file up to which disk space is reserved.
    admitted: u64,
    reserved: ReservedSpace,
    sha256: Sha256,
    sha512: Option<Sha512>,
    zeros: Zeros,
}

/// Disk space reserved for bytes that have not arrived yet, so that no other download uses it.
struct ReservedSpace {
    cache: Cache,
    bytes: u64,
}

impl ReservedSpace {
    async fn reserve(&mut self, bytes: u64) -> Result<(), Error> {
        let cache = self.cache.clone();
        blocking(move || cache.admit(bytes)).await??;
        self.bytes += bytes;
        Ok(())
    }

    fn release(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.cache.table(|table| table.reserved -= bytes);
        self.bytes -= bytes;
    }
}

impl Drop for ReservedSpace {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}

impl PartialFile {
    /// Resumes an earlier download if its entity tag, or at the end the checksum, can show that the
    /// rest belongs to the same file.
    async fn resume(
        cache: &Cache,
        remote: &RemoteFile,
        progress_sender: &watch::Sender<State>,
    ) -> Result<Self, Error> {
        let key = remote.key();
        let (path, tag_path) = (cache.0.layout.part_path(&key), cache.0.layout.tag_path(&key));
        let note = tag_path.clone();
        let tag = blocking(move || read_note(&note)).await?;
        let tag = tag.filter(|tag| !tag.is_empty());
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(&path).await.map_err(at(&path))?;
        let sha512 = matches!(remote.checksum, Some(Checksum::Sha512(_))).then(Sha512::new);
        let (received, admitted, sha256) = (0, 0, Sha256::new());
        let reserved = ReservedSpace { cache: cache.clone(), bytes: 0 };
        let mut partial = Self {
            file,
            path,
            tag_path,
            tag,
            promised: None,
            received,
            admitted,
            reserved,
            sha256,
            sha512,
            zeros: Zeros::default(),
        };
        if partial.can_resume(remote) {
            let mut chunk = vec![0; 128 << 10];
            loop {
                match partial.file.read(&mut chunk).await.map_err(at(&partial.path))? {
                    0 => break,
                    read => partial.hash(&chunk[..read]),
                }
            }
            partial.admitted = partial.received;
        } else {
            partial.restart(progress_sender).await?;
        }
        Ok(partial)
    }

    /// Returns true if the entity tag or the checksum can show that the rest belongs to the same
    /// file.
    fn can_resume(&self, remote: &RemoteFile) -> bool {
        self.tag.is_some() || remote.checksum.is_some()
    }

    fn hash(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(sha512) = &mut self.sha512 {
            sha512.update(bytes);
        }
        self.zeros.add(self.received, bytes);
        self.received += bytes.len() as u64;
    }

    async fn restart(&mut self, progress_sender: &watch::Sender<State>) -> Result<(), Error> {
        // Before the file changes, so that no reader takes the new bytes for bytes of the old file.
        progress_sender.send_modify(|state| {
            state.round += 1;
            state.progress = Progress::default();
        });
        self.file.rewind().await.map_err(at(&self.path))?;
        self.file.set_len(0).await.map_err(at(&self.path))?;
        // New bytes overwrite the old ones from here on.
        (self.received, self.admitted, self.sha256) = (0, 0, Sha256::new());
        self.zeros = Zeros::default();
        self.reserved.release(u64::MAX);
        self.sha512 = self.sha512.as_ref().map(|_| Sha512::new());
        Ok(())
    }

    /// Downloads the missing bytes. `None`: the file is complete.
    async fn attempt(
        &mut self,
        origin: &dyn Origin,
        remote: &RemoteFile,
        progress_sender: &watch::Sender<State>,
    ) -> Result<Option<Refusal>, Error> {
        if self.received > 0 && !self.can_resume(remote) {
            self.restart(progress_sender).await?;
        }
        let part = origin.part(&remote.url, self.received, self.tag.as_deref()).await;
        let Part { first, total, tag, digest, mut body } = match part {
            Ok(part) => part,
            Err(refusal) => return Ok(Some(refusal)),
        };
        self.promised = digest;
        if first != self.received {
            self.restart(progress_sender).await?;
        }
        let changed = self.received > 0 && self.tag.is_some() && tag != self.tag;
        if tag != self.tag {
            let (path, note) = (self.tag_path.clone(), tag.clone().unwrap_or_default());
            blocking(move || write_note(&path, &note)).await??;
            self.tag = tag;
        }
        if changed {
            // The origin sent the rest of another version of the file.
            self.restart(progress_sender).await?;
            return Ok(Some(Refusal::Later("the file changed".to_owned())));
        }
        let (begun, before, mut min_rate) = (Instant::now(), self.received, MinRate::default());
        loop {
            let rate = rate(self.received - before, begun.elapsed());
            let progress = Progress { received: self.received, total, rate };
            progress_sender.send_modify(|state| state.progress = progress);
            let requested = Instant::now();
            let chunk = match tokio::time::timeout(min_rate.time_left(), body.next()).await {
                Err(_) => return Ok(Some(Refusal::Later(min_rate.too_slow()))),
                Ok(Some(Err(reason))) => return Ok(Some(Refusal::Later(reason))),
                Ok(None) if total.is_some_and(|total| self.received < total) => {
                    return Ok(Some(Refusal::Later("it ended early".to_owned())));
                }
                Ok(None) => return Ok(None),
                Ok(Some(Ok(chunk))) => chunk,
            };
            min_rate.add(requested.elapsed(), chunk.len() as u64);
            let then = self.received + chunk.len() as u64;
            if then > self.admitted {
                let end = match total {
                    Some(total) if then <= total => total,
                    _ => then.next_multiple_of(STRIDE),
                };
                self.reserved.reserve(end - self.admitted).await?;
                self.admitted = end;
            }
            self.file.write_all(&chunk).await.map_err(at(&self.path))?;
            // Flushed first, because a caller that sees the progress may read the bytes.
            self.file.flush().await.map_err(at(&self.path))?;
            self.hash(&chunk);
            self.reserved.release(chunk.len() as u64);
        }
    }

    async fn finish(self, cache: &Cache, remote: &RemoteFile) -> Result<Blob, Error> {
        let (file, zeros) = (self.file.into_std().await, self.zeros);
        let written = tokio::task::spawn_blocking(move || {
            zeros.dig(&file);
            file.sync_all()
        });
        written.await.map_err(io::Error::other).flatten().map_err(at(&self.path))?;
        let digest = Digest(self.sha256.finalize().into());
        let sha512 = self.sha512.map(|sha512| <[u8; 64]>::from(sha512.finalize()));
        let (is_right, got) = match remote.checksum {
            None => (self.promised.is_none_or(|it| it == digest), digest.to_string()),
            Some(Checksum::Sha256(expected)) => (expected == digest, digest.to_string()),
            Some(Checksum::Sha512(expected)) => {
                let got = sha512.map(|bytes| stdx::hex(&bytes)).unwrap_or_default();
                (sha512 == Some(expected), format!("sha512:{got}"))
            }
        };
        // The tag is not needed in either case; a remaining tag file is harmless.
        let _ = tokio::fs::remove_file(&self.tag_path).await;
        if !is_right {
            tokio::fs::remove_file(&self.path).await.map_err(at(&self.path))?;
            return Err(Error::Checksum { url: remote.shown(), got });
        }
        // The lease comes before publication, so that the file cannot be evicted in between.
        let blob = cache.lease(digest, self.received);
        let (own, remote, path) = (cache.clone(), remote.clone(), self.path);
        blocking(move || own.0.layout.publish(&remote, &path, digest)).await??;
        Ok(blob)
    }
}

/// Returns the rate in bytes per second; `None` before the first byte.
fn rate(bytes: u64, elapsed: Duration) -> Option<u64> {
    let millis = elapsed.as_millis().max(1);
    let rate = u128::from(bytes) * 1000 / millis;
    (bytes > 0).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
}
