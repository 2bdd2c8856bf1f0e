//! Decodes a compressed stream of several members (RFC 1952 section 2.2; streams or frames in xz,
//! zstd, bzip2 and lz4). Zeros between members, such as padding to a block size, are skipped. Other
//! bytes are an error.

use std::io::{self, BufRead, Read};

use super::lz4::Lz4;
use super::{Format, MAGIC};
use crate::stream::piece::Source;

/// Maximum memory of the xz decoder, in KiB. Preset 9 needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 80 << 10;
/// Maximum zstd window, as a power of two: 128 MiB, as `zstd --ultra -22` uses.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Decoder of one member, which must not consume bytes after the member.
pub(super) trait Member: Read + Sized {
    const FORMAT: Format;
    fn open(input: Input) -> io::Result<Self>;
    /// Returns the input, positioned after the member.
    fn end(self) -> Input;
}

/// Input stream, with bytes that were read ahead for the format detection.
pub(super) struct Input {
    ahead: Vec<u8>,
    used: usize,
    source: Source,
}

impl Input {
    fn new(source: Source) -> Self {
        Self { ahead: Vec::new(), used: 0, source }
    }

    /// Skips zeros. Returns up to [`MAGIC`] next bytes without consuming them; empty at the end.
    fn next_member(&mut self) -> io::Result<&[u8]> {
        loop {
            let bytes = self.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let is_end = bytes.len() != zeros || zeros == 0;
            self.consume(zeros);
            if is_end {
                break;
            }
        }
        let mut head = vec![0; MAGIC];
        let mut filled = 0;
        while filled < head.len() {
            match self.read(&mut head[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        head.truncate(filled);
        (self.ahead, self.used) = (head, 0);
        Ok(&self.ahead)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used < self.ahead.len() {
            Ok(&self.ahead[self.used..])
        } else {
            self.source.fill_buf()
        }
    }

    fn consume(&mut self, amount: usize) {
        if self.used < self.ahead.len() {
            self.used += amount;
        } else {
            self.source.consume(amount);
        }
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// Reader of the decoded members, one after the other.
pub(super) struct Members<M> {
    /// Current member; `None` at the end of the stream.
    member: Option<M>,
}

impl<M: Member> Members<M> {
    pub(super) fn new(source: Source) -> io::Result<Self> {
        Ok(Self { member: Some(M::open(Input::new(source))?) })
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while let Some(member) = &mut self.member {
            let count = member.read(out)?;
            if count > 0 {
                return Ok(count);
            }
            let Some(mut input) = self.member.take().map(M::end) else { break };
            match input.next_member()? {
                [] => break,
                head if Format::detect(head) == Ok(M::FORMAT) => {}
                _ => return Err(other_bytes(M::FORMAT)),
            }
            self.member = Some(M::open(input)?);
        }
        Ok(0)
    }
}

fn other_bytes(format: Format) -> io::Error {
    let format = format.name();
    let reason = format!(
        "the bytes after its {format} data are neither {format} nor zeros: remove them, or \
         compress the file again"
    );
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl Member for flate2::bufread::GzDecoder<Input> {
    const FORMAT: Format = Format::Gzip;

    fn open(input: Input) -> io::Result<Self> {
        Ok(Self::new(input))
    }

    fn end(self) -> Input {
        self.into_inner()
    }
}

impl Member for bzip2::bufread::BzDecoder<Input> {
    const FORMAT: Format = Format::Bzip2;

    fn open(input: Input) -> io::Result<Self> {
        Ok(Self::new(input))
    }

    fn end(self) -> Input {
        self.into_inner()
    }
}

impl Member for lzma_rust2::XzReader<Input> {
    const FORMAT: Format = Format::Xz;

    fn open(input: Input) -> io::Result<Self> {
        Ok(Self::new_mem_limit(input, false, XZ_MEMORY_KIB))
    }

    fn end(self) -> Input {
        self.into_inner()
    }
}

impl Member for zstd::stream::read::Decoder<'static, Input> {
    const FORMAT: Format = Format::Zstd;

    fn open(input: Input) -> io::Result<Self> {
        let mut decoder = Self::with_buffer(input)?.single_frame();
        decoder.window_log_max(ZSTD_WINDOW_LOG)?;
        Ok(decoder)
    }

    fn end(self) -> Input {
        self.finish()
    }
}

impl Member for Lz4<Input> {
    const FORMAT: Format = Format::Lz4;

    fn open(input: Input) -> io::Result<Self> {
        Ok(Self::new(input))
    }

    fn end(self) -> Input {
        self.into_inner()
    }
}
