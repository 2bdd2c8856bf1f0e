//! State of a running download for its callers, and reader of the bytes that have arrived.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::watch;

use crate::{Blob, Error};

/// Bytes that are read from disk at a time. Each reader holds one such buffer.
const CHUNK: u64 = 64 << 10;

/// Progress of a download.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that have arrived.
    pub received: u64,
    /// Size of the file in bytes, once the origin has reported it.
    pub total: Option<u64>,
    /// Bytes per second since this download began; `None` before the first byte.
    pub rate: Option<u64>,
}

/// State of a download for its waiting callers.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) progress: Progress,
    /// Number of restarts from the first byte. Bytes from before a restart may belong to another
    /// version of the file.
    pub(crate) round: u32,
    ended: Option<Result<Blob, Arc<Error>>>,
}

impl State {
    pub(crate) fn end(&mut self, result: Result<Blob, Arc<Error>>) {
        self.ended = Some(result);
    }
}

/// Handle of a download, for any number of callers.
#[derive(Debug, Clone)]
pub struct Download {
    pub(crate) state: watch::Receiver<State>,
    partial: PathBuf,
}

/// State of a download after its first bytes or its end.
pub enum DownloadStart {
    /// The cache has the complete file.
    Complete(Blob),
    /// Some bytes have arrived; the download continues.
    Running(RunningDownload),
    /// The download has failed, with this error.
    Failed(Arc<Error>),
}

/// File whose download still runs.
pub struct RunningDownload {
    state: watch::Receiver<State>,
    round: u32,
    file: File,
    at: u64,
    end: Option<u64>,
    /// Size of the file in bytes, if the origin reports it.
    pub total: Option<u64>,
}

impl Download {
    pub(crate) fn new(state: watch::Receiver<State>, partial: PathBuf) -> Self {
        Self { state, partial }
    }

    /// Creates a download that has ended.
    pub(crate) fn finished(result: Result<Blob, Arc<Error>>) -> Self {
        let ended = State { ended: Some(result), ..State::default() };
        Self { state: watch::channel(ended).1, partial: PathBuf::new() }
    }

    /// Returns the progress; after a successful end, the whole file.
    pub fn progress(&self) -> Progress {
        let state = self.state.borrow();
        match &state.ended {
            None => state.progress.clone(),
            Some(Ok(blob)) => Progress { received: blob.size, total: Some(blob.size), rate: None },
            Some(Err(_)) => Progress::default(),
        }
    }

    /// Waits for the end of the download.
    ///
    /// # Errors
    /// The download failed: [`Error::Fetch`], [`Error::Checksum`], [`Error::CacheFull`] or
    /// [`Error::Artifact`]. Every waiting caller gets the same error.
    pub async fn ended(mut self) -> Result<Blob, Arc<Error>> {
        match self.state.wait_for(|state| state.ended.is_some()).await {
            Ok(state) => state.ended.clone().unwrap_or_else(|| Err(Arc::new(shutdown()))),
            Err(_) => Err(Arc::new(shutdown())),
        }
    }

    /// Waits until the first bytes have arrived, or the download has ended.
    pub async fn started(mut self) -> DownloadStart {
        let has_started = |state: &State| state.ended.is_some() || state.progress.received > 0;
        let (round, total) = match self.state.wait_for(has_started).await {
            Err(_) => return DownloadStart::Failed(Arc::new(shutdown())),
            Ok(state) => match &state.ended {
                Some(Ok(blob)) => return DownloadStart::Complete(blob.clone()),
                Some(Err(error)) => return DownloadStart::Failed(Arc::clone(error)),
                None => (state.round, state.progress.total),
            },
        };
        match File::open(&self.partial).await {
            Ok(file) => {
                let state = self.state;
                DownloadStart::Running(RunningDownload {
                    state,
                    round,
                    file,
                    at: 0,
                    end: None,
                    total,
                })
            }
            // The file was moved to its final path in between.
            Err(_) => match self.ended().await {
                Ok(blob) => DownloadStart::Complete(blob),
                Err(error) => DownloadStart::Failed(error),
            },
        }
    }
}

/// Returns the error for a download whose task ended without a result, because the runtime shuts
/// down.
pub(crate) fn shutdown() -> Error {
    let reason = "the box is shutting down".to_owned();
    Error::Fetch { url: "a file".to_owned(), reason, passing: true }
}

/// Next step of a reader of a file that is still being downloaded.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Read up to this offset.
    Read(u64),
    Wait,
    End,
    /// Stop with this error.
    Broken(String),
}

/// Returns the next step of a reader at offset `at` that reads up to `end`. The last byte of the
/// file is passed on only after the file was verified, so that no client takes a wrong file for a
/// complete one.
fn step(state: &State, round: u32, at: u64, end: Option<u64>) -> Step {
    if state.round != round {
        return Step::Broken("the file changed on its server".to_owned());
    }
    let ready = match &state.ended {
        Some(Err(error)) => return Step::Broken(stdx::chain(error)),
        Some(Ok(blob)) => blob.size,
        None => {
            let before_last = state.progress.total.map_or(u64::MAX, |total| total.max(1) - 1);
            state.progress.received.min(before_last)
        }
    };
    let until = end.map_or(ready, |end| ready.min(end));
    match (&state.ended, end) {
        _ if at < until => Step::Read(until),
        (_, Some(end)) if at >= end => Step::End,
        (Some(_), Some(_)) => Step::Broken("the file is shorter than announced".to_owned()),
        (Some(_), None) => Step::End,
        (None, _) => Step::Wait,
    }
}

impl RunningDownload {
    /// Returns the bytes from offset `first` up to `end`, as they arrive. The stream ends with an
    /// error when the download fails, or when the origin's file has changed.
    pub fn bytes(
        mut self,
        first: u64,
        end: Option<u64>,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        (self.at, self.end) = (first, end);
        self.file.set_max_buf_size(CHUNK as usize);
        let begin = async move {
            self.file.seek(io::SeekFrom::Start(first)).await?;
            Ok(stream::try_unfold(self, |mut download| async move {
                Ok(download.next().await?.map(|bytes| (bytes, download)))
            }))
        };
        futures_util::TryFutureExt::try_flatten_stream(begin)
    }

    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let step = step(&self.state.borrow_and_update(), self.round, self.at, self.end);
            match step {
                Step::End => return Ok(None),
                Step::Broken(why) => return Err(io::Error::other(why)),
                Step::Read(until) => return self.read(until).await.map(Some),
                Step::Wait => {
                    let gone = |_| io::Error::other(stdx::chain(&shutdown()));
                    self.state.changed().await.map_err(gone)?;
                }
            }
        }
    }

    async fn read(&mut self, until: u64) -> io::Result<Bytes> {
        let count = (until - self.at).min(CHUNK);
        let mut bytes = BytesMut::with_capacity(count as usize);
        let read = (&mut self.file).take(count).read_buf(&mut bytes).await?;
        // A restarted download overwrites the same file, so the bytes may belong to either version.
        if self.state.borrow().round != self.round {
            return Err(io::Error::other("the file changed on its server"));
        }
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += read as u64;
        Ok(bytes.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    fn running(received: u64, total: Option<u64>) -> State {
        let progress = Progress { received, total, rate: None };
        State { progress, ..State::default() }
    }

    fn ended(size: u64) -> State {
        let (path, digest, lease) = (PathBuf::new(), Digest::of(b""), Arc::default());
        let blob = Blob { path, digest, size, _lease: lease };
        State { ended: Some(Ok(blob)), ..State::default() }
    }

    #[test]
    fn the_last_byte_waits_for_the_checksum() {
        for (state, at, end, expected) in [
            (running(5, Some(10)), 0, Some(10), Step::Read(5)),
            (running(5, Some(10)), 5, Some(10), Step::Wait),
            (running(10, Some(10)), 5, Some(10), Step::Read(9)),
            (running(10, Some(10)), 9, Some(10), Step::Wait),
            (running(10, Some(10)), 9, Some(9), Step::End),
            (running(5, Some(10)), 2, Some(4), Step::Read(4)),
            (running(5, Some(10)), 8, Some(10), Step::Wait),
            (running(5, None), 0, None, Step::Read(5)),
            (running(5, None), 5, None, Step::Wait),
            (running(0, Some(0)), 0, Some(0), Step::End),
            (ended(10), 9, Some(10), Step::Read(10)),
            (ended(10), 10, Some(10), Step::End),
            (ended(10), 10, None, Step::End),
        ] {
            assert_eq!(step(&state, 0, at, end), expected, "{state:?} {at} {end:?}");
        }
    }

    #[test]
    fn what_may_be_of_another_file_is_broken_off() {
        let broken = |state, end| matches!(step(&state, 0, 5, end), Step::Broken(_));
        assert!(broken(State { round: 1, ..running(9, None) }, None));
        assert!(broken(State { round: 1, ..ended(9) }, None));
        assert!(broken(ended(5), Some(10)), "shorter than was promised");
        assert!(broken(State { ended: Some(Err(Arc::new(shutdown()))), ..running(9, None) }, None));
    }
}
