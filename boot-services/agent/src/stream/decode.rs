//! What an image is packed in, told by its first bytes, never by its name.

use std::io::{self, BufRead, Read};

use super::piece::Source;
use crate::Error;

/// Bytes that tell every format known here.
const MAGIC: usize = 6;
/// Most memory an xz image may make the decoder use, KiB: preset 9 needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 80 << 10;
/// Largest zstd window, as a power of two: 128 MiB, what `zstd --ultra -22` uses.
const ZSTD_WINDOW_LOG: u32 = 27;

/// A packing this agent undoes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Gzip,
    Xz,
    Zstd,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    /// The format of a stream that begins with `head`; the name of one that is recognised but
    /// not supported.
    pub(super) fn detect(head: &[u8]) -> Result<Self, &'static str> {
        match head {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Ok(Self::Xz),
            // A zstd frame, or one of the sixteen skippable frames (RFC 8878 section 3.1).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstd),
            [b'B', b'Z', b'h', ..] => Err("a bzip2 stream"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Err("an lz4 stream"),
            [b'Q', b'F', b'I', 0xfb, ..] => Err("a qcow2 image"),
            [b'K', b'D', b'M', b'V', ..] => Err("a vmdk image"),
            [b'P', b'K', 3, 4, ..] => Err("a zip archive"),
            [b'<', ..] => Err("a web page or XML"),
            _ => Ok(Self::Raw),
        }
    }
}

/// A reader of the decoded image.
pub(super) struct Decoder {
    pub(super) format: Format,
    inner: Box<dyn Read>,
}

impl Decoder {
    pub(super) fn new(mut source: Source, compressed: bool) -> Result<Self, Error> {
        let url = source.url.to_string();
        // The download's own error says more than this one and is the one reported.
        let head = source.peek(MAGIC).map_err(|_| Error::Stopped)?;
        let format =
            Format::detect(head).map_err(|found| Error::Format { url: url.clone(), found })?;
        if compressed && format == Format::Raw {
            let found = "not compressed, though COMPRESSED is true, or compressed in a way";
            return Err(Error::Format { url, found });
        }
        let inner: Box<dyn Read> = match format {
            Format::Raw => Box::new(source),
            Format::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(source)),
            Format::Xz => {
                Box::new(lzma_rust2::XzReader::new_mem_limit(source, true, XZ_MEMORY_KIB))
            }
            Format::Zstd => Box::new(zstd_reader(source).map_err(|source| Error::Decode {
                format: format.name(),
                url,
                source,
            })?),
        };
        Ok(Self { format, inner })
    }
}

fn zstd_reader<R: BufRead>(source: R) -> io::Result<impl Read> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}

impl Decoder {
    /// Fill `out` as far as the image goes; fewer bytes only at its end.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < out.len() {
            match self.inner.read(&mut out[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
