//! Access to the box: the certificate pin, a short fingerprint that people can compare, the access
//! tokens, as `/apis/box.tinbox.dev/v1alpha1/access` lists them, and the users of the pages, as
//! `…/users` lists them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stdx::Secret;

/// Access token without its secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AccessToken {
    /// First 12 hexadecimal digits of the token's SHA-256.
    pub id: String,
    /// Name of the token's user.
    pub user: String,
    /// Groups of the token's user.
    pub groups: Vec<String>,
    /// Time from which the token is not valid; `None` for a token without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Time of the last request; `None` if there was none since the start of the box.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Timestamp>,
}

impl AccessToken {
    /// Returns the role: `operator`; `admin` for the group of all rights, else the groups.
    pub fn role(&self) -> String {
        let names = self.groups.iter().map(|group| match group.as_str() {
            "system:masters" => "admin",
            group => group.strip_prefix("tinbox:").unwrap_or(group),
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Request for a new token: a POST to `…/access/create`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRequest {
    /// Name of the token's user, such as that of the program.
    pub name: String,
    /// Role: `viewer`, `operator` or `admin`.
    pub role: String,
    /// Number of days for which the token is valid, 1 to [`DAYS_MAX`].
    pub days: u32,
}

/// Maximum number of days for which a token is valid.
pub const DAYS_MAX: u32 = 3650;

/// User of the pages, without the passphrase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PageUser {
    /// Name that the user types to log in.
    pub name: String,
    /// Role: `viewer`, `operator` or `admin`.
    pub role: String,
    /// Number of public SSH keys, which open the serial consoles.
    pub ssh_keys: u64,
    /// True for the owner, who cannot be changed here.
    pub owner: bool,
}

/// Request for a new user: a POST to `…/users`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPageUser {
    /// Name of the new user: lower-case letters, digits and `-._`.
    pub name: String,
    /// Role: `viewer`, `operator` or `admin`.
    pub role: String,
    /// First passphrase, which the user can change on the page.
    pub passphrase: Secret,
}

/// Change of a user: a PATCH of `…/users/NAME`. A field that is absent stays as it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageUserChange {
    /// New role: `viewer`, `operator` or `admin`.
    pub role: Option<String>,
    /// New passphrase. The sessions of the user end, and the SSH keys are removed.
    pub passphrase: Option<Secret>,
}

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
    use super::{AccessToken, is_same, pin};

    #[test]
    fn a_role_is_the_name_of_its_group() {
        for (group, role) in
            [("system:masters", "admin"), ("tinbox:operator", "operator"), ("rack-a", "rack-a")]
        {
            let token = AccessToken { groups: vec![group.to_owned()], ..AccessToken::default() };
            assert_eq!(token.role(), role);
        }
    }

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
