//! Decoded bytes to the disk: two threads, three buffers, holes for zeros, the beginning last.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::decode::{Decoder, Format, detect};
use super::gpt;
use super::piece::Source;
use super::readback::{self, Sums};
use crate::disk::{Aligned, Disk};
use crate::{Error, Meter};

/// One write.
pub(super) const BUFFER: usize = 4 << 20;
/// Buffers between the decoder and the disk.
const BUFFERS: usize = 3;
/// Zeros are looked for in units of this.
const GRANULE: usize = 64 << 10;
static ZEROS: [u8; GRANULE] = [0; GRANULE];
/// A shorter run of zeros is cheaper to write than to punch.
const HOLE: u64 = 256 << 10;

/// A buffer and how much of it is filled.
struct Full {
    buffer: Aligned,
    length: usize,
    offset: u64,
}

/// An image on the disk but for its first buffer.
pub(super) struct Staged {
    disk: Disk,
    head: Full,
    pub(super) length: u64,
    pub(super) holes: u64,
    /// Sums of the buffers as decoded, when they are to be compared with what the disk has.
    sums: Option<Sums>,
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
    let format = detect(&mut source)?;
    if format == Format::Qcow2 {
        return Ok(Streamed::Qcow2(disk));
    }
    let url = source.url.to_string();
    // The total is known before the first byte comes.
    if format == Format::Raw {
        check_size(&disk, meter.read().1, &url)?;
    }
    let decoder = Decoder::new(source, asked.compressed)?;
    write(decoder, disk, asked, &url, meter).map(Streamed::Staged)
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

/// Write what the decoder gives. Blocks.
pub(super) fn write(
    decoder: Decoder,
    disk: Disk,
    asked: Asked,
    url: &str,
    meter: &Meter,
) -> Result<Staged, Error> {
    let url = url.to_owned();
    let mut writer = Writer { disk, url: url.clone(), head: None, hole: None, holes: 0 };
    let mut sums = asked.read_back.then(Sums::default);
    let (filled, to_write) = sync_channel(BUFFERS);
    let (spent, to_fill) = sync_channel(BUFFERS);
    for _ in 0..BUFFERS {
        // The channel holds all of them, so this never waits.
        let _ = spent.send(Aligned::new(BUFFER));
    }
    let decoded = std::thread::scope(|scope| {
        let writing = scope.spawn(move || writer.drain(&to_write, &spent).map(|()| writer));
        let decoding = decode(decoder, &url, meter, sums.as_mut(), &to_fill, filled);
        match writing.join() {
            Ok(Ok(writer)) => decoding.map(|length| (writer, length)),
            Ok(Err(error)) => Err(error),
            Err(payload) => std::panic::resume_unwind(payload),
        }
    });
    let (mut writer, length) = decoded?;
    writer.flush_hole()?;
    let Some(head) = writer.head.take() else {
        let source = io::Error::from(io::ErrorKind::UnexpectedEof);
        return Err(Error::Decode { format: "empty", url, source });
    };
    gpt::check_whole(head.filled(), length, &url)?;
    Ok(Staged { disk: writer.disk, head, length, holes: writer.holes, sums, url })
}

/// Fill buffers until the image ends; its length. `filled` is dropped at the end.
fn decode(
    mut decoder: Decoder,
    url: &str,
    meter: &Meter,
    mut sums: Option<&mut Sums>,
    to_fill: &Receiver<Aligned>,
    filled: SyncSender<Full>,
) -> Result<u64, Error> {
    let mut offset = 0;
    // A closed channel means that the writer has failed: its error is the one reported.
    while let Ok(mut buffer) = to_fill.recv() {
        if meter.is_stopped() {
            return Err(Error::Stopped);
        }
        let length = decoder
            .fill(buffer.bytes_mut())
            .map_err(|error| undecoded(decoder.format.name(), url, error))?;
        if offset == 0 {
            decoder.check_inside(&buffer.bytes()[..length], url)?;
        }
        if let Some(sums) = &mut sums {
            sums.add(&buffer.bytes()[..length]);
        }
        // A used buffer's old bytes must not pad the image's last sector.
        buffer.bytes_mut()[length..].fill(0);
        if length > 0 && filled.send(Full { buffer, length, offset }).is_err() {
            break;
        }
        offset += length as u64;
        if length < BUFFER {
            return Ok(offset);
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

impl Full {
    fn filled(&self) -> &[u8] {
        &self.buffer.bytes()[..self.length]
    }
}

struct Writer {
    disk: Disk,
    url: String,
    /// The image's first buffer, kept back.
    head: Option<Full>,
    /// `(offset, length)` of zeros seen and not yet dealt with.
    hole: Option<(u64, u64)>,
    holes: u64,
}

impl Writer {
    /// Make the disk unbootable until the new image is complete.
    fn clear_head(&mut self) -> Result<(), Error> {
        let size = self.disk.size().unwrap_or(0).min(BUFFER as u64);
        let length = usize::try_from(size).unwrap_or(BUFFER);
        let zeros = Aligned::new(length);
        self.disk.write(zeros.bytes(), 0).map_err(self.failed(0))
    }

    fn drain(&mut self, full: &Receiver<Full>, spent: &SyncSender<Aligned>) -> Result<(), Error> {
        for full in full {
            if full.offset == 0 {
                self.check_fit(&full)?;
                self.clear_head()?;
                self.head = Some(full);
                let _ = spent.try_send(Aligned::new(BUFFER));
                continue;
            }
            self.write(&full)?;
            let _ = spent.try_send(full.buffer);
        }
        Ok(())
    }

    fn check_fit(&self, full: &Full) -> Result<(), Error> {
        check_size(&self.disk, full.offset + full.length as u64, &self.url)
    }

    /// Write what is not zeros; remember what is. A short run of zeros between data is written
    /// with it; one at an edge of the buffer may go on in the next.
    fn write(&mut self, full: &Full) -> Result<(), Error> {
        self.check_fit(full)?;
        let data = &full.buffer.bytes()[..padded(full, &self.disk)];
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
                self.put_data(&data[unwritten..at], full.offset + unwritten as u64)?;
                self.extend_hole(full.offset + at as u64, zeros as u64);
                unwritten = end;
            }
            at = end;
        }
        self.put_data(&data[unwritten..], full.offset + unwritten as u64)
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
        let data = &head.buffer.bytes()[..padded(&head, &disk)];
        let path = disk.path().display().to_string();
        let doing = |doing: &str| Error::io(format!("{doing} {path}"));
        // Everything else first, durably: the beginning is what makes the disk boot.
        disk.flush().map_err(doing("flush"))?;
        disk.write(data, 0).map_err(doing("write the beginning of"))?;
        if let Some(sums) = &sums {
            disk.flush().map_err(doing("flush"))?;
            meter.say(format!("reading back {path}"));
            readback::compare(&disk, sums, length, &url, meter)?;
        }
        disk.finish(length)
    }
}

/// The filled length, rounded up to whole sectors; the rest of the last one is zeros.
fn padded(full: &Full, disk: &Disk) -> usize {
    full.length.next_multiple_of(disk.sector()).min(full.buffer.bytes().len())
}

/// How many bytes at the beginning of `data` are whole granules of zeros.
fn zero_run(data: &[u8]) -> usize {
    // Comparing with zeros is memcmp, which no loop of ours beats in any build.
    data.chunks(GRANULE)
        .take_while(|granule| **granule == ZEROS[..granule.len()])
        .map(<[u8]>::len)
        .sum()
}
