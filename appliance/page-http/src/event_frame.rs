//! Server-sent events (HTML standard, section 9.2.6), encoded once for all streams.

use std::io::Write as _;
use std::sync::OnceLock;

use axum::body::Bytes;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// Header of a gzip member without name and time (RFC 1952 section 2.3).
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// Empty last block of a DEFLATE stream (RFC 1951 section 3.2.6).
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];
/// One event. Its compressed form is made at its first use.
pub struct Frame {
    plain: Bytes,
    packed: OnceLock<Segment>,
}

/// Compressed event: whole DEFLATE blocks that refer to no earlier event, so they fit into the
/// stream of each client.
struct Segment {
    bytes: Bytes,
    crc: Crc,
}

impl Frame {
    /// Creates an event. `data` must be one line.
    pub fn new(event: &str, id: Option<u64>, data: &str) -> Self {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let plain = format!("event: {event}\n{id}data: {data}\n\n").into();
        Self { plain, packed: OnceLock::new() }
    }

    fn packed(&self) -> &Segment {
        self.packed.get_or_init(|| Segment::new(&self.plain))
    }
}

impl Segment {
    fn new(plain: &[u8]) -> Self {
        let mut crc = Crc::new();
        crc.update(plain);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        // The flush ends the blocks at a whole byte. Writing to memory does not fail.
        let _ = encoder.write_all(plain).and_then(|()| encoder.flush());
        let mut bytes = std::mem::take(encoder.get_mut());
        bytes.shrink_to_fit();
        Self { bytes: bytes.into(), crc }
    }
}

/// Encoding of one stream.
pub enum Encoder {
    /// Events as they are.
    Plain,
    /// One gzip member of compressed events.
    Gzip {
        /// Check sum of all events so far.
        crc: Crc,
        /// True after the first event, which has the header of the member before it.
        begun: bool,
    },
}

impl Encoder {
    /// Creates an encoder of a stream that is compressed with gzip.
    pub fn gzip() -> Self {
        Self::Gzip { crc: Crc::new(), begun: false }
    }

    /// Returns the bytes of the next event.
    pub fn encode(&mut self, frame: &Frame) -> Bytes {
        let Self::Gzip { crc, begun } = self else { return frame.plain.clone() };
        let segment = frame.packed();
        crc.combine(&segment.crc);
        if std::mem::replace(begun, true) {
            return segment.bytes.clone();
        }
        [&GZIP_HEADER, segment.bytes.as_ref()].concat().into()
    }

    /// Returns the end of the stream; `None` if its encoding has none.
    pub fn finish(&self) -> Option<Bytes> {
        let Self::Gzip { crc, .. } = self else { return None };
        let (sum, size) = (crc.sum().to_le_bytes(), crc.amount().to_le_bytes());
        Some([LAST_BLOCK.as_slice(), &sum, &size].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use flate2::read::GzDecoder;
    use flate2::write;

    use super::{Encoder, Frame};

    /// Returns text that hardly compresses.
    fn noise(bytes: usize) -> String {
        stdx::random_hex(bytes / 2)
    }

    #[test]
    fn compressed_events_of_one_stream_are_readable_at_once_and_end_with_a_valid_sum() {
        let long = "<tr><td>nuc</td></tr>".repeat(5_000);
        let texts = [long.as_str(), "{}", &noise(70_000), &long, ""];
        let frames = texts.map(|text| Frame::new("parts", Some(7), text));
        let mut encoder = Encoder::gzip();
        let mut decoder = write::GzDecoder::new(Vec::new());
        let mut all = Vec::new();
        for (frame, text) in frames.iter().zip(texts) {
            let bytes = encoder.encode(frame);
            decoder.write_all(&bytes).unwrap();
            decoder.flush().unwrap();
            let wanted = format!("event: parts\nid: 7\ndata: {text}\n\n");
            assert_eq!(String::from_utf8_lossy(decoder.get_ref()), wanted);
            decoder.get_mut().clear();
            all.extend_from_slice(&bytes);
        }
        all.extend_from_slice(&encoder.finish().unwrap());
        let mut text = String::new();
        GzDecoder::new(all.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text.len(), frames.iter().map(|it| it.plain.len()).sum::<usize>());
        assert!(frames[0].packed().bytes.len() < 2_000);
    }

    #[test]
    fn streams_share_the_bytes_of_an_event() {
        let frame = Frame::new("parts", None, &noise(4_000));
        for make in [|| Encoder::Plain, Encoder::gzip] {
            let (mut one, mut other) = (make(), make());
            let first = (one.encode(&frame), other.encode(&frame));
            assert_eq!(first.0, first.1);
            let next = (one.encode(&frame), other.encode(&frame));
            assert_eq!(next.0.as_ptr(), next.1.as_ptr(), "no copy for each stream");
        }
        assert_eq!(Encoder::Plain.finish(), None);
    }
}
