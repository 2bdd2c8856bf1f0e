//! WebSocket frames (RFC 6455) of a server that only sends: handshake response, frames to the
//! client, and parsing of the client's frames. No I/O.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Maximum payload of a client's data frame in bytes. The payload is ignored.
pub const MAX_DATA_BYTES: usize = 4 * 1024;
/// Maximum payload of a control frame in bytes (section 5.5).
const MAX_CONTROL_BYTES: usize = 125;
/// Fixed text that is hashed together with the client's key in the handshake (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes of the decoded `Sec-WebSocket-Key` (section 4.1).
const KEY_BYTES: usize = 16;

/// Close code of a watch that has ended (section 7.4.1).
pub const NORMAL: u16 = 1000;
/// Close code for a frame that violates the protocol.
pub const PROTOCOL_ERROR: u16 = 1002;
/// Close code for a frame above its size limit.
pub const TOO_LARGE: u16 = 1009;

/// Frame types that the server sends (section 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    Text = 1,
    Close = 8,
    Pong = 10,
}

/// Frame from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// Ping; the response must contain the same bytes.
    Ping(Vec<u8>),
    /// Close frame; the connection ends.
    Close,
    /// Data or a pong, which the server ignores.
    Other,
}

/// Error: invalid frame from a client. The value is the close code to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation(pub u16);

/// Returns `Sec-WebSocket-Accept` for the client's `Sec-WebSocket-Key`; `None` for an invalid key.
pub fn accept(key: &str) -> Option<String> {
    let bytes = STANDARD.decode(key).ok()?;
    let whole = (bytes.len() == KEY_BYTES).then(|| format!("{key}{GUID}"))?;
    let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, whole.as_bytes());
    Some(STANDARD.encode(hash))
}

/// Returns a complete frame to the client, unmasked, as a server must send it (section 5.1).
pub fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(0x80 | opcode as u8);
    match payload.len() {
        length @ 0..=125 => frame.push(length as u8),
        length @ 126..=0xffff => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// Parses the frame at the start of `bytes`; returns its length too. `None` if incomplete.
pub fn parse(bytes: &[u8]) -> Result<Option<(Received, usize)>, Violation> {
    let [first, second, rest @ ..] = bytes else { return Ok(None) };
    let (opcode, is_control) = (first & 0x0f, first & 0x08 != 0);
    let (is_final, is_masked) = (first & 0x80 != 0, second & 0x80 != 0);
    let known = matches!(opcode, 0..=2 | 8..=10);
    if first & 0x70 != 0 || !is_masked || !known || (is_control && !is_final) {
        return Err(Violation(PROTOCOL_ERROR));
    }
    let (length, rest) = match (second & 0x7f, rest) {
        (126, [a, b, rest @ ..]) => (u64::from(u16::from_be_bytes([*a, *b])), rest),
        (126, _) => return Ok(None),
        (127, rest) => match rest.split_first_chunk::<8>() {
            Some((length, rest)) => (u64::from_be_bytes(*length), rest),
            None => return Ok(None),
        },
        (short, rest) => (u64::from(short), rest),
    };
    let limit = if is_control { MAX_CONTROL_BYTES } else { MAX_DATA_BYTES };
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length > limit {
        return Err(Violation(if is_control { PROTOCOL_ERROR } else { TOO_LARGE }));
    }
    let Some((mask, rest)) = rest.split_first_chunk::<4>() else { return Ok(None) };
    let Some(payload) = rest.get(..length) else { return Ok(None) };
    let taken = bytes.len() - rest.len() + length;
    let received = match opcode {
        8 => Received::Close,
        9 => {
            let mask = mask.iter().cycle();
            Received::Ping(payload.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect())
        }
        _ => Received::Other,
    };
    Ok(Some((received, taken)))
}

#[cfg(test)]
mod tests {
    use super::{
        MAX_DATA_BYTES, Opcode, PROTOCOL_ERROR, Received, TOO_LARGE, Violation, accept, frame,
        parse,
    };

    /// Example of RFC 6455, section 1.3.
    #[test]
    fn a_key_is_answered_as_the_rfc_says() {
        let answer = accept("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(answer.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        for key in ["", "dGhl", "x", "dGhlIHNhbXBsZSBub25jZQ"] {
            assert_eq!(accept(key), None, "{key}");
        }
    }

    #[test]
    fn frames_of_every_length_have_their_header() {
        for (length, header) in [
            (0, vec![0x81, 0]),
            (125, vec![0x81, 125]),
            (126, vec![0x81, 126, 0, 126]),
            (0xffff, vec![0x81, 126, 0xff, 0xff]),
            (0x1_0000, vec![0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let made = frame(Opcode::Text, &vec![b'x'; length]);
            assert_eq!(made[..header.len()], header);
            assert_eq!(made.len(), header.len() + length);
        }
    }

    #[test]
    fn what_a_client_sends_is_read_or_refused() {
        // "Hello", masked: section 5.7.
        let ping = [0x89, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(parse(&ping), Ok(Some((Received::Ping(b"Hello".to_vec()), ping.len()))));
        for cut in 0..ping.len() {
            assert_eq!(parse(&ping[..cut]), Ok(None), "{cut}");
        }
        let masked = |first: u8, length: &[u8], payload: usize| {
            [&[first], length, &[0; 4], &vec![0; payload]].concat()
        };
        assert_eq!(parse(&masked(0x88, &[0x82], 2)), Ok(Some((Received::Close, 8))));
        assert_eq!(parse(&masked(0x81, &[0xfe, 0, 200], 200)), Ok(Some((Received::Other, 208))));
        let large = (MAX_DATA_BYTES as u64 + 1).to_be_bytes();
        for (bytes, code) in [
            (masked(0x82, &[&[0xff], &large[..]].concat(), 0), TOO_LARGE),
            (masked(0x89, &[0xfe, 0, 126], 126), PROTOCOL_ERROR),
            // Not masked, reserved bits, an unknown opcode, a fragmented control frame.
            (vec![0x89, 0], PROTOCOL_ERROR),
            (masked(0xc1, &[0x80], 0), PROTOCOL_ERROR),
            (masked(0x83, &[0x80], 0), PROTOCOL_ERROR),
            (masked(0x09, &[0x80], 0), PROTOCOL_ERROR),
        ] {
            assert_eq!(parse(&bytes), Err(Violation(code)), "{bytes:x?}");
        }
    }
}
