//! Random identifiers and their hexadecimal form.

/// Returns `bytes` random bytes from the kernel, in lower-case hexadecimal.
///
/// # Panics
/// The kernel returns no random bytes, which Linux never does after boot.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0_u8; bytes];
    getrandom::fill(&mut buffer).expect("the kernel gives randomness");
    hex(&buffer)
}

/// Encodes bytes as lower-case hexadecimal, two digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes hexadecimal text of even length. Returns `None` for any other text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{hex, random_hex, unhex};

    #[test]
    fn hexadecimal_round_trip() {
        assert_eq!(hex(&[0, 0x0f, 0xff]), "000fff");
        assert_eq!(unhex("000fff"), Some(vec![0, 0x0f, 0xff]));
        assert_eq!(unhex("00f"), None);
        assert_eq!(unhex("zz"), None);
        assert_eq!(unhex("é0"), None);
    }

    #[test]
    fn random_is_not_repeated() {
        assert_ne!(random_hex(16), random_hex(16));
    }
}
