//! Open session: encrypts and signs requests; verifies and decrypts responses, and drops replays. A
//! session of IPMI 1.5 signs only.

pub mod sol;

use crate::command::session::CloseSession;
use crate::crypto::{BLOCK, LegacyKey, SessionKeys};
use crate::message::{Command, Expected, SEQUENCE_MASK, request, response};
use crate::packet::{Packet, PayloadType, sealed, signed};
use crate::{CipherSuite, CompletionCode, Malformed};

/// Protection of the packets of a session.
enum Protection {
    /// RMCP+ with encryption. The BMC sends to the session ID of the console.
    Plus { keys: SessionKeys, console_id: u32 },
    /// IPMI 1.5 with MD5 and without encryption. Both sides use the session ID of the BMC.
    Legacy(LegacyKey),
}

/// Open session with a BMC.
pub struct Session {
    protection: Protection,
    managed_id: u32,
    /// Session sequence number of the last sent packet; 0 is never sent.
    sent: u32,
    /// Request sequence number of the last request, six bits.
    requested: u8,
    window: Window,
}

/// Pending request. A retransmission sends the same message in a new packet.
pub struct Outstanding {
    message: Vec<u8>,
    expected: Expected,
}

impl Session {
    pub(crate) fn new(keys: SessionKeys, console_id: u32, managed_id: u32) -> Self {
        let protection = Protection::Plus { keys, console_id };
        Self { protection, managed_id, sent: 0, requested: 0, window: Window::default() }
    }

    /// Creates a session of IPMI 1.5. The next packet to the BMC has the session sequence number
    /// `to_bmc`, and the next one from the BMC has `from_bmc`.
    pub(super) fn legacy(key: LegacyKey, managed_id: u32, to_bmc: u32, from_bmc: u32) -> Self {
        Self {
            protection: Protection::Legacy(key),
            managed_id,
            sent: to_bmc.wrapping_sub(1),
            requested: 0,
            window: Window { highest: from_bmc.saturating_sub(1), below: u32::MAX },
        }
    }

    /// Returns the cipher suite of the session; `None` for IPMI 1.5.
    pub fn suite(&self) -> Option<CipherSuite> {
        match &self.protection {
            Protection::Plus { keys, .. } => Some(keys.suite()),
            Protection::Legacy(_) => None,
        }
    }

    /// Returns the command that closes the session.
    pub fn close(&self) -> CloseSession {
        CloseSession { session_id: self.managed_id }
    }

    /// Assigns a request sequence number and encodes the request.
    pub fn begin<C: Command>(&mut self, command: &C) -> Outstanding {
        self.requested = (self.requested + 1) & SEQUENCE_MASK;
        let (message, expected) = request(command, self.requested);
        Outstanding { message, expected }
    }

    /// Returns the datagram of a request, for the first transmission and each retransmission. A
    /// retransmission has the same request number and a new session sequence number. `iv` must be
    /// random.
    pub fn transmit(&mut self, outstanding: &Outstanding, iv: [u8; BLOCK]) -> Vec<u8> {
        self.seal(PayloadType::Message, &outstanding.message, iv)
    }

    /// Returns the datagram of a payload, with a new session sequence number. `iv` must be random.
    /// A session of IPMI 1.5 has payloads of the type [`PayloadType::Message`] only.
    pub fn seal(&mut self, payload_type: PayloadType, payload: &[u8], iv: [u8; BLOCK]) -> Vec<u8> {
        self.sent = self.sent.wrapping_add(1).max(1);
        let header = (self.managed_id, self.sent);
        match &self.protection {
            Protection::Plus { keys, .. } => sealed(keys, header, iv, payload_type, payload),
            Protection::Legacy(key) => signed(key, header, payload),
        }
    }

    /// Processes a datagram from the BMC. Returns completion code and data of the awaited response.
    ///
    /// # Errors
    /// The datagram is not the awaited response; the caller continues to wait.
    pub fn receive(
        &mut self,
        outstanding: &Outstanding,
        datagram: &[u8],
    ) -> Result<(CompletionCode, Vec<u8>), Malformed> {
        let message = self.open(PayloadType::Message, datagram)?;
        let (code, data) = response(&message, outstanding.expected)?;
        Ok((code, data.to_vec()))
    }

    /// Verifies and decrypts a datagram from the BMC with a payload of this type.
    ///
    /// # Errors
    /// The datagram is not valid, has another payload type, or was received before.
    pub fn open(
        &mut self,
        payload_type: PayloadType,
        datagram: &[u8],
    ) -> Result<Vec<u8>, Malformed> {
        let (payload, sequence) = match (&self.protection, Packet::parse(datagram)?) {
            (Protection::Plus { keys, console_id }, Packet::Plus(packet)) => {
                if packet.payload_type != payload_type {
                    return Err(Malformed::Stray("payload type"));
                }
                if packet.session_id != *console_id {
                    return Err(Malformed::Stray("session ID"));
                }
                (packet.open(keys)?, packet.sequence)
            }
            (Protection::Legacy(key), Packet::Legacy(packet)) => {
                if payload_type != PayloadType::Message || packet.session_id != self.managed_id {
                    return Err(Malformed::Stray("session ID"));
                }
                (packet.verified(key)?.to_vec(), packet.sequence)
            }
            _ => return Err(Malformed::Stray("session header of another IPMI version")),
        };
        // Only a verified packet may advance the received sequence number.
        self.window.take(sequence)?;
        Ok(payload)
    }
}

/// Received session sequence numbers: the highest, and the 32 below as flags (IPMI 2.0 §6.12.13).
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    highest: u32,
    /// Bit n is set if `highest - 1 - n` was received.
    below: u32,
}

impl Window {
    fn take(&mut self, sequence: u32) -> Result<(), Malformed> {
        if sequence > self.highest {
            let ahead = sequence - self.highest;
            // The old highest number becomes one of the numbers below.
            let shifted = self.below.checked_shl(ahead).unwrap_or(0);
            let old_highest = match self.highest {
                0 => 0,
                _ => 1_u32.checked_shl(ahead - 1).unwrap_or(0),
            };
            (self.highest, self.below) = (sequence, shifted | old_highest);
            return Ok(());
        }
        let behind = self.highest - sequence;
        let bit = match behind {
            1..=32 if sequence != 0 => 1_u32 << (behind - 1),
            _ => return Err(Malformed::Replayed),
        };
        if self.below & bit != 0 {
            return Err(Malformed::Replayed);
        }
        self.below |= bit;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_taken_once() {
        let mut window = Window::default();
        let order = [1, 3, 2, 10, 4, 9, 41, 40, 10_000, 9_999, 9_968, u32::MAX];
        for sequence in order {
            assert_eq!(window.take(sequence), Ok(()), "{sequence}");
            assert_eq!(window.take(sequence), Err(Malformed::Replayed), "{sequence}");
        }
        let mut window = Window::default();
        window.take(40).unwrap();
        assert_eq!(window.take(8), Ok(()), "32 below the highest");
        assert_eq!(window.take(7), Err(Malformed::Replayed), "33 below the highest");
        assert_eq!(window.take(0), Err(Malformed::Replayed), "0 is reserved");
    }

    /// Comparison with a simple model: a set of received numbers.
    #[test]
    fn agrees_with_a_set() {
        use proptest::prelude::*;
        proptest!(|(numbers in proptest::collection::vec(1_u32..80, 1..200))| {
            let (mut window, mut seen) = (Window::default(), std::collections::BTreeSet::new());
            for number in numbers {
                let highest = seen.last().copied().unwrap_or(0);
                let fresh = !seen.contains(&number) && number + 32 >= highest;
                prop_assert_eq!(window.take(number).is_ok(), fresh);
                seen.insert(number);
            }
        });
    }
}
