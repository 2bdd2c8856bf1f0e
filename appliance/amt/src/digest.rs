//! Digest authentication as AMT uses it (RFC 7616): MD5, `qop=auth`, nonce with a counter.

use md5::{Digest as _, Md5};
use stdx::{Secret, hex};

/// Maximum length of a challenge header and of each value in it. AMT sends about 120 bytes.
const HEADER_BYTES_MAX: usize = 2048;

/// Reason why a challenge cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChallengeError {
    /// The response has no challenge of the scheme `Digest`.
    #[error("the response has no digest challenge")]
    Absent,
    /// A part of the challenge is missing, too long or not valid.
    #[error("the digest challenge has no valid {0}")]
    Invalid(&'static str),
    /// The challenge requires an algorithm other than MD5.
    #[error("expected the digest algorithm MD5, found {0:?}")]
    Algorithm(String),
    /// The challenge does not offer `qop=auth`.
    #[error("expected the digest quality \"auth\", found {0:?}")]
    Quality(String),
}

/// Challenge of a server (RFC 7616 §3.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// `Digest:` and 32 hexadecimal digits, fixed for one provisioning.
    pub realm: String,
    /// Random value of the server, which the answers are bound to.
    pub nonce: String,
    /// Value that the client returns unchanged; AMT sends none.
    pub opaque: Option<String>,
    /// True if the login was right, but its nonce too old.
    pub is_stale: bool,
}

impl Challenge {
    /// Reads the first digest challenge of the `WWW-Authenticate` headers of a response.
    ///
    /// # Errors
    /// No header has a digest challenge, or the challenge cannot be answered.
    pub fn find<'a>(headers: impl IntoIterator<Item = &'a str>) -> Result<Self, ChallengeError> {
        let is_digest = |header: &&str| {
            header.trim_start().get(..7).is_some_and(|head| head.eq_ignore_ascii_case("Digest "))
        };
        let found = headers.into_iter().find(is_digest).ok_or(ChallengeError::Absent)?;
        if found.len() > HEADER_BYTES_MAX {
            return Err(ChallengeError::Invalid("length"));
        }
        Self::parse(&found.trim_start()[7..])
    }

    fn parse(text: &str) -> Result<Self, ChallengeError> {
        let mut rest = text;
        let (mut realm, mut nonce, mut opaque) = (None, None, None);
        let (mut is_stale, mut algorithm, mut qualities) = (false, None, None);
        while let Some((name, value, after)) = parameter(rest) {
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "nonce" => nonce = Some(value),
                "opaque" => opaque = Some(value),
                "stale" => is_stale = value.eq_ignore_ascii_case("true"),
                "algorithm" => algorithm = Some(value),
                "qop" => qualities = Some(value),
                _ => {}
            }
            rest = after;
        }
        if let Some(algorithm) = algorithm.filter(|it| !it.eq_ignore_ascii_case("MD5")) {
            return Err(ChallengeError::Algorithm(algorithm));
        }
        let qualities = qualities.unwrap_or_default();
        if !qualities.split(',').any(|one| one.trim().eq_ignore_ascii_case("auth")) {
            return Err(ChallengeError::Quality(qualities));
        }
        Ok(Self {
            realm: realm.ok_or(ChallengeError::Invalid("realm"))?,
            nonce: nonce.filter(|it| !it.is_empty()).ok_or(ChallengeError::Invalid("nonce"))?,
            opaque,
            is_stale,
        })
    }

    /// Returns the value of the header `Authorization` for a request. `count` is the number of
    /// requests with this nonce, from 1.
    pub fn authorization(
        &self,
        (username, password): (&str, &Secret),
        (method, path): (&str, &str),
        cnonce: &str,
        count: u32,
    ) -> String {
        let Self { realm, nonce, .. } = self;
        let who = digest(&[username, realm, password.expose()]);
        let what = digest(&[method, path]);
        let count = format!("{count:08x}");
        let response = digest(&[&who, nonce, &count, cnonce, "auth", &what]);
        let (username, realm, nonce) = (quoted(username), quoted(realm), quoted(nonce));
        let opaque = self.opaque.as_deref().map(|it| format!(",opaque={}", quoted(it)));
        format!(
            "Digest username={username},realm={realm},nonce={nonce},uri=\"{path}\",qop=auth,\
             nc={count},cnonce=\"{cnonce}\",response=\"{response}\",algorithm=MD5{}",
            opaque.unwrap_or_default()
        )
    }
}

/// Reads `name=value` or `name="value"`; returns the text after the following comma.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([',', ' ', '\t']);
    let (name, rest) = text.split_once('=')?;
    let rest = rest.trim_start();
    let Some(inner) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ', '\t']).unwrap_or(rest.len());
        return Some((name.trim(), rest[..end].to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((name.trim(), value, &inner[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            char => value.push(char),
        }
    }
    None
}

/// Encodes a quoted string (RFC 9110 §5.6.4).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Hashes the parts, joined with colons (RFC 7616 §3.4).
fn digest(parts: &[&str]) -> String {
    let mut hash = Md5::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            hash.update(b":");
        }
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests;
