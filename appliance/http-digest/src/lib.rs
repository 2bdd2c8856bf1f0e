//! Client of HTTP Digest authentication (RFC 7616): MD5 and SHA-256, `qop=auth`, nonce with a
//! counter. Library crates for it depend on versions of hash crates that the workspace does not
//! have.
//!
//! Never: sends a request, stores a password, or answers a challenge by Basic.
//!
//! Enter at [`Challenge::find`].

use md5::{Digest, Md5};
use sha2::Sha256;
use stdx::{Secret, hex};

/// Maximum length of a challenge header, in bytes. Intel AMT sends about 120.
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
    /// The challenge requires another algorithm.
    #[error("expected the digest algorithm MD5 or SHA-256, found {0:?}")]
    Algorithm(String),
    /// The user name cannot be written in a header, for example because of a line break.
    #[error("the user name has control characters")]
    UserName,
    /// The challenge does not offer `qop=auth`.
    #[error("expected the digest quality \"auth\", found {0:?}")]
    Quality(String),
}

/// Hash of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// MD5, which a server means that names none.
    Md5,
    /// SHA-256, as in FIPS 180-4.
    Sha256,
}

impl Algorithm {
    fn of(name: &str) -> Option<Self> {
        [Self::Md5, Self::Sha256].into_iter().find(|it| it.name().eq_ignore_ascii_case(name))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA-256",
        }
    }

    /// Hashes the parts, joined with colons (RFC 7616 §3.4).
    fn hash(self, parts: &[&str]) -> String {
        match self {
            Self::Md5 => hash::<Md5>(parts),
            Self::Sha256 => hash::<Sha256>(parts),
        }
    }
}

/// Challenge of a server (RFC 7616 §3.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Name of the protected area, part of each hash.
    pub realm: String,
    /// Random value of the server, which the answers are bound to.
    pub nonce: String,
    /// Value that the client returns unchanged.
    pub opaque: Option<String>,
    /// True if the login was right, but its nonce too old.
    pub is_stale: bool,
    /// Hash of the answers.
    pub algorithm: Algorithm,
}

impl Challenge {
    /// Reads the first digest challenge of the `WWW-Authenticate` headers of a response that can be
    /// answered. A server lists its challenges in the order of its preference.
    ///
    /// # Errors
    /// No header has a digest challenge, or none can be answered: the error of the first.
    pub fn find<'a>(headers: impl IntoIterator<Item = &'a str>) -> Result<Self, ChallengeError> {
        let mut refused = None;
        for header in headers {
            let header = header.trim_start();
            if !header.get(..7).is_some_and(|head| head.eq_ignore_ascii_case("Digest ")) {
                continue;
            }
            let parsed = match header.len() > HEADER_BYTES_MAX {
                true => Err(ChallengeError::Invalid("length")),
                false => Self::parse(&header[7..]),
            };
            match parsed {
                Ok(challenge) => return Ok(challenge),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused.unwrap_or(ChallengeError::Absent))
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
        let algorithm = match algorithm {
            Some(name) => Algorithm::of(&name).ok_or(ChallengeError::Algorithm(name))?,
            None => Algorithm::Md5,
        };
        let qualities = qualities.unwrap_or_default();
        if !qualities.split(',').any(|one| one.trim().eq_ignore_ascii_case("auth")) {
            return Err(ChallengeError::Quality(qualities));
        }
        Ok(Self {
            realm: realm.ok_or(ChallengeError::Invalid("realm"))?,
            nonce: nonce.filter(|it| !it.is_empty()).ok_or(ChallengeError::Invalid("nonce"))?,
            opaque,
            is_stale,
            algorithm,
        })
    }

    /// Returns the hash that proves the password for a request (RFC 7616 §3.4.1), in hexadecimal.
    /// `count` is the number of requests with this nonce, from 1.
    pub fn response(
        &self,
        (username, password): (&str, &Secret),
        (method, path): (&str, &str),
        cnonce: &str,
        count: u32,
    ) -> String {
        let Self { realm, nonce, algorithm, .. } = self;
        let who = algorithm.hash(&[username, realm, password.expose()]);
        let what = algorithm.hash(&[method, path]);
        algorithm.hash(&[&who, nonce, &format!("{count:08x}"), cnonce, "auth", &what])
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
        let Self { realm, nonce, algorithm, .. } = self;
        let response = self.response((username, password), (method, path), cnonce, count);
        let (username, realm, nonce) = (quoted(username), quoted(realm), quoted(nonce));
        let opaque = self.opaque.as_deref().map(|it| format!(",opaque={}", quoted(it)));
        format!(
            "Digest username={username},realm={realm},nonce={nonce},uri=\"{path}\",qop=auth,\
             nc={count:08x},cnonce=\"{cnonce}\",response=\"{response}\",algorithm={}{}",
            algorithm.name(),
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

fn hash<H: Digest>(parts: &[&str]) -> String {
    let mut hash = H::new();
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
