//! Digest authentication of the engine (RFC 7616), written apart from our client's.

use std::collections::HashMap;

use md5::{Digest as _, Md5};

use super::AmtSim;

/// Realm of the engine.
pub const REALM: &str = "Digest:4BB90000000000000000000000000000";

/// Verdict about a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The login is right.
    Accepted,
    /// The request gets a challenge.
    Challenged {
        /// True if only the nonce was wrong.
        is_stale: bool,
    },
}

/// Nonces of the engine, and counts.
#[derive(Debug, Default)]
pub struct Logins {
    number: u32,
    uses: u32,
    last_count: u32,
    /// Logins with a wrong user name or password.
    pub refused: usize,
}

impl Logins {
    fn nonce(&self) -> String {
        // 24 bytes in base64, as AMT sends.
        format!("zicaAAAAAAAAAAAAa8tMnB1x{:08}", self.number)
    }

    /// Returns a challenge with a new nonce, in the spelling of AMT.
    pub fn challenge(&mut self, is_stale: bool) -> String {
        self.number += 1;
        (self.uses, self.last_count) = (0, 0);
        let nonce = self.nonce();
        format!("Digest realm=\"{REALM}\", nonce=\"{nonce}\",stale=\"{is_stale}\",qop=\"auth\"")
    }

    /// Verifies the header `Authorization`. `uses` is the limit of a nonce; 0 for no limit.
    pub fn verify(&mut self, header: Option<&str>, uses: u32) -> Verdict {
        let Some(header) = header else { return Verdict::Challenged { is_stale: false } };
        let values = values(header);
        let get = |name: &str| values.get(name).map(String::as_str).unwrap_or_default();
        let who = hash(&[AmtSim::USERNAME, REALM, AmtSim::PASSWORD]);
        let what = hash(&["POST", get("uri")]);
        let parts = [&who, get("nonce"), get("nc"), get("cnonce"), get("qop"), &what];
        let is_right = get("username") == AmtSim::USERNAME
            && get("realm") == REALM
            && get("uri") == "/wsman"
            && get("qop") == "auth"
            && hash(&parts) == get("response");
        if !is_right {
            self.refused += 1;
            return Verdict::Challenged { is_stale: false };
        }
        let count = u32::from_str_radix(get("nc"), 16).unwrap_or(0);
        self.uses += 1;
        let is_replayed = count <= self.last_count;
        let is_used_up = uses > 0 && self.uses > uses;
        if get("nonce") != self.nonce() || is_replayed || is_used_up {
            return Verdict::Challenged { is_stale: true };
        }
        self.last_count = count;
        Verdict::Accepted
    }
}

/// Splits `Digest name="value", name=value`.
fn values(header: &str) -> HashMap<String, String> {
    let mut values = HashMap::new();
    let mut rest = header.trim_start_matches("Digest").trim();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        values.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        rest = after.trim_start_matches([',', ' ']);
    }
    values
}

/// MD5 of the parts, joined with colons, in hexadecimal.
pub fn hash(parts: &[&str]) -> String {
    let digest = Md5::digest(parts.join(":").as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
