//! lz4 frames, one after another, with a cut told from an end.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::FrameDecoder;

/// The decoder of the crate takes the end of its input between two blocks for the end of the
/// image, whether or not the frame's end mark was there. So at the end of the input it is asked
/// once more with one byte that belongs to nothing: outside a frame that is a broken header and an
/// error; inside a frame it is taken for the end again, and the image was cut.
pub(super) struct Lz4<R: BufRead> {
    decoder: FrameDecoder<Probed<R>>,
    ended: bool,
}

/// A reader with one more byte at its end, on request.
struct Probed<R: BufRead> {
    inner: R,
    probe: bool,
}

impl<R: BufRead> Read for Probed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        if count == 0 && !out.is_empty() && std::mem::take(&mut self.probe) {
            out[0] = 1;
            return Ok(1);
        }
        Ok(count)
    }
}

impl<R: BufRead> Lz4<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { decoder: FrameDecoder::new(Probed { inner, probe: false }), ended: false }
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !out.is_empty() {
            let count = self.decoder.read(out)?;
            if count > 0 {
                return Ok(count);
            }
            // The end of a frame or of a cut input, or a block of no bytes.
            if !self.decoder.get_mut().inner.fill_buf()?.is_empty() {
                continue;
            }
            self.decoder.get_mut().probe = true;
            match self.decoder.read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self.ended = true,
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(0)
    }
}
