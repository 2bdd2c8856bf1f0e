//! IPMI messages: the request and response inside a packet (IPMI 2.0 §13.8).

use super::wire::Reader;
use super::{CompletionCode, Malformed};

/// The BMC's address on its own bus, and ours as remote console software.
const BMC: u8 = 0x20;
const CONSOLE: u8 = 0x81;

/// Request sequence numbers have six bits.
pub const SEQUENCE_MASK: u8 = 0x3F;

/// A command of IPMI.
pub trait Command {
    /// Its name in the standard, for people.
    const NAME: &'static str;
    /// Network function code, even.
    const NET_FN: u8;
    /// Command number in that function.
    const CODE: u8;
    /// The BMC takes long, or the command should not be repeated early: wait longer before sending
    /// it again.
    const SLOW: bool = false;
    /// Type of the decoded answer.
    type Reply;

    /// Encodes the request's data.
    fn data(&self) -> Vec<u8>;

    /// True if doing it twice has the effect of doing it once.
    fn may_repeat(&self) -> bool {
        true
    }

    /// Decodes the data after the completion code.
    ///
    /// # Errors
    /// [`Malformed`] if it is too short or contains an impossible value.
    fn reply(&self, data: &[u8]) -> Result<Self::Reply, Malformed>;
}

/// Fields that identify the answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    net_fn: u8,
    code: u8,
    sequence: u8,
}

/// A request's bytes, and how its answer will be known.
pub fn request<C: Command>(command: &C, sequence: u8) -> (Vec<u8>, Expected) {
    let sequence = sequence & SEQUENCE_MASK;
    let mut bytes = vec![BMC, C::NET_FN << 2];
    bytes.push(checksum(&bytes));
    let body_at = bytes.len();
    bytes.extend([CONSOLE, sequence << 2, C::CODE]);
    bytes.extend(command.data());
    bytes.push(checksum(&bytes[body_at..]));
    (bytes, Expected { net_fn: C::NET_FN | 1, code: C::CODE, sequence })
}

/// The completion code and data of the response expected.
///
/// # Errors
/// [`Malformed`] for a short message, a wrong checksum, or the answer to something else.
pub fn response(bytes: &[u8], expected: Expected) -> Result<(CompletionCode, &[u8]), Malformed> {
    let (&sum, message) = bytes.split_last().ok_or(Malformed::Short("message"))?;
    let mut reader = Reader::new(message);
    let head: [u8; 3] = reader.array("message header")?;
    if checksum(&head[..2]) != head[2] || checksum(reader.rest()) != sum {
        return Err(Malformed::Unverified("message checksum"));
    }
    let [_, sequence, code] = reader.array("message header")?;
    if head[0] != CONSOLE || head[1] >> 2 != expected.net_fn {
        return Err(Malformed::Stray("network function"));
    }
    if sequence >> 2 != expected.sequence || code != expected.code {
        return Err(Malformed::Stray("request sequence number"));
    }
    let code = CompletionCode(reader.byte("completion code")?);
    Ok((code, reader.rest()))
}

/// Two's complement of the sum: bytes and checksum add up to zero.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipmi::command::ChassisStatus;

    /// Get Chassis Status and an answer to it, byte for byte.
    #[test]
    fn request_and_response() {
        let (bytes, expected) = request(&ChassisStatus, 1);
        assert_eq!(bytes, [0x20, 0x00, 0xE0, 0x81, 0x04, 0x01, 0x7A]);
        let mut answer = vec![0x81, 0x04, 0x7B, 0x20, 0x04, 0x01, 0x00, 0x21, 0x10, 0x40];
        answer.push(checksum(&answer[3..]));
        let (code, data) = response(&answer, expected).unwrap();
        assert_eq!((code, data), (CompletionCode::OK, [0x21, 0x10, 0x40].as_slice()));
        answer[7] ^= 1;
        assert_eq!(response(&answer, expected), Err(Malformed::Unverified("message checksum")));
    }

    #[test]
    fn the_answer_to_another_request_is_stray() {
        let (_, expected) = request(&ChassisStatus, 2);
        let mut answer = vec![0x81, 0x04, 0x7B, 0x20, 0x04, 0x01, 0x00];
        answer.push(checksum(&answer[3..]));
        assert!(matches!(response(&answer, expected), Err(Malformed::Stray(_))));
    }
}
