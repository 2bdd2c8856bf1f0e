//! The Kubernetes-compatible API: kubectl, controllers and GitOps tools read and write the box's
//! objects as in a cluster.
//!
//! Never: decides about an object (`resources` has the rules), reads a wall clock of its own, shows
//! an object to an unauthenticated user, logs a token or a body.
//!
//! Enter at [`router`]; a request passes `filters` → `handlers` → [`resources::Engine`].
//!
//! Not served yet: protobuf responses (protobuf request bodies are accepted), conversion between
//! versions by webhook, admission webhooks.

pub mod auth;
mod budget;
mod failure;
mod filters;
mod handlers;
mod openapi;
mod reviews;
mod serve;
#[cfg(test)]
mod tests {
    mod untrusted_input;
}
mod version;
mod wire;

pub use auth::{
    AdminAccess, AdminTokens, Authenticator, Error, Pki, ServiceAccountTokens, SigningKey,
    TokenError, TokenInfo,
};
pub use budget::ByteLimits;
pub use failure::failure;
pub use filters::{AuthConfig, Authorizer, BODIES, Peer, READS, RESPONSES, WATCHES, WRITES};
pub use handlers::router;
pub use rbac::User;
pub use serve::{UNAUTHENTICATED, serve};
pub use wire::Decoded;
