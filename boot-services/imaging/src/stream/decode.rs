//! Decoders of the image formats that `image_format` detects.

mod lz4;
mod members;
pub mod qcow2;

use std::io::{self, Read};

pub(super) use image_format::{Format, MAGIC};

use super::piece::Source;
use crate::Error;
use lz4::Lz4;
use members::{Input, Member, Members};

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
