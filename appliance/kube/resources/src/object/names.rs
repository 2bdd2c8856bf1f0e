//! Syntax of names, labels and keys (RFC 1123 as Kubernetes applies it).

use uuid::Uuid;

/// Maximum bytes of an object's name.
pub const MAX_NAME: usize = 253;
/// Maximum bytes of a label value, a label name and a namespace's name.
pub const MAX_LABEL: usize = 63;
/// Number of random characters after the base of a generated name.
pub const SUFFIX: usize = 5;
/// Maximum bytes of a `generateName` that are used, so that the generated name fits into a label.
pub const MAX_BASE: usize = MAX_LABEL - SUFFIX;

/// Alphabet of random suffixes. It has no vowels and no ambiguous characters, so that no suffix
/// forms a word.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns true if `text` is an RFC 1123 subdomain: labels joined by dots, 1 to 253 bytes.
pub fn subdomain(text: &str) -> bool {
    text.len() <= MAX_NAME && text.split('.').all(label_of_any_length)
}

/// Returns `base`, cut to [`MAX_BASE`] bytes, followed by five random characters.
pub fn generate(base: &str) -> String {
    let mut end = base.len().min(MAX_BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let random = Uuid::new_v4().into_bytes();
    let suffix = random.iter().take(SUFFIX).map(|byte| {
        let at = usize::from(*byte) % ALPHABET.len();
        char::from(ALPHABET.get(at).copied().unwrap_or(b'x'))
    });
    base.chars().take(base.get(..end).unwrap_or_default().chars().count()).chain(suffix).collect()
}

fn label_of_any_length(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
        && ends_are(text, plain)
}

fn ends_are(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().into_iter().chain(bytes.last()).all(|byte| allowed(*byte))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LABEL, generate, subdomain};

    #[test]
    fn syntax() {
        for good in ["a", "nuc-1", "0.nuc.rack", "a-b.c"] {
            assert!(subdomain(good), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a/b", "é", "a b"] {
            assert!(!subdomain(bad), "{bad}");
        }
    }

    #[test]
    fn generated_names_differ_and_fit() {
        let base = "é".repeat(60);
        assert!(generate(&base).len() <= 63);
        let name = generate("boot-");
        assert!(subdomain(&name) && !name.contains('.') && name.len() <= MAX_LABEL, "{name}");
        assert_ne!(generate("boot-"), generate("boot-"));
    }
}
