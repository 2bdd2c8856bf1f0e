//! Credential of a connection: the end of its token, and the token that follows.

use std::time::Duration;

use api::meta::ObjectKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use stdx::Secret;

/// Prefix of the user name of a ServiceAccount: `system:serviceaccount:NAMESPACE:NAME`.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// Shortest lifetime that the TokenRequest API accepts.
const LIFETIME_MIN: Duration = Duration::from_secs(600);

/// Claims of a ServiceAccount's token (JWT, RFC 7519), read without a check of its signature: the
/// API server checks the token, and the box only reads its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenClaims {
    /// Namespace and name of the ServiceAccount.
    pub account: ObjectKey,
    /// Time at which the token was issued, by the clock of the management cluster.
    pub issued: Timestamp,
    /// Time at which the token expires, by the clock of the management cluster.
    pub expires: Timestamp,
}

#[derive(Deserialize)]
struct RawClaims {
    sub: String,
    iat: i64,
    exp: i64,
}

impl TokenClaims {
    /// Reads the claims; `None` for a token that is not of a ServiceAccount or does not expire.
    pub fn read(token: &Secret) -> Option<Self> {
        let payload = token.expose().split('.').nth(1)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let raw: RawClaims = serde_json::from_slice(&payload).ok()?;
        let (namespace, name) = raw.sub.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
        Some(Self {
            account: ObjectKey::new(namespace, name),
            issued: Timestamp::from_second(raw.iat).ok()?,
            expires: Timestamp::from_second(raw.exp).ok()?,
        })
    }

    /// Returns the lifetime of the token, which the next token gets too.
    pub fn lifetime(&self) -> Duration {
        let lifetime = self.expires.duration_since(self.issued);
        Duration::try_from(lifetime).unwrap_or_default().max(LIFETIME_MIN)
    }

    /// Returns true if it is time for the next token: half of the lifetime is over. The other half
    /// is left for retries during an outage of the management cluster.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let half = SignedDuration::try_from(self.lifetime() / 2).unwrap_or_default();
        now >= self.issued.saturating_add(half).unwrap_or(Timestamp::MAX)
    }
}

/// Returns a kubeconfig with another token for the user of its current context; all other fields
/// stay. `None` if the text is not a kubeconfig with a token.
pub fn with_token(kubeconfig: &Secret, token: &Secret) -> Option<Secret> {
    let mut document: Value = serde_saphyr::from_str(kubeconfig.expose()).ok()?;
    let current = document["current-context"].clone();
    let named = |list: &'static str, name: &Value, document: &Value| {
        document[list].as_array()?.iter().position(|entry| entry["name"] == *name)
    };
    let context = named("contexts", &current, &document)?;
    let user = document["contexts"][context]["context"]["user"].clone();
    let user = named("users", &user, &document)?;
    let stored = document.pointer_mut(&format!("/users/{user}/user/token"))?;
    *stored = token.expose().into();
    serde_json::to_string_pretty(&document).ok().map(Secret::from)
}

#[cfg(test)]
pub mod tests {
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jiff::Timestamp;
    use serde_json::{Value, json};
    use stdx::Secret;

    use super::{TokenClaims, with_token};

    /// Returns a token without a valid signature.
    pub fn token(issued: i64, expires: i64) -> Secret {
        let claims = json!({
            "iss": "https://kubernetes.default.svc",
            "sub": "system:serviceaccount:tinbox-pairing:tinbox-a",
            "iat": issued,
            "exp": expires,
        });
        Secret::from(format!("e30.{}.AA", URL_SAFE_NO_PAD.encode(claims.to_string())))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_is_renewed_after_half_of_its_lifetime() {
        let claims = TokenClaims::read(&token(10_000, 13_600)).unwrap();
        assert_eq!(claims.account.to_string(), "tinbox-pairing/tinbox-a");
        assert_eq!(claims.lifetime(), Duration::from_secs(3600));
        assert!(!claims.is_due(at(0)));
        assert!(!claims.is_due(at(11_799)));
        assert!(claims.is_due(at(11_800)));
        assert!(claims.is_due(at(20_000)));
    }

    #[test]
    fn other_tokens_have_no_claims() {
        let subject = json!({ "sub": "jane", "iat": 1, "exp": 2 }).to_string();
        let endless = json!({ "sub": "system:serviceaccount:a:b", "iat": 1 }).to_string();
        let encode = |text: &str| format!("e30.{}.AA", URL_SAFE_NO_PAD.encode(text));
        for text in ["", "opaque", "a.b.c", "a.!.c", &encode(&subject), &encode(&endless)] {
            assert_eq!(TokenClaims::read(&Secret::from(text)), None, "{text}");
        }
        let wrong = TokenClaims::read(&token(5, i64::MAX));
        assert_eq!(wrong, None);
        // A lifetime that is negative or shorter than the API accepts.
        assert_eq!(TokenClaims::read(&token(9, 3)).unwrap().lifetime().as_secs(), 600);
    }

    #[test]
    fn only_the_token_changes() {
        let old = "current-context: c\nextra: {a: 1}\nclusters: []\ncontexts:\n- name: c\n  \
                   context: {cluster: m, user: u}\nusers:\n- name: other\n  user: {token: x}\n- \
                   name: u\n  user: {token: old, note: z}\n";
        let new = with_token(&Secret::from(old), &Secret::from("new")).unwrap();
        let new: Value = serde_json::from_str(new.expose()).unwrap();
        assert_eq!(new["users"][1]["user"], json!({ "token": "new", "note": "z" }));
        assert_eq!(new["users"][0]["user"]["token"], "x");
        assert_eq!(new["extra"]["a"], 1);
        let certificate = Secret::from(old.replace("token: old", "a: b"));
        assert_eq!(with_token(&certificate, &Secret::from("new")), None);
        assert_eq!(with_token(&Secret::from("[]"), &Secret::from("new")), None);
    }
}
