//! Certificate pin: a short fingerprint that people can compare.

/// Alphabet of Crockford's base32, without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Formats the first 80 bits of the SHA-256 of a certificate's SubjectPublicKeyInfo:
/// `F3A9-1C20-8BQK-77TM` (TL-2).
pub fn pin(key_sha256: &[u8; 32]) -> String {
    let bits = key_sha256[..10].iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
    let mut text = String::with_capacity(19);
    for at in 0..16 {
        if at > 0 && at % 4 == 0 {
            text.push('-');
        }
        let five = usize::try_from(bits >> (75 - 5 * at) & 31).unwrap_or(0);
        text.push(char::from(ALPHABET[five]));
    }
    text
}

/// Compares a typed pin with `pin`. Ignores case, spaces and dashes; reads O as 0, I and L as 1.
pub fn is_same(typed: &str, pin: &str) -> bool {
    let plain = |text: &str| -> String {
        let chars = text.chars().filter(|char| char.is_ascii_alphanumeric());
        let read = |char: char| match char.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            char => char,
        };
        chars.map(read).collect()
    };
    plain(typed) == plain(pin)
}

#[cfg(test)]
mod tests {
    use super::{is_same, pin};

    #[test]
    fn a_pin_is_eighty_bits() {
        let mut key = [0; 32];
        assert_eq!(pin(&key), "0000-0000-0000-0000");
        key[..10].copy_from_slice(&[255, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(pin(&key), "ZW00-0000-0000-0001");
        key[10] = 9;
        assert_eq!(pin(&key), "ZW00-0000-0000-0001");
    }

    #[test]
    fn a_pin_is_read_as_people_type_it() {
        assert!(is_same("zwoo 0000 0000 000i", "ZW00-0000-0000-0001"));
        assert!(!is_same("ZW00-0000-0000-0002", "ZW00-0000-0000-0001"));
        assert!(!is_same("", "ZW00-0000-0000-0001"));
    }
}
