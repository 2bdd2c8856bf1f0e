//! Image formats, detected from the first bytes and never from the name, and their decoders.

mod lz4;
mod members;
pub mod qcow2;

use std::io::{self, Read};

use super::piece::Source;
use crate::Error;
use lz4::Lz4;
use members::{Input, Member, Members};

/// Number of first bytes that are enough to detect any format.
pub(super) const MAGIC: usize = 8;
/// Image format that the agent decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Gzip,
    Xz,
    Zstd,
    Bzip2,
    Lz4,
    /// Format qcow2, which is not a stream: the data may be anywhere in the file.
    Qcow2,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Qcow2 => "qcow2",
        }
    }

    /// Detects the format from a stream's first bytes. `Err` is the name of a known, unsupported
    /// format. Unknown bytes are raw.
    pub(super) fn detect(head: &[u8]) -> Result<Self, &'static str> {
        match head {
            [0x1f, 0x8b, ..] => Ok(Self::Gzip),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Ok(Self::Xz),
            // A zstd frame, or one of the sixteen skippable frames (RFC 8878 section 3.1).
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Ok(Self::Bzip2),
            [0x04, 0x22, 0x4d, 0x18, ..] => Ok(Self::Lz4),
            [b'Q', b'F', b'I', 0xfb, ..] => Ok(Self::Qcow2),
            [b'K', b'D', b'M', b'V', ..] => Err("a vmdk image"),
            [b'v', b'h', b'd', b'x', b'f', b'i', b'l', b'e', ..] => Err("a vhdx image"),
            [b'c', b'o', b'n', b'e', b'c', b't', b'i', b'x', ..] => Err("a vhd image"),
            [b'<', b'<', b'<', b' ', ..] => Err("a vdi image"),
            [b'P', b'K', 3, 4, ..] => Err("a zip archive"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Err("a 7z archive"),
            [b'0', b'7', b'0', b'7', b'0', b'1' | b'2' | b'7', ..] => Err("a cpio archive"),
            [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => Err("a Debian package or ar archive"),
            [0xed, 0xab, 0xee, 0xdb, ..] => Err("an RPM package"),
            [b'R', b'a', b'r', b'!', 0x1a, 7, ..] => Err("a RAR archive"),
            [b'M', b'S', b'W', b'I', b'M', 0, 0, 0, ..] => Err("a WIM image"),
            [0x3a, 0xff, 0x26, 0xed, ..] => Err("an Android sparse image"),
            [b'p', b'a', b'r', b't', b'c', b'l', b'o', b'n', ..] => Err("a partclone image"),
            [b'L', b'Z', b'I', b'P', 1, ..] => Err("a lzip stream"),
            [0x1f, 0x9d, ..] => Err("a compress (.Z) stream"),
            [0x89, b'L', b'Z', b'O', 0, ..] => Err("a lzop stream"),
            [b'<', ..] => Err("a web page or XML"),
            _ => Ok(Self::Raw),
        }
    }
}

/// Reader of the decoded image.
pub(super) struct Decoder {
    pub(super) format: Format,
    inner: Box<dyn Read>,
}

impl Decoder {
    /// Detects the format of a stream and creates its decoder. qcow2 bytes stay undecoded, because
    /// the qcow2 reader needs access by offset.
    pub(super) fn new(mut source: Source) -> Result<Self, Error> {
        let format = detect(&mut source)?;
        let inner: Box<dyn Read> = match format {
            Format::Raw | Format::Qcow2 => Box::new(source),
            Format::Gzip => members::<flate2::bufread::GzDecoder<Input>>(source)?,
            Format::Xz => members::<lzma_rust2::XzReader<Input>>(source)?,
            Format::Zstd => members::<zstd::stream::read::Decoder<'static, Input>>(source)?,
            Format::Bzip2 => members::<bzip2::bufread::BzDecoder<Input>>(source)?,
            Format::Lz4 => members::<Lz4<Input>>(source)?,
        };
        Ok(Self { format, inner })
    }

    /// Wraps a reader of an already decoded image.
    pub(super) fn of(format: Format, inner: Box<dyn Read>) -> Self {
        Self { format, inner }
    }

    /// Fills `out` from the image. Returns the number of bytes; less than `out` only at the end.
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

    /// Returns an error if the decoded bytes are again in an image format, such as qcow2 within
    /// gzip: such bytes are not a usable disk.
    pub(super) fn check_inside(&self, head: &[u8], url: &str) -> Result<(), Error> {
        let found = match (self.format, Format::detect(&head[..head.len().min(MAGIC)])) {
            (Format::Raw | Format::Qcow2, _) | (_, Ok(Format::Raw)) => return Ok(()),
            (outer, Ok(inner)) => format!("{} within {}", inner.name(), outer.name()),
            (outer, Err(inner)) => format!("{inner} within {}", outer.name()),
        };
        Err(Error::Format { url: url.to_owned(), found })
    }
}

impl Read for Decoder {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.inner.read(out)
    }
}

/// Detects the format of a stream, without consuming its bytes.
pub(super) fn detect(source: &mut Source) -> Result<Format, Error> {
    // The download's own error is more precise and is the one that is reported.
    let head = source.peek(MAGIC).map_err(|_| Error::Stopped)?;
    let found = Format::detect(head);
    let url = source.url.to_string();
    found.map_err(|found| Error::Format { url, found: found.to_owned() })
}

fn members<M: Member + 'static>(source: Source) -> Result<Box<dyn Read>, Error> {
    let (format, url) = (M::FORMAT.name(), source.url.to_string());
    let members = Members::<M>::new(source);
    Ok(Box::new(members.map_err(|source| Error::Decode { format, url, source })?))
}
