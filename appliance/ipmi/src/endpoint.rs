//! Connection data of one BMC: address, login and cipher suite.

use std::fmt;

use stdx::Secret;

/// Network address of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Host name or IP address; IPv6 without brackets.
    pub host: String,
    /// UDP port, by default [`Address::PORT`].
    pub port: u16,
}

impl Address {
    /// UDP port that IANA assigned to RMCP (ASF 2.0 §3.2.1).
    pub const PORT: u16 = 623;
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// User name and password of a BMC account. The session setup checks their lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// User name, at most 16 bytes.
    pub username: String,
    /// Password, at most 20 bytes.
    pub password: Secret,
}

/// Cipher suite (IPMI 2.0 table 22-20). Insecure suites are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CipherSuite {
    /// Suite 3: RAKP-HMAC-SHA1, HMAC-SHA1-96, AES-CBC-128.
    Three,
    /// Suite 17: RAKP-HMAC-SHA256, HMAC-SHA256-128, AES-CBC-128.
    Seventeen,
}

impl CipherSuite {
    /// Suites that the driver tries by default, best first.
    pub const PREFERRED: [Self; 2] = [Self::Seventeen, Self::Three];

    /// Returns the number of the suite in IPMI 2.0 table 22-20.
    pub fn id(self) -> u8 {
        match self {
            Self::Three => 3,
            Self::Seventeen => 17,
        }
    }

    /// Returns the suite with the number `id`; `None` for an insecure or unknown suite.
    pub fn from_id(id: u8) -> Option<Self> {
        Self::PREFERRED.into_iter().find(|suite| suite.id() == id)
    }
}

impl fmt::Display for CipherSuite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())
    }
}

/// Connection data of one BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Network address of the BMC.
    pub address: Address,
    /// User name and password of an account.
    pub credentials: Credentials,
    /// Required suite; `None` means the best of [`CipherSuite::PREFERRED`] that the BMC supports.
    pub cipher_suite: Option<CipherSuite>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_good_suites_have_a_name() {
        assert_eq!("17".parse::<CipherSuite>().unwrap(), CipherSuite::Seventeen);
        assert_eq!("3".parse::<CipherSuite>().unwrap(), CipherSuite::Three);
        for weak in ["0", "1", "2", "8", "12", "256", "", "x"] {
            assert!(weak.parse::<CipherSuite>().is_err(), "{weak}");
        }
    }
}
