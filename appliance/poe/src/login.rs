//! Logins of SNMP: a user with keys (USM, RFC 3414), or a community string (RFC 1901).

use async_snmp::{Auth, AuthProtocol, PrivProtocol, UsmConfig};
use stdx::Secret;

use crate::Error;

/// Minimum length of a password of a user, in bytes (RFC 3414 section 11.2).
const PASSWORD_BYTES_MIN: usize = 8;
/// Maximum length of the name of a user, in bytes (RFC 3414 section 2.4, `SnmpAdminString`).
const USER_BYTES_MAX: usize = 32;
/// Maximum length of a community string, in bytes. RFC 1901 has no limit; switches have 32 or less.
const COMMUNITY_BYTES_MAX: usize = 255;

/// Hash that authenticates each message of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication {
    /// HMAC-SHA-96 (RFC 3414 section 7), for switches without SHA-256.
    Sha1,
    /// HMAC-192-SHA-256 (RFC 7860), for all other switches.
    Sha256,
}

/// User of SNMP version 3 at the security level `authPriv`, encrypted with AES-128 (RFC 3826). A
/// lower level is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Name of the user, 1 to 32 bytes.
    pub name: String,
    /// Hash of the authentication.
    pub authentication: Authentication,
    /// Password of the authentication, at least 8 bytes.
    pub password: Secret,
    /// Password of the encryption, at least 8 bytes.
    pub privacy_password: Secret,
}

/// Login at a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// User of SNMP version 3.
    User(User),
    /// Community string of SNMP version 2c. The network carries the string in clear text, so only
    /// the owner may choose this login.
    Community(Secret),
}

impl Login {
    /// Returns the name of the user; `None` for a community string.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::User(user) => Some(&user.name),
            Self::Community(_) => None,
        }
    }

    /// Checks the limits of the protocol.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let invalid = |field, reason| Err(Error::Invalid { field, reason });
        match self {
            Self::User(user) if user.name.is_empty() || user.name.len() > USER_BYTES_MAX => {
                invalid("username", "expected 1 to 32 bytes")
            }
            Self::User(user) if user.password.expose().len() < PASSWORD_BYTES_MIN => {
                invalid("password", "SNMP version 3 needs at least 8 bytes")
            }
            Self::User(user) if user.privacy_password.expose().len() < PASSWORD_BYTES_MIN => {
                invalid("privacyPassword", "SNMP version 3 needs at least 8 bytes")
            }
            Self::Community(text) if text.expose().is_empty() => {
                invalid("community", "expected a community string")
            }
            Self::Community(text) if text.expose().len() > COMMUNITY_BYTES_MAX => {
                invalid("community", "expected at most 255 bytes")
            }
            _ => Ok(()),
        }
    }

    /// Converts the login for the SNMP library. The keys of a user are computed by the library.
    pub(crate) fn auth(&self) -> Result<Auth, Error> {
        self.check()?;
        match self {
            Self::User(user) => {
                let hash = match user.authentication {
                    Authentication::Sha1 => AuthProtocol::Sha1,
                    Authentication::Sha256 => AuthProtocol::Sha256,
                };
                let (password, privacy) = (user.password.expose(), user.privacy_password.expose());
                let usm = UsmConfig::new(user.name.clone());
                let usm = usm.auth_priv(hash, password, PrivProtocol::Aes128, privacy);
                let usm = usm.map_err(|_| Error::Invalid {
                    field: "password",
                    reason: "SNMP version 3 cannot use the passwords",
                })?;
                Ok(Auth::Usm(usm))
            }
            Self::Community(text) => Ok(Auth::v2c(text.expose().to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, password: &str, privacy: &str) -> Login {
        Login::User(User {
            name: name.to_owned(),
            authentication: Authentication::Sha256,
            password: password.into(),
            privacy_password: privacy.into(),
        })
    }

    #[test]
    fn a_login_outside_the_limits_of_the_protocol_is_refused_with_its_field() {
        for (login, field) in [
            (user("", "12345678", "12345678"), "username"),
            (user(&"a".repeat(33), "12345678", "12345678"), "username"),
            (user("box", "1234567", "12345678"), "password"),
            (user("box", "12345678", "1234567"), "privacyPassword"),
            (Login::Community("".into()), "community"),
            (Login::Community("a".repeat(256).as_str().into()), "community"),
        ] {
            let Err(Error::Invalid { field: found, .. }) = login.auth().map(drop) else {
                panic!("{field} is not checked")
            };
            assert_eq!(found, field);
        }
        assert!(user("box", "12345678", "12345678").auth().is_ok());
        assert!(Login::Community("public".into()).auth().is_ok());
    }

    #[test]
    fn a_printed_login_hides_its_passwords() {
        let text = format!("{:?}", user("box", "authenticate", "encryption"));
        assert!(!text.contains("authenticate") && !text.contains("encryption"), "{text}");
        let text = format!("{:?}", Login::Community("clear-text".into()));
        assert!(!text.contains("clear-text"), "{text}");
    }
}
