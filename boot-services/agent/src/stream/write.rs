//! An image to the disk: direct I/O, holes for zeros, the beginning last. Decoded bytes come in
//! buffers from the decoder's thread; a raw image's pieces are written from where they lie.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::decode::{Decoder, Format, detect};
use super::gpt;
use super::piece::Source;
use super::readback::{self, Sums};
use crate::disk::{Aligned, Disk};
use crate::{Error, Meter};

/// What the decoder fills at once, and what is kept back of the image's beginning.
pub(super) const BUFFER: usize = 4 << 20;
/// Buffers between the decoder and the disk.
const BUFFERS: usize = 3;
/// Zeros are looked for in units of this.
const GRANULE: usize = 64 << 10;
static ZEROS: [u8; GRANULE] = [0; GRANULE];
/// A shorter run of zeros is cheaper to write than to punch.
const HOLE: u64 = 256 << 10;

/// A buffer and how much of it is filled; zeros follow.
struct Full {
    buffer: Aligned,
    length: usize,
}

/// An image on the disk but for its beginning.
pub(super) struct Staged {
    disk: Disk,
    /// The image's first bytes.
    head: Aligned,
    pub(super) length: u64,
    pub(super) holes: u64,
    /// Sums of the image's parts, when they are to be compared with what the disk has.
    sums: Option<Vec<[u8; 32]>>,
    url: String,
}

/// What became of a stream.
pub(super) enum Streamed {
    Staged(Staged),
    /// It is no stream but a qcow2 image; nothing was written.
    Qcow2(Disk),
}

/// What is asked of the writer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Whether an image that is not compressed is a mistake.
    pub(super) compressed: bool,
    /// Whether to read back what was written.
    pub(super) read_back: bool,
}

/// Decode and write a stream. Blocks. Nothing is written before the first buffer is decoded.
pub(super) fn run(
    mut source: Source,
    disk: Disk,
    asked: Asked,
    meter: &Meter,
) -> Result<Streamed, Error> {
    let url = source.url.to_string();
    match detect(&mut source)? {
        Format::Qcow2 => return Ok(Streamed::Qcow2(disk)),
        Format::Raw if asked.compressed => {
            let found = "not compressed, though COMPRESSED is true, or compressed in a way";
            return Err(Error::Format { url, found: found.to_owned() });
        }
        Format::Raw => {
            // The total is known before the first byte comes.
            check_size(&disk, meter.read().1, &url)?;
            pass(source, disk, asked, &url, meter)
        }
        _ => write(Decoder::new(source)?, disk, asked, &url, meter),
    }
    .map(Streamed::Staged)
}

/// Refuse an image of `size` bytes that the disk cannot hold.
pub(super) fn check_size(disk: &Disk, size: u64, url: &str) -> Result<(), Error> {
    match disk.size() {
        Some(room) if size > room => {
            Err(Error::TooLarge { url: url.to_owned(), disk: disk.path().to_owned(), size: room })
        }
        _ => Ok(()),
    }
}

/// Write a raw image's pieces as they come. Blocks.
fn pass(
    mut source: Source,
    disk: Disk,
    asked: Asked,
    url: &str,
    meter: &Meter,
) -> Result<Staged, Error> {
    let mut writer = Writer::new(disk, url);
    let mut sums = asked.read_back.then(Sums::default);
    // The download's own error says more than this one and is the one reported.
    while let Some(piece) = source.next_piece().map_err(|_| Error::Stopped)? {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        if let Some(sums) = &mut sums {
            sums.add(piece.bytes());
        }
        writer.accept(piece.padded(writer.disk.sector()), piece.bytes().len())?;
    }
    writer.stage(sums)
}

/// Write what the decoder gives. Blocks.
pub(super) fn write(
    decoder: Decoder,
    disk: Disk,
    asked: Asked,
    url: &str,
    meter: &Meter,
) -> Result<Staged, Error> {
    let mut writer = Writer::new(disk, url);
    let mut sums = asked.read_back.then(Sums::default);
    let (filled, to_write) = sync_channel(BUFFERS);
    let (spent, to_fill) = sync_channel(BUFFERS);
    for _ in 0..BUFFERS {
        // The channel holds all of them, so this never waits.
        let _ = spent.send(Aligned::new(BUFFER));
    }
    let writer = std::thread::scope(|scope| {
        let writing = scope.spawn(move || writer.drain(&to_write, &spent).map(|()| writer));
        let decoding = decode(decoder, url, meter, sums.as_mut(), &to_fill, filled);
        match writing.join() {
            Ok(Ok(writer)) => decoding.map(|()| writer),
            Ok(Err(error)) => Err(error),
            Err(payload) => std::panic::resume_unwind(payload),
        }
    })?;
    writer.stage(sums)
}

/// Fill buffers until the image ends. `filled` is dropped then.
fn decode(
    mut decoder: Decoder,
    url: &str,
    meter: &Meter,
    mut sums: Option<&mut Sums>,
    to_fill: &Receiver<Aligned>,
    filled: SyncSender<Full>,
) -> Result<(), Error> {
    let mut is_first = true;
    // A closed channel means that the writer has failed: its error is the one reported.
    while let Ok(mut buffer) = to_fill.recv() {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        let length = decoder
            .fill(buffer.bytes_mut())
            .map_err(|error| undecoded(decoder.format.name(), url, error))?;
        if std::mem::take(&mut is_first) {
            decoder.check_inside(&buffer.bytes()[..length], url)?;
        }
        if let Some(sums) = &mut sums {
            sums.add(&buffer.bytes()[..length]);
        }
        // A used buffer's old bytes must not pad the image's last sector.
        buffer.bytes_mut()[length..].fill(0);
        if length > 0 && filled.send(Full { buffer, length }).is_err() {
            break;
        }
        if length < BUFFER {
            return Ok(());
        }
    }
    Err(Error::Stopped)
}

/// A failure to decode, or the failure to read that a reader below met.
pub(super) fn undecoded(format: &'static str, url: &str, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(cause) => cause,
        Err(source) => Error::Decode { format, url: url.to_owned(), source },
    }
}

struct Writer {
    disk: Disk,
    url: String,
    /// The image's first bytes, kept back.
    head: Aligned,
    /// Bytes of the image that were accepted.
    length: u64,
    /// `(offset, length)` of zeros seen and not yet dealt with.
    hole: Option<(u64, u64)>,
    holes: u64,
}

impl Writer {
    fn new(disk: Disk, url: &str) -> Self {
        let (url, head) = (url.to_owned(), Aligned::new(BUFFER));
        Self { disk, url, head, length: 0, hole: None, holes: 0 }
    }

    fn drain(&mut self, full: &Receiver<Full>, spent: &SyncSender<Aligned>) -> Result<(), Error> {
        for Full { buffer, length } in full {
            let padded = length.next_multiple_of(self.disk.sector()).min(BUFFER);
            self.accept(&buffer.bytes()[..padded], length)?;
            let _ = spent.try_send(buffer);
        }
        Ok(())
    }

    /// Take the image's next `length` bytes, which zeros follow in `data` up to a whole sector.
    /// After the image's last bytes none come.
    fn accept(&mut self, mut data: &[u8], length: usize) -> Result<(), Error> {
        let mut offset = self.length;
        check_size(&self.disk, offset + length as u64, &self.url)?;
        if offset == 0 {
            self.clear_head()?;
        }
        self.length += length as u64;
        if offset < BUFFER as u64 {
            let at = usize::try_from(offset).unwrap_or(BUFFER);
            let (kept, rest) = data.split_at(data.len().min(BUFFER - at));
            self.head.bytes_mut()[at..at + kept.len()].copy_from_slice(kept);
            offset += kept.len() as u64;
            data = rest;
        }
        self.write(data, offset)
    }

    /// Make the disk unbootable until the new image is complete.
    fn clear_head(&mut self) -> Result<(), Error> {
        let size = self.disk.size().unwrap_or(0).min(BUFFER as u64);
        let length = usize::try_from(size).unwrap_or(BUFFER);
        self.put(&self.head.bytes()[..length], 0)
    }

    /// All was accepted: what is left but the beginning.
    fn stage(mut self, sums: Option<Sums>) -> Result<Staged, Error> {
        self.flush_hole()?;
        let Self { disk, url, head, length, holes, .. } = self;
        if length == 0 {
            let source = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(Error::Decode { format: "empty", url, source });
        }
        let filled = usize::try_from(length).unwrap_or(BUFFER).min(BUFFER);
        gpt::check_whole(&head.bytes()[..filled], length, &url)?;
        Ok(Staged { disk, head, length, holes, sums: sums.map(Sums::finish), url })
    }

    /// Write what is not zeros; remember what is. A short run of zeros between data is written
    /// with it; one at an edge of `data` may go on in the next.
    fn write(&mut self, data: &[u8], offset: u64) -> Result<(), Error> {
        let (mut at, mut unwritten) = (0, 0);
        while at < data.len() {
            let zeros = zero_run(&data[at..]);
            if zeros == 0 {
                at = (at + GRANULE).min(data.len());
                continue;
            }
            let end = at + zeros;
            let continues = (at == 0 && self.hole.is_some()) || end == data.len();
            if continues || zeros as u64 >= HOLE {
                self.put_data(&data[unwritten..at], offset + unwritten as u64)?;
                self.extend_hole(offset + at as u64, zeros as u64);
                unwritten = end;
            }
            at = end;
        }
        self.put_data(&data[unwritten..], offset + unwritten as u64)
    }

    /// Write data that ends a hole.
    fn put_data(&mut self, data: &[u8], offset: u64) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        self.flush_hole()?;
        self.put(data, offset)
    }

    fn extend_hole(&mut self, offset: u64, length: u64) {
        match &mut self.hole {
            Some((_, known)) => *known += length,
            None => self.hole = Some((offset, length)),
        }
    }

    fn flush_hole(&mut self) -> Result<(), Error> {
        let Some((mut offset, mut length)) = self.hole.take() else { return Ok(()) };
        if length >= HOLE && self.disk.punch(offset, length).map_err(self.failed(offset))? {
            self.holes += length;
            return Ok(());
        }
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

impl Staged {
    /// Write the beginning and flush everything: from now on the disk boots. When that was asked
    /// for, all of it is read back and compared. Blocks.
    pub(super) fn commit(self, meter: &Meter) -> Result<(), Error> {
        let Self { disk, head, length, sums, url, .. } = self;
        let filled = usize::try_from(length).unwrap_or(BUFFER).min(BUFFER);
        let padded = filled.next_multiple_of(disk.sector()).min(BUFFER);
        let path = disk.path().display().to_string();
        let doing = |doing: &str| Error::io(format!("{doing} {path}"));
        // Everything else first, durably: the beginning is what makes the disk boot.
        disk.flush().map_err(doing("flush"))?;
        disk.write(&head.bytes()[..padded], 0).map_err(doing("write the beginning of"))?;
        if let Some(sums) = &sums {
            disk.flush().map_err(doing("flush"))?;
            meter.say(format!("reading back {path}"));
            readback::compare(&disk, sums, length, &url, meter)?;
        }
        disk.finish(length)
    }
}

/// How many bytes at the beginning of `data` are whole granules of zeros.
fn zero_run(data: &[u8]) -> usize {
    // Comparing with zeros is memcmp, which no loop of ours beats in any build.
    data.chunks(GRANULE)
        .take_while(|granule| **granule == ZEROS[..granule.len()])
        .map(<[u8]>::len)
        .sum()
}
