//! Credentials for registries that require a user.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stdx::Secret;

/// Credentials of the box for a registry.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// Required. User name at the registry.
    pub username: String,
    /// Required. Password of the user, or an access token.
    pub password: Secret,
}

impl Credentials {
    /// Returns the `Authorization` field of RFC 7617.
    pub(crate) fn basic(&self) -> String {
        let pair = format!("{}:{}", self.username, self.password.expose());
        format!("Basic {}", STANDARD.encode(pair))
    }
}
