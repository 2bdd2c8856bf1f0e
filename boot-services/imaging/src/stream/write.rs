//! Writes an image to a disk with direct I/O. Zeros are punched as holes; the first buffer is
//! written last. Buffers of the download or the decoder are written without a copy.

mod check;
mod gpt;
pub(super) mod readback;
mod sparse;
pub(super) mod target;

use std::io;

use tokio::runtime::Handle;

use super::decode::{Decoder, Format, detect};
use super::piece::{Gone, PIECE, Sink, Source, channel};
use super::url::Url;
use crate::disks::disk::{Aligned, Disk};
use crate::{Error, Meter};
use readback::Sums;
use target::{BUFFER, Image, Intake, Target, check_size, in_lanes};

/// Length in bytes of the disk's end that may have metadata of arrays, pools and tables: md 0.90
/// within the last 128 KiB, ZFS two labels in the last 512 KiB.
const TAIL: u64 = 1 << 20;

/// Image that is written to the disk except for its first buffer.
pub(super) struct StagedImage {
    disk: Disk,
    /// First buffer of the image, not written yet.
    head: Aligned,
    pub(super) length: u64,
    pub(super) holes: u64,
    /// Checksums of the image's 4 MiB buffers; `None` if the disk is not read back.
    sums: Option<Vec<[u8; 32]>>,
    url: String,
}

/// Result of [`run`] for a stream.
pub(super) enum StreamOutcome {
    StagedImage(StagedImage),
    /// The stream is a qcow2 image; nothing was written.
    Qcow2(Disk),
}

/// Options of the writer.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteOptions {
    /// True to refuse an uncompressed image.
    pub(super) compressed: bool,
    /// True to read the disk back and compare it with the image.
    pub(super) read_back: bool,
}

/// Decodes a stream and writes all except the first buffer. Checks the first bytes before. Blocks.
pub(super) fn run(
    mut source: Source,
    disk: Disk,
    asked: WriteOptions,
    meter: &Meter,
) -> Result<StreamOutcome, Error> {
    let url = source.url.clone();
    match detect(&mut source)? {
        Format::Qcow2 => return Ok(StreamOutcome::Qcow2(disk)),
        Format::Raw if asked.compressed => {
            let found = "not compressed, though COMPRESSED is true, or compressed in a way";
            return Err(Error::Format { url: url.to_string(), found: found.to_owned() });
        }
        Format::Raw => {
            // The total is known before the first byte arrives.
            let url = url.to_string();
            check_size(&disk, meter.read().total, &url)?;
            pass(source, disk, asked, &url, meter)
        }
        _ => write(Decoder::new(source)?, disk, asked, &url, meter),
    }
    .map(StreamOutcome::StagedImage)
}

/// Writes pieces of a raw or decoded image as they arrive. Blocks.
fn pass(
    mut source: Source,
    disk: Disk,
    asked: WriteOptions,
    url: &str,
    meter: &Meter,
) -> Result<StagedImage, Error> {
    let target = Target::new(disk, url);
    let mut intake = Intake::new();
    let mut sums = asked.read_back.then(Sums::default);
    in_lanes(&target, |give| {
        // The download's own error is more precise and is the one that is reported.
        while let Some(piece) = source.next_piece().map_err(|_| Error::Stopped)? {
            if meter.is_stopped() {
                return Err(Error::Stopped);
            }
            if let Some(sums) = &mut sums {
                sums.add(piece.bytes());
            }
            let (before, length) = (intake.length(), piece.bytes().len());
            check_size(&target.disk, before + length as u64, url)?;
            if before == 0 {
                check::check(piece.bytes(), &target.disk, url)?;
                target.clear_head()?;
            }
            for step in intake.accept(piece.padded(target.disk.sector()), length) {
                give(step, piece.clone())?;
            }
        }
        Ok(())
    })?;
    let (image, rest) = intake.end();
    if let Some(step) = rest {
        target.carry_out(step, &[])?;
    }
    StagedImage::new(target, image, sums)
}

/// Decodes an image, and writes it on another thread. Blocks; must run in a tokio runtime.
pub(super) fn write(
    decoder: Decoder,
    disk: Disk,
    asked: WriteOptions,
    url: &Url,
    meter: &Meter,
) -> Result<StagedImage, Error> {
    let (sink, decoded) = channel(url.clone());
    let (url, runtime) = (url.to_string(), Handle::current());
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| pass(decoded, disk, asked, &url, meter));
        let made = decode(decoder, sink, &url, &runtime);
        match (made, writing.join()) {
            (_, Err(payload)) => std::panic::resume_unwind(payload),
            // A failure of one side makes the other side fail too. The first cause is reported.
            (Err(error), Ok(Ok(_) | Err(Error::Stopped))) => Err(error),
            (_, Ok(written)) => written,
        }
    })
}

/// Decodes the image into pieces and sends them to `sink`, until the end.
fn decode(mut decoder: Decoder, mut sink: Sink, url: &str, runtime: &Handle) -> Result<(), Error> {
    let mut is_first = true;
    loop {
        let mut filling = runtime.block_on(sink.buffer());
        let length = decoder
            .fill(filling.room())
            .map_err(|error| undecoded(decoder.format.name(), url, error))?;
        filling.add(length);
        if std::mem::take(&mut is_first) {
            decoder.check_inside(filling.bytes(), url)?;
        }
        if length > 0 {
            runtime.block_on(sink.data(filling.done())).map_err(|Gone| Error::Stopped)?;
        }
        if length < PIECE {
            return runtime.block_on(sink.end()).map_err(|Gone| Error::Stopped);
        }
    }
}

/// Zeros the last mebibyte of the disk, after the image. Metadata of the previous system there
/// (arrays with md 0.90 or 1.0 or firmware RAID, a ZFS pool, a GPT) would confuse the new system.
fn clear_tail(disk: &Disk, length: u64) -> io::Result<()> {
    let Some(size) = disk.size() else { return Ok(()) };
    let sector = disk.sector() as u64;
    let end = length.next_multiple_of(sector);
    let mut at = end.max(size.saturating_sub(TAIL).next_multiple_of(sector));
    let zeros = Aligned::new(BUFFER);
    while at < size {
        let count = (size - at).min(BUFFER as u64);
        disk.write(&zeros.bytes()[..usize::try_from(count).unwrap_or(BUFFER)], at)?;
        at += count;
    }
    Ok(())
}

/// Returns [`Error::Decode`], or the download's [`Error`] if `error` wraps one.
pub(super) fn undecoded(format: &'static str, url: &str, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(cause) => cause,
        Err(source) => Error::Decode { format, url: url.to_owned(), source },
    }
}

impl StagedImage {
    /// Checks that the written image is not empty, is complete and has the disk's sector size.
    fn new(target: Target, image: Image, sums: Option<Sums>) -> Result<Self, Error> {
        let Image { head, length } = image;
        let (disk, holes, url) = target.done();
        if length == 0 {
            let source = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(Error::Decode { format: "empty", url, source });
        }
        let filled = usize::try_from(length).unwrap_or(BUFFER).min(BUFFER);
        gpt::check_whole(&head.bytes()[..filled], length, &url)?;
        check::check_whole(&head.bytes()[..filled], length, &disk, &url)?;
        Ok(Self { disk, head, length, holes, sums: sums.map(Sums::finish), url })
    }

    /// Writes the first buffer and flushes; the disk is bootable from then on. Reads the disk back
    /// and compares it if requested. Blocks.
    pub(super) fn commit(self, meter: &Meter) -> Result<(), Error> {
        let Self { disk, head, length, sums, url, .. } = self;
        let filled = usize::try_from(length).unwrap_or(BUFFER).min(BUFFER);
        let padded = filled.next_multiple_of(disk.sector()).min(BUFFER);
        let path = disk.path().display().to_string();
        let doing = |doing: &str| Error::io(format!("{doing} {path}"));
        clear_tail(&disk, length).map_err(doing("clear the end of"))?;
        // Everything else first, durably: the first buffer makes the disk bootable.
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
