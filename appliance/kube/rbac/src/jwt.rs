//! ServiceAccount tokens: JSON Web Tokens (RFC 7515, RFC 7519) with Kubernetes' claims
//! (k8s.io/kubernetes, pkg/serviceaccount). Signing and checking signatures is the caller's.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{User, service_account_groups, service_account_name};

/// Who issues tokens, and whom they are for where nothing else was asked. The same on every box and
/// for ever: tokens must outlive a change of the box's address.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The signature algorithm: ECDSA on P-256 with SHA-256 (RFC 7518 section 3.4).
pub const ALGORITHM: &str = "ES256";
/// How far clocks may differ, seconds.
pub const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
/// Audiences one token may be for.
pub const MAX_AUDIENCES: usize = 32;
/// The extra under which a user carries which token was used.
pub const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// A name and the uid that tells apart objects of that name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    /// The object's name.
    pub name: String,
    /// The object's uid.
    pub uid: String,
}

/// What a token is about, in Kubernetes' own claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bound {
    /// The ServiceAccount's namespace.
    pub namespace: String,
    /// The Secret the token lives and dies with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<ObjectRef>,
    /// A pod, on tokens of other issuers; ours never name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<ObjectRef>,
    /// A node, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<ObjectRef>,
    /// The ServiceAccount.
    pub serviceaccount: ObjectRef,
}

/// The claims. Times are seconds since the epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// Whom the token is for.
    pub aud: Vec<String>,
    /// When it ends.
    pub exp: i64,
    /// When it was made.
    pub iat: i64,
    /// Who made it.
    pub iss: String,
    /// The token's own id.
    pub jti: String,
    /// What it is about.
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Bound,
    /// From when on it counts.
    pub nbf: i64,
    /// The user's name.
    pub sub: String,
}

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not three parts of base64 with JSON in them, or of another issuer or algorithm.
    #[error("invalid bearer token")]
    Malformed,
    /// Past its end.
    #[error("service account token has expired")]
    Expired,
    /// Before its beginning.
    #[error("service account token is not valid yet")]
    Early,
    /// For somebody else.
    #[error("token audiences {has:?} is invalid for the target audiences {wanted:?}")]
    Audience {
        /// Whom the token is for.
        has: Vec<String>,
        /// Who was meant.
        wanted: Vec<String>,
    },
}

impl Claims {
    /// The claims of a new token.
    pub fn new(bound: Bound, aud: Vec<String>, id: String, now: Timestamp, seconds: i64) -> Self {
        let iat = now.as_second();
        Self {
            sub: service_account_name(&bound.namespace, &bound.serviceaccount.name),
            aud,
            exp: iat.saturating_add(seconds),
            iat,
            nbf: iat,
            iss: ISSUER.to_owned(),
            jti: id,
            kubernetes: bound,
        }
    }

    /// Whether the claims hold at `now` for one of `audiences`, and for which of them. Whether the
    /// ServiceAccount still exists is the caller's to find out.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, now: Timestamp, audiences: &[String]) -> Result<Vec<String>, Refused> {
        let bound = &self.kubernetes;
        let sub = service_account_name(&bound.namespace, &bound.serviceaccount.name);
        if self.iss != ISSUER || self.sub != sub || bound.serviceaccount.uid.is_empty() {
            return Err(Refused::Malformed);
        }
        let (now, leeway) = (now.as_second(), LEEWAY.as_secs());
        if now > self.exp.saturating_add(leeway) {
            return Err(Refused::Expired);
        }
        if now < self.nbf.saturating_sub(leeway) {
            return Err(Refused::Early);
        }
        let common = audiences.iter().filter(|one| self.aud.contains(one));
        let common: Vec<String> = common.cloned().collect();
        if common.is_empty() {
            let (has, wanted) = (self.aud.clone(), audiences.to_vec());
            return Err(Refused::Audience { has, wanted });
        }
        Ok(common)
    }

    /// The user the token stands for.
    pub fn user(&self) -> User {
        let bound = &self.kubernetes;
        let mut user = User::known(self.sub.clone(), service_account_groups(&bound.namespace));
        user.uid.clone_from(&bound.serviceaccount.uid);
        if !self.jti.is_empty() {
            user.extra.insert(CREDENTIAL.to_owned(), vec![format!("JTI={}", self.jti)]);
        }
        user
    }
}

/// What is signed: header and claims.
pub fn signing_input(key_id: &str, claims: &Claims) -> String {
    let header = json!({ "alg": ALGORITHM, "kid": key_id });
    let claims = serde_json::to_vec(claims).expect("texts and numbers are always JSON");
    format!("{}.{}", BASE64URL.encode(header.to_string()), BASE64URL.encode(claims))
}

/// The token: what was signed, and the signature (R and S, 64 bytes).
pub fn token(signing_input: &str, signature: &[u8]) -> String {
    format!("{signing_input}.{}", BASE64URL.encode(signature))
}

/// A token taken apart; nothing in it is true before the signature was checked.
#[derive(Debug)]
pub struct Unverified<'a> {
    /// What was signed.
    pub signing_input: &'a str,
    /// By which key.
    pub key_id: String,
    /// The signature.
    pub signature: Vec<u8>,
    claims: Claims,
}

/// Whether a bearer token has the form of a JSON Web Token.
pub fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'a> Unverified<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// When it is none of ours by its form.
    pub fn parse(token: &'a str) -> Result<Self, Refused> {
        let bad = |_| Refused::Malformed;
        let (signing_input, signature) = token.rsplit_once('.').ok_or(Refused::Malformed)?;
        let (header, claims) = signing_input.split_once('.').ok_or(Refused::Malformed)?;
        let header = BASE64URL.decode(header).map_err(bad)?;
        let header: Value = serde_json::from_slice(&header).map_err(|_| Refused::Malformed)?;
        let claims = BASE64URL.decode(claims).map_err(bad)?;
        let signature = BASE64URL.decode(signature).map_err(bad)?;
        if header["alg"] != ALGORITHM || header.get("crit").is_some() {
            return Err(Refused::Malformed);
        }
        Ok(Self {
            signing_input,
            key_id: header["kid"].as_str().unwrap_or_default().to_owned(),
            signature,
            claims: serde_json::from_slice(&claims).map_err(|_| Refused::Malformed)?,
        })
    }

    /// The claims, given that the caller checked the signature over [`Self::signing_input`].
    pub fn verified(self) -> Claims {
        self.claims
    }
}

/// `/.well-known/openid-configuration` (OpenID Connect Discovery 1.0 section 3); `server` is the
/// box's URL.
pub fn configuration(server: &str) -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{}/openid/v1/jwks", server.trim_end_matches('/')),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    })
}

/// `/openid/v1/jwks` (RFC 7517) for one P-256 key, its uncompressed point (65 bytes).
pub fn key_set(key_id: &str, point: &[u8]) -> Value {
    let half = |from: usize| BASE64URL.encode(point.get(from..from + 32).unwrap_or_default());
    json!({ "keys": [{
        "use": "sig",
        "kty": "EC",
        "kid": key_id,
        "crv": "P-256",
        "alg": ALGORITHM,
        "x": half(1),
        "y": half(33),
    }] })
}

#[cfg(test)]
mod tests;
