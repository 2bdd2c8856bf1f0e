//! IPMI messages: request and response inside a packet (IPMI 2.0 §13.8).

use crate::wire::Reader;
use crate::{CompletionCode, Malformed, Refusal};

/// Address of the BMC on its own bus, then the address of remote console software (the box).
const BMC: u8 = 0x20;
const CONSOLE: u8 = 0x81;

/// Mask of the request sequence number, which has six bits.
pub const SEQUENCE_MASK: u8 = 0x3F;

/// IPMI command: encoding of the request and decoding of the response.
pub trait Command {
    /// Name of the command in the IPMI standard, for messages.
    const NAME: &'static str;
    /// Network function code of the request (even).
    const NET_FN: u8;
    /// Command number in the network function.
    const CODE: u8;
    /// True for longer waits before a retransmission: the BMC may be slow, or a repetition harmful.
    const SLOW: bool = false;
    /// Type of the decoded response.
    type Reply;

    /// Encodes the data of the request, which many commands do not have.
    fn data(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Returns true if a second execution has no additional effect.
    fn may_repeat(&self) -> bool {
        true
    }

    /// Decodes the response data after the completion code.
    ///
    /// # Errors
    /// The data is too short or contains an invalid value.
    fn reply(&self, data: &[u8]) -> Result<Self::Reply, Malformed>;
}

impl Refusal {
    /// Returns the refusal of a command.
    pub(crate) fn of<C: Command>(code: CompletionCode) -> Self {
        Self { net_fn: C::NET_FN, command: C::CODE, code }
    }
}

/// Fields that identify the response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    net_fn: u8,
    code: u8,
    sequence: u8,
}

/// Encodes a request. Also returns the fields that identify the response.
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

/// Returns completion code and data of the expected response.
///
/// # Errors
/// The message is too short, has a wrong checksum, or is the response to another request.
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

/// Returns the two's complement of the sum, so that bytes and checksum add up to zero.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::chassis::ChassisStatus;

    /// Bytes of Get Chassis Status and of a response.
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
