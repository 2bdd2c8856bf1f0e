//! Decoder of one lz4 frame, which detects a truncated frame.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::FrameDecoder;

/// Decoder of one frame. The crate's decoder accepts the end of its input between two blocks as the
/// end of the frame, even without the end mark, and continues with the next frame. Therefore, at a
/// possible end, this reader passes one invalid byte to the decoder. Outside a frame the byte is a
/// broken header and an error. Inside a frame the decoder reports the end again.
pub(super) struct Lz4<R: BufRead> {
    decoder: FrameDecoder<Probed<R>>,
    ended: bool,
}

/// Reader that, on request, returns one invalid byte instead of its input.
struct Probed<R: BufRead> {
    inner: R,
    probe: Probe,
}

#[derive(Clone, Copy)]
enum Probe {
    Off,
    Byte,
    End,
}

impl<R: BufRead> Read for Probed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.probe {
            Probe::Off => self.inner.read(out),
            Probe::Byte if !out.is_empty() => {
                self.probe = Probe::End;
                out[0] = 1;
                Ok(1)
            }
            Probe::Byte | Probe::End => Ok(0),
        }
    }
}

impl<R: BufRead> Lz4<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { decoder: FrameDecoder::new(Probed { inner, probe: Probe::Off }), ended: false }
    }

    pub(super) fn into_inner(self) -> R {
        self.decoder.into_inner().inner
    }

    /// Returns true if the decoder is outside a frame, that is, the frame is complete.
    fn is_outside(&mut self) -> bool {
        self.decoder.get_mut().probe = Probe::Byte;
        let probed = self.decoder.read(&mut [0]);
        self.decoder.get_mut().probe = Probe::Off;
        probed.is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
    }
}

impl<R: BufRead> Read for Lz4<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !out.is_empty() {
            let count = self.decoder.read(out)?;
            if count > 0 {
                return Ok(count);
            }
            // The end of the frame, the end of a cut input, or an empty block.
            self.ended = self.is_outside();
            if !self.ended && self.decoder.get_mut().inner.fill_buf()?.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
