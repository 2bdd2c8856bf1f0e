//! ServiceAccount tokens: JSON Web Tokens (RFC 7515, RFC 7519) with Kubernetes' claims
//! (k8s.io/kubernetes, pkg/serviceaccount). The caller creates and verifies signatures.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{User, service_account_groups, service_account_name};

/// Issuer of tokens, and their default audience. The value is the same on every box, so that tokens
/// stay valid after a change of the box's address.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Signature algorithm: ECDSA on P-256 with SHA-256 (RFC 7518 section 3.4).
pub const ALGORITHM: &str = "ES256";
/// Accepted clock difference for expiry and start of validity: 60 seconds.
pub const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
/// Maximum number of audiences of one token.
pub const MAX_AUDIENCES: usize = 32;
/// Key of the extra value in [`User::extra`] that contains the ID of the user's token.
pub const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Name and UID of an object. The UID distinguishes objects that had the same name at different
/// times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    /// Name of the object.
    pub name: String,
    /// UID of the object.
    pub uid: String,
}

/// Objects that a token is bound to (claim `kubernetes.io`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bound {
    /// Namespace of the ServiceAccount.
    pub namespace: String,
    /// Secret that the token is bound to, whose deletion revokes the token; `None` if not bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<ObjectRef>,
    /// Pod of a token from another issuer; Tinbox never sets this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<ObjectRef>,
    /// Node of a token from another issuer; Tinbox never sets this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<ObjectRef>,
    /// ServiceAccount that the token authenticates.
    pub serviceaccount: ObjectRef,
}

/// Claims of a token. Times are in seconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Claims {
    /// Audiences of the token (RFC 7519 section 4.1.3).
    pub aud: Vec<String>,
    /// Expiry time (RFC 7519 section 4.1.4).
    pub exp: i64,
    /// Issue time (RFC 7519 section 4.1.6).
    pub iat: i64,
    /// Issuer, always [`ISSUER`] in valid tokens (RFC 7519 section 4.1.1).
    pub iss: String,
    /// Unique ID of the token (RFC 7519 section 4.1.7).
    pub jti: String,
    /// Objects that the token is bound to.
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Bound,
    /// Start of validity (RFC 7519 section 4.1.5).
    pub nbf: i64,
    /// User name (RFC 7519 section 4.1.2).
    pub sub: String,
}

/// Reason why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token does not consist of three base64 parts with JSON, or has another issuer or
    /// algorithm.
    #[error("invalid bearer token")]
    Malformed,
    /// The expiry time has passed.
    #[error("service account token has expired")]
    Expired,
    /// The start of validity is in the future.
    #[error("service account token is not valid yet")]
    Early,
    /// The token is for another audience.
    #[error("token audiences {has:?} is invalid for the target audiences {wanted:?}")]
    Audience {
        /// Audiences of the token.
        has: Vec<String>,
        /// Audiences that the request needs.
        wanted: Vec<String>,
    },
}

impl Claims {
    /// Makes the claims of a new token that is valid for `seconds` from `now`.
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

    /// Checks the claims at the time `now`. Returns the members of `audiences` for which the token
    /// is valid. The caller must check that the ServiceAccount still exists.
    ///
    /// # Errors
    /// Returns a [`TokenError`] with the reason for a refusal.
    pub fn check(&self, now: Timestamp, audiences: &[String]) -> Result<Vec<String>, TokenError> {
        let bound = &self.kubernetes;
        let sub = service_account_name(&bound.namespace, &bound.serviceaccount.name);
        if self.iss != ISSUER || self.sub != sub || bound.serviceaccount.uid.is_empty() {
            return Err(TokenError::Malformed);
        }
        let (now, leeway) = (now.as_second(), LEEWAY.as_secs());
        if now > self.exp.saturating_add(leeway) {
            return Err(TokenError::Expired);
        }
        if now < self.nbf.saturating_sub(leeway) {
            return Err(TokenError::Early);
        }
        let common = audiences.iter().filter(|one| self.aud.contains(one));
        let common: Vec<String> = common.cloned().collect();
        if common.is_empty() {
            let (has, wanted) = (self.aud.clone(), audiences.to_vec());
            return Err(TokenError::Audience { has, wanted });
        }
        Ok(common)
    }

    /// Returns the user that the token authenticates.
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

/// Returns the signing input of a token: header and claims in base64url (RFC 7515 section 5.1).
pub fn signing_input(key_id: &str, claims: &Claims) -> String {
    let header = json!({ "alg": ALGORITHM, "kid": key_id });
    let claims = serde_json::to_vec(claims).expect("texts and numbers are always JSON");
    format!("{}.{}", BASE64URL.encode(header.to_string()), BASE64URL.encode(claims))
}

/// Returns the token made of signing input and signature (R and S, 64 bytes).
pub fn token(signing_input: &str, signature: &[u8]) -> String {
    format!("{signing_input}.{}", BASE64URL.encode(signature))
}

/// Parsed token. Its contents must not be trusted before the signature is verified.
#[derive(Debug)]
pub struct Unverified<'a> {
    /// Signing input: header and claims as received.
    pub signing_input: &'a str,
    /// ID of the signing key.
    pub key_id: String,
    /// Signature: R and S, 64 bytes for ES256.
    pub signature: Vec<u8>,
    claims: Claims,
}

/// Returns true if a bearer token has the form of a JSON Web Token.
pub fn is_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

impl<'a> Unverified<'a> {
    /// Parses a token without verifying it.
    ///
    /// # Errors
    /// Returns [`TokenError::Malformed`] if the token does not have the form of a Tinbox token.
    pub fn parse(token: &'a str) -> Result<Self, TokenError> {
        let bad = |_| TokenError::Malformed;
        let (signing_input, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, claims) = signing_input.split_once('.').ok_or(TokenError::Malformed)?;
        let header = BASE64URL.decode(header).map_err(bad)?;
        let header: Value = serde_json::from_slice(&header).map_err(|_| TokenError::Malformed)?;
        let claims = BASE64URL.decode(claims).map_err(bad)?;
        let signature = BASE64URL.decode(signature).map_err(bad)?;
        if header["alg"] != ALGORITHM || header.get("crit").is_some() {
            return Err(TokenError::Malformed);
        }
        Ok(Self {
            signing_input,
            key_id: header["kid"].as_str().unwrap_or_default().to_owned(),
            signature,
            claims: serde_json::from_slice(&claims).map_err(|_| TokenError::Malformed)?,
        })
    }

    /// Returns the claims. The caller must have verified the signature over
    /// [`Self::signing_input`].
    pub fn verified(self) -> Claims {
        self.claims
    }
}

/// Returns the content of `/.well-known/openid-configuration` (OpenID Connect Discovery 1.0 section
/// 3); `server` is the URL of the box.
pub fn configuration(server: &str) -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{}/openid/v1/jwks", server.trim_end_matches('/')),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    })
}

/// Returns the content of `/openid/v1/jwks` (RFC 7517) for one P-256 key. `point` is the
/// uncompressed public point (65 bytes).
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
