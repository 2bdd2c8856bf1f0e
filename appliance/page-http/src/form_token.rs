//! CSRF tokens of forms, masked for each response.
//!
//! Pages are compressed, and some repeat text of the request, such as a search. The size of such
//! pages would reveal a constant secret in them letter by letter (BREACH). The mask lets no two
//! responses contain the same token, as BREACH's authors propose (section 3.4 of their paper).

/// Length of a token in hexadecimal digits: 128 bits.
const DIGITS: usize = 32;

/// Returns the token of a session, masked: a random pad, then the token XOR the pad. An invalid
/// token gives an empty text, which [`is_masked`] refuses.
pub fn masked(token: &str) -> String {
    let pad = bits(&stdx::random_hex(DIGITS / 2));
    let parts = bits(token).zip(pad).map(|(token, pad)| format!("{pad:032x}{:032x}", token ^ pad));
    parts.unwrap_or_default()
}

/// Returns true if `given` is `token`, masked with any pad.
pub fn is_masked(given: &str, token: &str) -> bool {
    let parts = given.split_at_checked(DIGITS);
    let given = parts.and_then(|(pad, rest)| Some(bits(pad)? ^ bits(rest)?));
    given.is_some() && given == bits(token)
}

/// Returns the value of [`DIGITS`] hexadecimal digits; `None` for any other text.
fn bits(text: &str) -> Option<u128> {
    let valid = text.len() == DIGITS && text.bytes().all(|it| it.is_ascii_hexdigit());
    valid.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{is_masked, masked};

    const TOKEN: &str = "00112233445566778899aabbccddeeff";

    #[test]
    fn no_two_masked_tokens_are_equal_and_each_is_valid() {
        let all: Vec<String> = (0..8).map(|_| masked(TOKEN)).collect();
        for (at, one) in all.iter().enumerate() {
            assert!(is_masked(one, TOKEN), "{one}");
            assert!(!one.contains(&TOKEN[..8]) && !all[..at].contains(one), "{one}");
        }
    }

    #[test]
    fn another_text_is_not_a_masked_token() {
        let mut other = masked(TOKEN);
        let last = if other.ends_with('0') { "1" } else { "0" };
        other.replace_range(63.., last);
        let plain_pad = format!("{}{TOKEN}", "0".repeat(32));
        assert!(is_masked(&plain_pad, TOKEN), "any pad is valid");
        for wrong in [other.as_str(), "", TOKEN, &plain_pad[1..], &format!("{plain_pad}0")] {
            assert!(!is_masked(wrong, TOKEN), "{wrong}");
        }
        let signed = format!("+{}", &plain_pad[1..]);
        assert!(!is_masked(&signed, TOKEN));
        assert!(!is_masked(&"é".repeat(32), TOKEN));
        assert_eq!((masked(""), is_masked("", "")), (String::new(), false));
    }
}
