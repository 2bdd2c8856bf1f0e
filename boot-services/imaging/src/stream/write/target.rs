//! Target disk of an image: executes steps on several threads, and withholds the first buffer.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::sparse::{Sparse, Step};
use crate::Error;
use crate::disks::disk::{Aligned, Disk};
use crate::stream::piece::Piece;

/// Size in bytes of the first buffer, which is written last. Also the unit of the read-back check.
pub(in crate::stream) const BUFFER: usize = 4 << 20;
/// Number of writing threads. With one thread, the disk would be idle between two writes.
const LANES: usize = 2;

/// Target disk, shared by all writing threads.
pub(super) struct Target {
    pub(super) disk: Disk,
    url: String,
    /// Bytes of zeros that were punched as holes.
    holes: AtomicU64,
}

impl Target {
    pub(super) fn new(disk: Disk, url: &str) -> Self {
        Self { disk, url: url.to_owned(), holes: AtomicU64::new(0) }
    }

    /// Returns the disk, the number of bytes punched as holes, and the URL.
    pub(super) fn done(self) -> (Disk, u64, String) {
        (self.disk, self.holes.into_inner(), self.url)
    }

    /// Executes `step`. `data` is the buffer that its range refers to.
    pub(super) fn carry_out(&self, step: Step, data: &[u8]) -> Result<(), Error> {
        match step {
            Step::Data { range, offset } => self.put(&data[range], offset),
            Step::Zeros { offset, length } => self.put_zeros(offset, length),
            Step::Hole { offset, length } => {
                if !self.disk.punch(offset, length).map_err(self.failed(offset))? {
                    return self.put_zeros(offset, length);
                }
                self.holes.fetch_add(length, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Zeros the first buffer of the disk, so that it cannot boot before the image is complete.
    pub(super) fn clear_head(&self) -> Result<(), Error> {
        self.put_zeros(0, self.disk.size().unwrap_or(0).min(BUFFER as u64))
    }

    fn put_zeros(&self, mut offset: u64, mut length: u64) -> Result<(), Error> {
        let zeros = Aligned::new(usize::try_from(length).unwrap_or(BUFFER).min(BUFFER));
        while length > 0 {
            let count = length.min(BUFFER as u64);
            self.put(&zeros.bytes()[..usize::try_from(count).unwrap_or(BUFFER)], offset)?;
            offset += count;
            length -= count;
        }
        Ok(())
    }

    fn put(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        self.disk.write(data, offset).map_err(self.failed(offset))
    }

    fn failed(&self, offset: u64) -> impl FnOnce(io::Error) -> Error {
        let (path, at) = (self.disk.path().display(), stdx::bytes(offset));
        Error::io(format!("write {path} at {at}"))
    }
}

/// Returns an error if an image of `size` bytes is larger than the disk.
pub(in crate::stream) fn check_size(disk: &Disk, size: u64, url: &str) -> Result<(), Error> {
    match disk.size() {
        Some(room) if size > room => {
            Err(Error::TooLarge { url: url.to_owned(), disk: disk.path().to_owned(), size: room })
        }
        _ => Ok(()),
    }
}

/// First buffer and length of an image.
pub(super) struct Image {
    /// First buffer of the image, which is written last.
    pub(super) head: Aligned,
    /// Number of accepted bytes of the image.
    pub(super) length: u64,
}

/// Converts an image, piece by piece, to steps for the disk.
pub(super) struct Intake {
    sparse: Sparse,
    image: Image,
}

impl Intake {
    pub(super) fn new() -> Self {
        let image = Image { head: Aligned::new(BUFFER), length: 0 };
        Self { sparse: Sparse::default(), image }
    }

    /// Number of accepted bytes of the image.
    pub(super) fn length(&self) -> u64 {
        self.image.length
    }

    /// Accepts the next `length` bytes of the image, and returns their steps. `data` may have zeros
    /// after them, up to a whole sector, in the last call only.
    pub(super) fn accept(&mut self, data: &[u8], length: usize) -> Vec<Step> {
        let offset = self.image.length;
        self.image.length += length as u64;
        let at = usize::try_from(offset).unwrap_or(BUFFER).min(BUFFER);
        let kept = data.len().min(BUFFER - at);
        self.image.head.bytes_mut()[at..at + kept].copy_from_slice(&data[..kept]);
        self.sparse.next(data, kept, offset)
    }

    /// Ends the image. Returns the image's first buffer and length, and the last step if any.
    pub(super) fn end(mut self) -> (Image, Option<Step>) {
        let rest = self.sparse.end();
        (self.image, rest)
    }
}

/// Executes the steps that `feed` passes to its argument, on [`LANES`] threads. The first error
/// stops all. Blocks until the threads have ended.
pub(super) fn in_lanes(
    target: &Target,
    feed: impl FnOnce(&mut dyn FnMut(Step, Piece) -> Result<(), Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let (jobs, queue) = sync_channel(0);
    let (queue, failed) = (Arc::new(Mutex::new(queue)), OnceLock::new());
    let fed = std::thread::scope(|scope| {
        for _ in 0..LANES {
            let (queue, failed) = (Arc::clone(&queue), &failed);
            scope.spawn(move || lane(target, &queue, failed));
        }
        // Only the threads own the queue from here on. Otherwise a send would wait for threads that
        // have ended.
        drop(queue);
        // The threads end when `jobs` is dropped.
        let jobs = jobs;
        feed(&mut |step, piece| match failed.get() {
            None => jobs.send((step, piece)).map_err(|_| Error::Stopped),
            Some(_) => Err(Error::Stopped),
        })
    });
    failed.into_inner().map_or(fed, Err)
}

fn lane(target: &Target, queue: &Mutex<Receiver<(Step, Piece)>>, failed: &OnceLock<Error>) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((step, piece)) = job else { return };
        // After a failure, the remaining steps are dropped.
        if failed.get().is_none()
            && let Err(error) = target.carry_out(step, piece.padded(target.disk.sector()))
        {
            let _ = failed.set(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::disks::disk::Accept;
    use crate::stream::piece::{PIECE, channel};

    const COUNT: u64 = 40;

    /// Feeds `COUNT` pieces of ones to the threads. Returns the number of accepted pieces and the
    /// result.
    async fn fill(path: &Path) -> (u64, Result<(), Error>) {
        let (mut sink, _source) = channel("http://box/a".parse().unwrap());
        let mut filling = sink.buffer().await;
        filling.room().fill(1);
        filling.add(PIECE);
        let piece = filling.done();
        let target = Target::new(Disk::open(path, Accept::Files).unwrap(), "http://box/a");
        let mut taken = 0;
        let done = in_lanes(&target, |give| {
            for number in 0..COUNT {
                let offset = number * PIECE as u64;
                give(Step::Data { range: 0..PIECE, offset }, piece.clone())?;
                taken += 1;
            }
            Ok(())
        });
        (taken, done)
    }

    #[tokio::test]
    async fn lanes_do_all_of_it_or_say_what_failed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let (taken, done) = fill(&path).await;
        done.unwrap();
        assert_eq!(taken, COUNT);
        let written = std::fs::read(&path).unwrap();
        assert_eq!(written.len() as u64, COUNT * PIECE as u64);
        assert!(written.iter().all(|byte| *byte == 1));

        let (taken, done) = fill(Path::new("/dev/full")).await;
        let error = stdx::chain(&done.unwrap_err());
        assert!(error.contains("write /dev/full at") && error.contains("No space"), "{error}");
        // Pieces in the two threads, and one in the queue.
        assert!(taken <= 2 * LANES as u64 + 1, "{taken} pieces went to a disk that failed");
    }
}
