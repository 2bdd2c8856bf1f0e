//! Encoding of NTP messages: 48 bytes (RFC 5905 section 7.3).

use crate::Timestamp;

/// Bytes of a message without extension fields, which are not used here.
pub const BYTES: usize = 48;
/// Protocol version of sent messages.
const VERSION: u8 = 4;

/// Leap indicator (RFC 5905 figure 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leap {
    /// The sender's clock is synchronized. The value is 0 for no leap second, 1 for an added one, 2
    /// for a removed one.
    Known(u8),
    /// The sender's clock is not synchronized.
    Unsynchronized,
}

/// Role of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A client with a request.
    Client,
    /// A server with an answer.
    Server,
}

/// NTP message without extension fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Leap indicator of the sender.
    pub leap: Leap,
    /// Protocol version, 1 to 4.
    pub version: u8,
    /// Role of the sender.
    pub mode: Mode,
    /// Stratum: number of steps to a reference clock. With 0 there is no valid time, and
    /// `reference_id` may have a kiss code.
    pub stratum: u8,
    /// Interval between two requests in seconds, as an exponent of 2.
    pub poll: u8,
    /// Precision of the sender's clock in seconds, as an exponent of 2.
    pub precision: i8,
    /// Root delay: round-trip delay to the reference clock, in 2^-16 s.
    pub root_delay: u32,
    /// Root dispersion: error bound of the sender's clock, in 2^-16 s.
    pub root_dispersion: u32,
    /// Source of the sender's time, or a kiss code of four letters.
    pub reference_id: [u8; 4],
    /// Time at which the sender's clock was last set.
    pub reference: Timestamp,
    /// Copy of the request's `transmit`.
    pub origin: Timestamp,
    /// Time at which the request arrived.
    pub receive: Timestamp,
    /// Time at which the message was sent.
    pub transmit: Timestamp,
}

impl Packet {
    /// Creates a request. Its transmit time is `nonce`, not the time of this machine. The answer
    /// has a copy of the nonce, so a server that has not received the request cannot forge an
    /// answer.
    pub fn request(nonce: Timestamp) -> Self {
        Self {
            leap: Leap::Known(0),
            version: VERSION,
            mode: Mode::Client,
            stratum: 0,
            poll: 0,
            precision: 0,
            root_delay: 0,
            root_dispersion: 0,
            reference_id: [0; 4],
            reference: Timestamp::default(),
            origin: Timestamp::default(),
            receive: Timestamp::default(),
            transmit: nonce,
        }
    }

    /// Encodes the message in the wire format.
    pub fn encode(&self) -> [u8; BYTES] {
        let leap = match self.leap {
            Leap::Known(leap) => leap & 3,
            Leap::Unsynchronized => 3,
        };
        let mode = match self.mode {
            Mode::Client => 3,
            Mode::Server => 4,
        };
        let mut bytes = [0; BYTES];
        bytes[0] = (leap << 6) | (self.version << 3) | mode;
        bytes[1..3].copy_from_slice(&[self.stratum, self.poll]);
        bytes[3] = self.precision.cast_unsigned();
        bytes[4..8].copy_from_slice(&self.root_delay.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.root_dispersion.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.reference_id);
        let times = [self.reference, self.origin, self.receive, self.transmit];
        for (place, time) in bytes[16..].chunks_exact_mut(8).zip(times) {
            place.copy_from_slice(&time.0.to_be_bytes());
        }
        bytes
    }

    /// Decodes a message; bytes after the message are ignored. `None`: the mode or version is not
    /// supported, or the datagram is too short.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.first_chunk::<BYTES>()?.as_chunks::<4>();
        let [first, stratum, poll, precision] = *words.first()?;
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        let time = |at: usize| {
            let halves = [word(at), word(at + 1)].map(|half| u64::from(u32::from_be_bytes(half)));
            Timestamp((halves[0] << 32) | halves[1])
        };
        Some(Self {
            leap: if first >> 6 == 3 { Leap::Unsynchronized } else { Leap::Known(first >> 6) },
            version: Some((first >> 3) & 7).filter(|version| (1..=VERSION).contains(version))?,
            mode: match first & 7 {
                3 => Mode::Client,
                4 => Mode::Server,
                _ => return None,
            },
            stratum,
            poll,
            precision: precision.cast_signed(),
            root_delay: u32::from_be_bytes(word(1)),
            root_dispersion: u32::from_be_bytes(word(2)),
            reference_id: word(3),
            reference: time(4),
            origin: time(6),
            receive: time(8),
            transmit: time(10),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_question_says_nothing_but_its_nonce() {
        let bytes = Packet::request(Timestamp(0x0102_0304_0506_0708)).encode();
        assert_eq!(bytes[0], 0x23);
        assert!(bytes[1..40].iter().all(|byte| *byte == 0));
        assert_eq!(bytes[40..], [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn other_modes_versions_and_lengths_are_nothing() {
        let good = Packet::request(Timestamp(1)).encode();
        assert!(Packet::decode(&good).is_some());
        for length in 0..BYTES {
            assert_eq!(Packet::decode(&good[..length]), None, "{length}");
        }
        // Symmetric, broadcast, control; versions 0 and 5 and more.
        for first in [0x21, 0x22, 0x25, 0x26, 0x27, 0x03, 0x2b, 0x3b] {
            let mut bytes = good;
            bytes[0] = first;
            assert_eq!(Packet::decode(&bytes), None, "{first:#x}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(bytes in prop::array::uniform32(any::<u8>())) {
            let whole = [&bytes[..], &bytes[..16]].concat();
            if let Some(packet) = Packet::decode(&whole) {
                prop_assert_eq!(&packet.encode()[..], &whole[..]);
            }
        }
    }
}
