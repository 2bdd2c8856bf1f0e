//! Renewal of a ServiceAccount's token, which the box keeps in the Secret of the kubeconfig.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::core::SECRET;
use api::management_cluster::KUBECONFIG_KEY;
use api::meta::ObjectKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use objects::{ObjectError, Objects};
use stdx::{Hint as _, Secret, chain};
use tokio::time::Instant;

use crate::management::credential::{TokenClaims, with_token};
use crate::remote::RemoteObjects;

/// Minimum time between two attempts. A clock of the box that is wrong makes each token due.
const INTERVAL: Duration = Duration::from_secs(300);

/// State of the token of one connection.
pub struct Renewal {
    secret: ObjectKey,
    kubeconfig: Secret,
    /// `None` for a credential that the box cannot renew.
    claims: Option<TokenClaims>,
    /// Kubeconfig with the last new token, for the task that detects changes of the Secret.
    renewed: Arc<Mutex<Option<Secret>>>,
    tried: Option<Instant>,
    error: Option<String>,
}

impl Renewal {
    /// Creates the state from the kubeconfig in the Secret and its token.
    pub fn new(
        secret: ObjectKey,
        kubeconfig: Secret,
        token: Option<&Secret>,
        renewed: Arc<Mutex<Option<Secret>>>,
    ) -> Self {
        let claims = token.and_then(TokenClaims::read);
        Self { secret, kubeconfig, claims, renewed, tried: None, error: None }
    }

    /// Returns the time at which the token expires.
    pub fn expires(&self) -> Option<Timestamp> {
        self.claims.as_ref().map(|claims| claims.expires)
    }

    /// Returns the error of the last attempt; `None` after a success.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Renews the token if it is due.
    pub async fn step(&mut self, remote: &RemoteObjects, objects: &dyn Objects, now: Timestamp) {
        let Some(claims) = self.claims.clone().filter(|claims| claims.is_due(now)) else { return };
        if self.tried.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        self.tried = Some(Instant::now());
        match self.renew(&claims, remote, objects).await {
            Ok(()) => {
                self.error = None;
                tracing::info!(account = %claims.account, "the token was renewed");
            }
            Err(error) => {
                let hint = error.hint();
                tracing::warn!(account = %claims.account, %error, hint, "cannot renew the token");
                self.error = Some(chain(&error));
            }
        }
    }

    async fn renew(
        &mut self,
        claims: &TokenClaims,
        remote: &RemoteObjects,
        objects: &dyn Objects,
    ) -> Result<(), ObjectError> {
        let token = remote.request_token(&claims.account, claims.lifetime()).await?;
        let unusable = |why: &str| ObjectError::Internal(why.to_owned());
        let new_claims = TokenClaims::read(&token);
        let new_claims = new_claims.ok_or_else(|| unusable("the new token has no end"))?;
        let kubeconfig = with_token(&self.kubeconfig, &token);
        let kubeconfig = kubeconfig.ok_or_else(|| unusable("the kubeconfig has no token"))?;
        let mut secret = objects.get(SECRET, &self.secret).await?;
        let encode = |text: &Secret| STANDARD.encode(text.expose());
        // A kubeconfig that a person wrote meanwhile stays; the connection restarts with it.
        if secret["data"][KUBECONFIG_KEY] != encode(&self.kubeconfig) {
            return Err(ObjectError::Conflict(format!("Secret {}", self.secret)));
        }
        secret["data"][KUBECONFIG_KEY] = encode(&kubeconfig).into();
        objects.update(SECRET, secret).await?;
        remote.set_token(&token);
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(kubeconfig.clone());
        self.kubeconfig = kubeconfig;
        self.claims = Some(new_claims);
        Ok(())
    }
}
