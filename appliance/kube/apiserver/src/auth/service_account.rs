//! ServiceAccount tokens, which are valid only while their ServiceAccount exists.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rbac::User;
use rbac::jwt::{self, Bound, Claims, ISSUER, ObjectRef, TokenError, Unverified};
use serde_json::Value;

use super::SigningKey;
use resources::engine::Engine;
use resources::{Reason, StatusError};

/// Time for which a token stays valid after the deletionTimestamp of its account or Secret: the
/// permitted clock difference.
const DELETION_LEEWAY: SignedDuration = jwt::LEEWAY;
/// Maximum lifetime of a token, in seconds.
pub(crate) const MAX_SECONDS: i64 = 1 << 32;

/// Issuer and verifier of the ServiceAccount tokens of one box; clones share the key.
#[derive(Clone)]
pub struct ServiceAccountTokens {
    key: Arc<SigningKey>,
}

impl ServiceAccountTokens {
    /// Makes an issuer that signs with `key`.
    pub fn new(key: SigningKey) -> Self {
        Self { key: Arc::new(key) }
    }

    /// Returns the audiences of this API, which are also the default for issued tokens.
    pub fn audiences() -> Vec<String> {
        vec![ISSUER.to_owned()]
    }

    /// Returns the document `/openid/v1/jwks` with the public key.
    pub fn key_set(&self) -> Value {
        jwt::key_set(self.key.id(), self.key.public_point())
    }

    /// Returns a signed token with `claims`.
    ///
    /// # Errors
    /// 500 if the token cannot be signed.
    pub fn issue(&self, claims: &Claims) -> Result<String, StatusError> {
        let input = jwt::signing_input(self.key.id(), claims);
        let signature = self.key.sign(input.as_bytes()).ok_or_else(|| {
            StatusError::new(Reason::InternalError, "Internal error occurred: cannot sign a token")
        })?;
        Ok(jwt::token(&input, &signature))
    }

    fn is_signed(&self, unverified: &Unverified<'_>) -> bool {
        unverified.key_id == self.key.id()
            && self.key.verifies(unverified.signing_input.as_bytes(), &unverified.signature)
    }

    /// Returns the objects that a token is bound to; `None` if another key signed the token.
    pub(super) fn bound(&self, unverified: Unverified<'_>) -> Option<Bound> {
        self.is_signed(&unverified).then(|| unverified.verified().kubernetes)
    }

    /// Verifies a token. Returns its user, and the members of `audiences` for which the token is
    /// valid. The account and the Secret of the token must still exist with the same uids.
    ///
    /// # Errors
    /// Returns the reason for a refusal, for a TokenReview. A client that authenticates with the
    /// token gets no reason.
    pub async fn user(
        &self,
        engine: &Engine,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), String> {
        let text = |refused: TokenError| refused.to_string();
        let unverified = Unverified::parse(token).map_err(text)?;
        if !self.is_signed(&unverified) {
            return Err(text(TokenError::Malformed));
        }
        let claims = unverified.verified();
        let now = engine.clock().now();
        let audiences = claims.check(now, audiences).map_err(text)?;
        check_bound(engine, &claims.kubernetes, now).await?;
        Ok((claims.user(), audiences))
    }
}

async fn check_bound(engine: &Engine, bound: &Bound, now: Timestamp) -> Result<(), String> {
    let gone = "service account token has been invalidated";
    let account = &bound.serviceaccount;
    let found = engine.get("/serviceaccounts", &bound.namespace, &account.name).await;
    let found = found.map_err(|error| error.to_string())?;
    let is = found["metadata"]["uid"].as_str().unwrap_or_default();
    if is != account.uid {
        let claimed = &account.uid;
        return Err(format!("service account UID ({is}) does not match claim ({claimed})"));
    }
    if is_deleted(&found, now) {
        return Err(format!(
            "service account {}/{} has been deleted",
            bound.namespace, account.name
        ));
    }
    if let Some(secret) = &bound.secret {
        let found = engine.get("/secrets", &bound.namespace, &secret.name).await;
        let found = found.map_err(|_| gone.to_owned())?;
        if !is_the_one(&found, secret) || is_deleted(&found, now) {
            return Err(gone.to_owned());
        }
    }
    // The box issues no tokens bound to pods or nodes, and has neither.
    if bound.pod.is_some() || bound.node.is_some() {
        return Err(gone.to_owned());
    }
    Ok(())
}

fn is_the_one(object: &Value, named: &ObjectRef) -> bool {
    object["metadata"]["uid"].as_str() == Some(named.uid.as_str())
}

fn is_deleted(object: &Value, now: Timestamp) -> bool {
    let at = object["metadata"]["deletionTimestamp"].as_str();
    let Some(at) = at.map(|at| at.parse::<Timestamp>().ok()) else { return false };
    // An unreadable time also counts as a deletion.
    at.is_none_or(|at| now.duration_since(at) > DELETION_LEEWAY)
}
