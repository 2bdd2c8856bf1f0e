//! Signatures of requests by HMAC, as Rufio's provider `rpc` makes them.

use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use sha2::{Sha256, Sha512};
use stdx::hex;

use super::RpcOptions;

/// Hash of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-256 (RFC 2104).
    Sha256,
    /// HMAC with SHA-512 (RFC 2104).
    Sha512,
}

impl Algorithm {
    /// Both algorithms, in the order of their headers.
    const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// Returns the algorithm of a key of `hmac.secrets`; `None` for an unknown one.
    pub fn of(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "sha256" | "256" => Some(Self::Sha256),
            "sha512" | "512" => Some(Self::Sha512),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn header_suffix(self) -> &'static str {
        match self {
            Self::Sha256 => "-256",
            Self::Sha512 => "-512",
        }
    }

    fn hmac(self, secret: &[u8], text: &[u8]) -> String {
        match self {
            Self::Sha256 => {
                let mac = Hmac::<Sha256>::new_from_slice(secret);
                mac.map(|mac| hex(&mac.chain_update(text).finalize().into_bytes()))
            }
            Self::Sha512 => {
                let mac = Hmac::<Sha512>::new_from_slice(secret);
                mac.map(|mac| hex(&mac.chain_update(text).finalize().into_bytes()))
            }
        }
        // HMAC takes a key of any length.
        .unwrap_or_default()
    }
}

/// Signed bytes: the body, directly followed by the values of some headers.
pub struct Signed(Vec<u8>);

impl Signed {
    pub fn of(body: &str, headers: &HeaderMap, names: &[String]) -> Self {
        let values = names.iter().filter_map(|name| headers.get(name));
        let values = values.flat_map(|value| value.as_bytes().iter().copied());
        Self(body.bytes().chain(values).collect())
    }
}

/// Returns names and values of the headers with the signatures, one header for each algorithm.
pub fn sign(options: &RpcOptions, signed: &Signed) -> Vec<(String, String)> {
    let of = |algorithm: Algorithm| {
        let secrets = options.secrets.iter().filter(|(of, _)| *of == algorithm);
        let signatures: Vec<String> = secrets
            .map(|(_, secret)| {
                let hex = algorithm.hmac(secret.expose().as_bytes(), &signed.0);
                let has_prefix = options.has_algorithm_prefix;
                if has_prefix { format!("{}={hex}", algorithm.name()) } else { hex }
            })
            .collect();
        let suffix = if options.has_algorithm_in_header { algorithm.header_suffix() } else { "" };
        let name = format!("{}{suffix}", options.signature_header);
        (!signatures.is_empty()).then(|| (name, signatures.join(",")))
    };
    Algorithm::ALL.into_iter().filter_map(of).collect()
}
