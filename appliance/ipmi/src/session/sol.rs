//! Serial-over-LAN in a session (IPMI 2.0 §15.9 to §15.11): numbered packets, acknowledgments and
//! retransmission. The clock is passed in, and the caller sends and receives the datagrams.
//!
//! ```text
//! <sequence> <acknowledged sequence> <accepted count> <operation or status> characters...
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::Malformed;
use crate::wire::Reader;

/// Length of the header of a packet, in bytes.
const HEADER_LEN: usize = 4;
/// Largest packet sequence number; 0 marks a packet without characters.
const SEQUENCE_MAX: u8 = 15;
/// Maximum number of typed characters that wait for the BMC, in bytes.
pub const INPUT_LIMIT: usize = 4096;
/// Wait for an acknowledgment before a retransmission.
const RETRY: Duration = Duration::from_millis(500);
/// Number of transmissions of a packet. After the last one, the session is lost.
const TRANSMISSIONS: u8 = 8;
/// Wait after the BMC refused characters because its serial port is not ready.
const REFUSED_RETRY: Duration = Duration::from_millis(250);
/// Number of refusals of a packet. After the last one, its characters are dropped.
const REFUSALS: u8 = 20;

/// Status bits of a packet from the BMC (table 15-2).
const REFUSED: u8 = 0x40;
const DEACTIVATED: u8 = 0x10;
const OVERRUN: u8 = 0x08;
/// Operation bit of a packet to the BMC (table 15-2): the characters were not accepted.
const NACK: u8 = 0x40;

/// Serial-over-LAN of one session.
#[derive(Debug)]
pub struct Sol {
    /// Maximum number of characters in a packet to the BMC.
    packet_max: usize,
    /// Typed characters that were not yet sent.
    typed: VecDeque<u8>,
    sent: u8,
    flight: Option<Flight>,
    /// Sequence number and number of characters of the last packet from the BMC.
    last_received: (u8, usize),
    /// Header of the acknowledgment to send.
    acknowledgment: Option<[u8; HEADER_LEN]>,
}

/// Packet that the BMC has not acknowledged.
#[derive(Debug)]
struct Flight {
    sequence: u8,
    characters: Vec<u8>,
    transmissions: u8,
    refusals: u8,
    due: Instant,
}

/// Content of a packet from the BMC.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// New characters from the serial port.
    pub characters: Vec<u8>,
    /// True if the BMC ended serial-over-LAN.
    pub is_ended: bool,
    /// True if the BMC lost characters of the serial port.
    pub is_overrun: bool,
}

/// Next action after [`Sol::transmit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transmission {
    /// A payload to send now.
    Send(Vec<u8>),
    /// Nothing to send until this time; `None` until a packet or a typed character arrives.
    Wait(Option<Instant>),
    /// The BMC acknowledged none of the transmissions of a packet.
    Lost,
}

impl Sol {
    /// Starts serial-over-LAN. `to_bmc` is the maximum length of a payload that the BMC accepts.
    pub fn new(to_bmc: u16) -> Self {
        // The accepted count of an acknowledgment has one byte. Some firmware gives size 0.
        let packet_max = usize::from(to_bmc).saturating_sub(HEADER_LEN).clamp(1, 200);
        Self {
            packet_max,
            typed: VecDeque::new(),
            sent: 0,
            flight: None,
            last_received: (0, 0),
            acknowledgment: None,
        }
    }

    /// Returns how many typed characters [`Sol::type_in`] accepts.
    pub fn room(&self) -> usize {
        // The rest of a partly accepted packet returns to the queue.
        let in_flight = self.flight.as_ref().map_or(0, |flight| flight.characters.len());
        INPUT_LIMIT.saturating_sub(self.typed.len() + in_flight)
    }

    /// Queues typed characters, at most [`Sol::room`]; more are dropped.
    pub fn type_in(&mut self, characters: &[u8]) {
        self.typed.extend(characters.iter().take(self.room()));
    }

    /// Returns the next payload to send, or how long to wait. The caller repeats the call after
    /// each sent payload.
    pub fn transmit(&mut self, now: Instant) -> Transmission {
        if let Some(header) = self.acknowledgment.take() {
            return Transmission::Send(header.to_vec());
        }
        if self.flight.is_none() && !self.typed.is_empty() {
            let len = self.typed.len().min(self.packet_max);
            self.sent = if self.sent == SEQUENCE_MAX { 1 } else { self.sent + 1 };
            self.flight = Some(Flight {
                sequence: self.sent,
                characters: self.typed.drain(..len).collect(),
                transmissions: 0,
                refusals: 0,
                due: now,
            });
        }
        match &mut self.flight {
            Some(flight) if flight.due > now => Transmission::Wait(Some(flight.due)),
            Some(flight) if flight.transmissions == TRANSMISSIONS => Transmission::Lost,
            Some(flight) => {
                flight.transmissions += 1;
                flight.due = now + RETRY;
                let header = [flight.sequence, 0, 0, 0];
                Transmission::Send([&header, flight.characters.as_slice()].concat())
            }
            None => Transmission::Wait(None),
        }
    }

    /// Processes a payload from the BMC.
    ///
    /// # Errors
    /// The payload is shorter than its header.
    pub fn receive(&mut self, payload: &[u8], now: Instant) -> Result<Received, Malformed> {
        let mut reader = Reader::new(payload);
        let [sequence, acknowledged, accepted, status] = reader.array("SOL header")?;
        self.acknowledged(acknowledged & 0x0F, accepted.into(), status & REFUSED != 0, now);
        Ok(Received {
            characters: self.characters(sequence & 0x0F, reader.rest()).to_vec(),
            is_ended: status & DEACTIVATED != 0,
            is_overrun: status & OVERRUN != 0,
        })
    }

    /// Returns the new characters of a packet. A retransmitted packet may have more characters than
    /// the first transmission (§15.11).
    fn characters<'a>(&mut self, sequence: u8, characters: &'a [u8]) -> &'a [u8] {
        if sequence == 0 {
            return &[];
        }
        let (last, len) = self.last_received;
        let known = if last == sequence { len.min(characters.len()) } else { 0 };
        // The accepted count has one byte; the BMC sends the rest again.
        let taken = characters.len().min(u8::MAX.into());
        self.last_received = (sequence, taken);
        let operation = if taken == 0 && !characters.is_empty() { NACK } else { 0 };
        self.acknowledgment = Some([0, sequence, taken as u8, operation]);
        characters.get(known..taken).unwrap_or_default()
    }

    fn acknowledged(&mut self, sequence: u8, accepted: usize, is_refused: bool, now: Instant) {
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.sequence == sequence) else {
            return;
        };
        if is_refused && accepted == 0 {
            flight.refusals += 1;
            flight.transmissions = 0;
            flight.due = now + REFUSED_RETRY;
            if flight.refusals >= REFUSALS {
                self.flight = None;
            }
            return;
        }
        // The rest of a partly accepted packet gets a new number (§15.11).
        let rest = flight.characters.split_off(accepted.min(flight.characters.len()));
        for character in rest.into_iter().rev() {
            self.typed.push_front(character);
        }
        self.flight = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(sol: &mut Sol, now: Instant) -> Vec<u8> {
        match sol.transmit(now) {
            Transmission::Send(payload) => payload,
            other => panic!("expected a payload, found {other:?}"),
        }
    }

    #[test]
    fn typed_characters_go_out_once_they_are_acknowledged_one_packet_at_a_time() {
        let (mut sol, now) = (Sol::new(8), Instant::now());
        assert_eq!(sol.transmit(now), Transmission::Wait(None));
        sol.type_in(b"reboot");
        assert_eq!(sent(&mut sol, now), b"\x01\0\0\0rebo");
        assert_eq!(sol.transmit(now), Transmission::Wait(Some(now + RETRY)));
        assert_eq!(sol.receive(&[0, 1, 4, 0], now), Ok(Received::default()));
        assert_eq!(sent(&mut sol, now), b"\x02\0\0\0ot");
        // The BMC took one character only.
        sol.receive(&[0, 2, 1, 0], now).unwrap();
        assert_eq!(sent(&mut sol, now), b"\x03\0\0\0t");
        sol.receive(&[0, 9, 1, 0], now).unwrap();
        assert_eq!(sol.transmit(now), Transmission::Wait(Some(now + RETRY)), "another's number");
        sol.receive(&[0, 3, 1, 0], now).unwrap();
        assert_eq!(sol.transmit(now), Transmission::Wait(None));
    }

    #[test]
    fn a_packet_without_acknowledgment_is_sent_again_and_then_lost() {
        let (mut sol, mut now) = (Sol::new(200), Instant::now());
        sol.type_in(b"x");
        for _ in 0..TRANSMISSIONS {
            assert_eq!(sent(&mut sol, now), b"\x01\0\0\0x");
            now += RETRY;
        }
        assert_eq!(sol.transmit(now), Transmission::Lost);
    }

    #[test]
    fn a_serial_port_that_is_not_ready_is_waited_for_with_a_limit() {
        let (mut sol, mut now) = (Sol::new(200), Instant::now());
        sol.type_in(b"x");
        for _ in 0..REFUSALS {
            assert_eq!(sent(&mut sol, now), b"\x01\0\0\0x");
            sol.receive(&[0, 1, 0, REFUSED | 0x20], now).unwrap();
            now += REFUSED_RETRY;
        }
        assert_eq!(sol.transmit(now), Transmission::Wait(None), "the character is dropped");
    }

    #[test]
    fn characters_of_a_retransmission_count_once() {
        let (mut sol, now) = (Sol::new(200), Instant::now());
        let got = |sol: &mut Sol, payload: &[u8]| sol.receive(payload, now).unwrap().characters;
        assert_eq!(got(&mut sol, b"\x01\0\0\0log"), b"log");
        assert_eq!(sent(&mut sol, now), [0, 1, 3, 0]);
        assert_eq!(got(&mut sol, b"\x01\0\0\0login:"), b"in:");
        assert_eq!(sent(&mut sol, now), [0, 1, 6, 0]);
        assert_eq!(got(&mut sol, b"\x01\0\0\0login:"), b"");
        assert_eq!(got(&mut sol, b"\x02\0\0\0login:"), b"login:");
        assert_eq!(got(&mut sol, b"\0\0\0\0"), b"");
        assert_eq!(sol.receive(&[1, 0, 0], now), Err(Malformed::Short("SOL header")));
        let ended = sol.receive(&[0, 0, 0, DEACTIVATED | OVERRUN], now).unwrap();
        assert!(ended.is_ended && ended.is_overrun);
    }

    #[test]
    fn typed_characters_have_a_limit() {
        let mut sol = Sol::new(0);
        sol.type_in(&[b'x'; INPUT_LIMIT + 1]);
        assert_eq!(sol.room(), 0);
        let now = Instant::now();
        assert_eq!(sent(&mut sol, now).len(), HEADER_LEN + 1);
        assert_eq!(sol.room(), 0, "the packet may return to the queue");
        sol.receive(&[0, 1, 1, 0], now).unwrap();
        assert_eq!(sol.room(), 1);
    }
}
