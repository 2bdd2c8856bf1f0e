//! One-time code to claim the box, shown on the panel, with a limit of wrong tries (FB-3). No I/O:
//! the caller passes the random bytes.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::guess_limiter::Limits;

/// Length of a code in characters: 30 bits.
pub const CODE_CHARS: usize = 6;
/// Number of wrong codes, from all addresses, after which the code changes. At this limit, guessing
/// finds about one code in a million.
pub const TRIES_MAX: u32 = 1000;
/// Limits of wrong codes (FB-3). Many addresses together cannot lock out another address.
pub const LIMITS: Limits = Limits { each: 5, ever: 20, all: 60 };
/// Alphabet of Crockford's base32, without I, L, O and U.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// One-time claim code: `7KQ4M2`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Code([u8; CODE_CHARS]);

impl std::fmt::Debug for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Code(…)")
    }
}

impl Code {
    /// Creates a code from random bytes; uses five bits of each byte.
    pub fn of(chance: [u8; CODE_CHARS]) -> Self {
        Self(chance.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }

    /// Parses a typed code. Ignores case, spaces and dashes; reads O as 0, I and L as 1.
    pub fn typed(text: &str) -> Option<Self> {
        let mut code = [0; CODE_CHARS];
        let mut chars = text.chars().filter(|char| !matches!(char, ' ' | '-'));
        for place in &mut code {
            let byte = match chars.next()?.to_ascii_uppercase() {
                'O' => b'0',
                'I' | 'L' => b'1',
                char => u8::try_from(char).ok()?,
            };
            *place = byte;
            ALPHABET.contains(&byte).then_some(())?;
        }
        chars.next().is_none().then_some(Self(code))
    }

    /// Returns the code as the panel shows it.
    pub fn text(&self) -> String {
        self.0.iter().map(|byte| char::from(*byte)).collect()
    }

    /// Compares two codes in constant time.
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl TryFrom<String> for Code {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::typed(&text).ok_or("expected a code of six characters")
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.text()
    }
}

/// Current code and its wrong tries, as stored in `STATE/claim.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimCode {
    /// The code that the panel shows.
    pub code: Code,
    /// Number of wrong codes so far, from all addresses.
    pub wrong: u32,
}

/// Result of a typed code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeResult {
    /// The code is correct.
    Right,
    /// The code is wrong.
    Wrong,
    /// The code is wrong, and this was the last try: the code has changed.
    Changed,
}

impl ClaimCode {
    /// Creates the state of a new code, with no wrong tries.
    pub fn new(code: Code) -> Self {
        Self { code, wrong: 0 }
    }

    /// Checks `typed`. After the last allowed try, `fresh` becomes the code.
    pub fn attempt(&mut self, typed: &Code, fresh: Code) -> CodeResult {
        if self.code.is(typed) {
            return CodeResult::Right;
        }
        self.wrong = self.wrong.saturating_add(1);
        if self.wrong < TRIES_MAX {
            return CodeResult::Wrong;
        }
        *self = Self::new(fresh);
        CodeResult::Changed
    }

    /// Returns the number of wrong codes that are still allowed.
    pub fn left(&self) -> u32 {
        TRIES_MAX.saturating_sub(self.wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::{ClaimCode, Code, CodeResult, TRIES_MAX};

    fn code(text: &str) -> Code {
        Code::typed(text).unwrap()
    }

    #[test]
    fn codes_are_read_as_people_type_them() {
        for (typed, read) in [
            ("7KQ4M2", Some("7KQ4M2")),
            ("7kq 4m2", Some("7KQ4M2")),
            ("o1-ilLA", Some("01111A")),
            ("7KQ4M", None),
            ("7KQ4M22", None),
            ("7KQ4MU", None),
            ("7KQ4Mé", None),
            ("", None),
        ] {
            assert_eq!(Code::typed(typed).map(|it| it.text()).as_deref(), read, "{typed:?}");
        }
        assert_eq!(Code::of([0, 31, 32, 255, 10, 20]).text(), "0Z0ZAM");
        assert!(!format!("{:?}", code("7KQ4M2")).contains("7KQ"));
    }

    #[test]
    fn a_code_that_was_guessed_too_often_changes() {
        let (mut lock, fresh) = (ClaimCode::new(code("7KQ4M2")), code("ABCDEF"));
        for left in (1..TRIES_MAX).rev() {
            assert_eq!(lock.attempt(&code("000000"), fresh.clone()), CodeResult::Wrong);
            assert_eq!(lock.left(), left);
        }
        assert_eq!(lock.attempt(&code("7KQ4M2"), fresh.clone()), CodeResult::Right);
        assert_eq!(lock.attempt(&code("000000"), fresh.clone()), CodeResult::Changed);
        assert_eq!(lock.attempt(&code("7KQ4M2"), code("000001")), CodeResult::Wrong);
        assert_eq!(lock.attempt(&fresh, code("000001")), CodeResult::Right);
    }

    #[test]
    fn a_restart_forgets_no_wrong_code() {
        let mut lock = ClaimCode::new(code("7KQ4M2"));
        lock.attempt(&code("000000"), code("ABCDEF"));
        let kept = serde_json::to_string(&lock).unwrap();
        assert_eq!(kept, r#"{"code":"7KQ4M2","wrong":1}"#);
        assert_eq!(serde_json::from_str::<ClaimCode>(&kept).unwrap().left(), TRIES_MAX - 1);
    }
}
