//! Decoder for bytes in JSON: base64, with the leniency of Go's `encoding/json`.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Base64 decoder that ignores unused trailing bits, as Go's decoder does.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Decodes base64 text; line breaks are ignored, as in Go.
///
/// # Errors
/// Returns the offset at which Go's decoder rejects the text.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    // Line breaks are skipped at any position.
    let kept = || text.char_indices().filter(|(_, c)| !matches!(c, '\r' | '\n'));
    let plain: String = kept().map(|(_, c)| c).collect();
    LENIENT.decode(&plain).map_err(|_| {
        // Up to this offset, every character is one byte.
        kept().nth(gives_up(plain.as_bytes())).map_or(text.len(), |(at, _)| at)
    })
}

/// Returns the offset that Go reports for invalid base64 (Go's `encoding/base64`, `decodeQuantum`).
fn gives_up(bytes: &[u8]) -> usize {
    for (number, quantum) in bytes.chunks(4).enumerate() {
        let start = number * 4;
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
        let digits = quantum.iter().take_while(|byte| is_digit(byte)).count();
        match (digits, quantum.get(digits..).unwrap_or_default()) {
            (4, _) => {}
            (_, []) => return start,
            (2, [b'=']) => return bytes.len(),
            // The quantum is complete, so the error is after the quantum.
            (2, [b'=', b'=']) | (3, [b'=']) => return start + 4,
            _ => return start + digits,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn as_go_does() {
        for (text, expected) in [
            ("", Ok(&b""[..])),
            ("YQ==", Ok(b"a")),
            ("YR==", Ok(b"a")),
            ("YW\nJj\r\n", Ok(b"abc")),
            ("no base64", Err(2)),
            ("\nno base64", Err(3)),
            ("YWJjYQ", Err(4)),
            ("YWJj?QQQ", Err(4)),
            ("YQ=", Err(3)),
            ("Y", Err(0)),
            ("Y===", Err(1)),
            ("YQ==x", Err(4)),
            ("YQ=x", Err(2)),
            ("YWJjY", Err(4)),
            ("=", Err(0)),
            ("YQ==YQ==", Err(4)),
        ] {
            assert_eq!(decode(text), expected.map(<[u8]>::to_vec), "{text}");
        }
    }
}
