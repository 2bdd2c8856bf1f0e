//! Controller that writes ServiceAccount tokens into Secrets, and deletes Secrets of deleted
//! accounts (kube-controller-manager, `pkg/controller/serviceaccount/tokens_controller.go`).
//!
//! A token is bound to the uids of its account and of its Secret. Deletion of either object makes
//! the token invalid.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rbac::jwt::{Bound, Claims, ObjectRef, Unverified};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{MAX_SECONDS, ServiceAccountTokens};
use resources::builtin::typed_secret::{ACCOUNT_NAME, TOKEN_TYPE};
use resources::engine::{
    DeleteOptions, Engine, InitialEvents, ListOptions, ObjectWatch, Patch, WatchOptions,
    WriteOptions,
};
use resources::object::{is_deleting, meta};
use resources::{FieldSelector, Reason, StatusError};

const SECRETS: &str = "/secrets";
const ACCOUNTS: &str = "/serviceaccounts";
/// Annotation with the uid of the ServiceAccount whose token a Secret contains.
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// Number of Secrets per page of a list.
const PAGE: usize = 200;
/// Delay after an error before the Secrets are processed again.
const RETRY: Duration = Duration::from_secs(1);

/// Controller that writes tokens into the token Secrets of one box.
#[derive(Clone)]
pub(crate) struct TokenSecrets {
    pub engine: Engine,
    pub accounts: ServiceAccountTokens,
    pub ca_pem: String,
}

/// Action of the controller on one Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// No change: the Secret is complete, or waits for its account to be created.
    Keep,
    /// Deletion: the account was deleted, or another account now has its name.
    Delete,
    /// Update: data is missing or belongs to another box. `token` is true if a new token is needed.
    Fill { token: bool },
}

impl TokenSecrets {
    /// Runs the controller until the future is dropped; retries after [`RETRY`] on errors.
    pub async fn run(self) {
        loop {
            if let Err(error) = self.follow().await {
                tracing::warn!(%error, "Secrets with tokens are filled later");
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Processes all Secrets once, and again after every write of a token Secret or an account.
    async fn follow(&self) -> Result<(), StatusError> {
        let mut secrets = self.watch(SECRETS, of_type()?).await?;
        let mut accounts = self.watch(ACCOUNTS, FieldSelector::default()).await?;
        loop {
            self.sweep().await?;
            tokio::select! {
                event = secrets.next() => drop(event?),
                event = accounts.next() => drop(event?),
            }
        }
    }

    async fn watch(
        &self,
        resource: &str,
        fields: FieldSelector,
    ) -> Result<ObjectWatch, StatusError> {
        let initial = InitialEvents::Skip;
        let options = WatchOptions { fields, initial, ..WatchOptions::default() };
        self.engine.watch(resource, None, options).await
    }

    /// Processes every token Secret once.
    pub async fn sweep(&self) -> Result<(), StatusError> {
        let mut token = None;
        loop {
            let page = ListOptions {
                fields: of_type()?,
                limit: PAGE,
                continue_token: token,
                ..ListOptions::default()
            };
            let list = self.engine.list(SECRETS, None, page).await?;
            for secret in &list.items {
                match self.reconcile(secret).await {
                    // Another client wrote or deleted the Secret meanwhile; a watch reports this.
                    Err(error) if !matches!(error.reason, Reason::Conflict | Reason::NotFound) => {
                        let (namespace, name) = (meta(secret, "namespace"), meta(secret, "name"));
                        tracing::warn!(namespace, name, %error, "cannot fill a Secret");
                    }
                    _ => {}
                }
            }
            token = list.continue_token;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    async fn reconcile(&self, secret: &Value) -> Result<(), StatusError> {
        let (namespace, name) = (meta(secret, "namespace"), meta(secret, "name"));
        let account = secret["metadata"]["annotations"][ACCOUNT_NAME].as_str().unwrap_or_default();
        let account = match self.engine.get(ACCOUNTS, namespace, account).await {
            Ok(account) => Some(account),
            Err(error) if error.reason == Reason::NotFound => None,
            Err(error) => return Err(error),
        };
        match (self.decide(secret, account.as_ref()), account) {
            (Step::Keep, _) | (Step::Fill { .. }, None) => Ok(()),
            (Step::Delete, _) => {
                let uid = Some(meta(secret, "uid").to_owned());
                let options = DeleteOptions { uid, ..DeleteOptions::default() };
                self.engine.delete(SECRETS, namespace, name, options).await.map(drop)
            }
            (Step::Fill { token }, Some(account)) => {
                let token = if token { Some(self.token(secret, &account)?) } else { None };
                let patch = Patch::merge(self.filled(secret, &account, token.as_deref()))?;
                let options = WriteOptions::default();
                self.engine.patch(SECRETS, namespace, name, patch, options).await.map(drop)
            }
        }
    }

    fn decide(&self, secret: &Value, account: Option<&Value>) -> Step {
        if is_deleting(secret) {
            return Step::Keep;
        }
        let annotated = secret["metadata"]["annotations"][ACCOUNT_UID].as_str();
        let annotated = annotated.unwrap_or_default();
        let Some(account) = account else {
            return if annotated.is_empty() { Step::Keep } else { Step::Delete };
        };
        let uid = meta(account, "uid");
        if !annotated.is_empty() && annotated != uid {
            return Step::Delete;
        }
        let data = |key: &str| {
            let bytes = STANDARD.decode(secret["data"][key].as_str().unwrap_or_default());
            bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        };
        let token = !self.is_own(&data("token"), meta(secret, "uid"), uid);
        let namespace = meta(secret, "namespace");
        let whole =
            annotated == uid && data("ca.crt") == self.ca_pem && data("namespace") == namespace;
        if token || !whole { Step::Fill { token } } else { Step::Keep }
    }

    /// Returns true if this box issued the token for the uids of Secret and account.
    fn is_own(&self, token: &str, secret: &str, account: &str) -> bool {
        let Ok(unverified) = Unverified::parse(token) else { return false };
        let bound = self.accounts.bound(unverified);
        bound.is_some_and(|bound| {
            bound.serviceaccount.uid == account
                && bound.secret.is_some_and(|named| named.uid == secret)
        })
    }

    fn token(&self, secret: &Value, account: &Value) -> Result<String, StatusError> {
        let named = |object: &Value| ObjectRef {
            name: meta(object, "name").to_owned(),
            uid: meta(object, "uid").to_owned(),
        };
        let bound = Bound {
            namespace: meta(secret, "namespace").to_owned(),
            secret: Some(named(secret)),
            serviceaccount: named(account),
            ..Bound::default()
        };
        let (id, now) = (Uuid::new_v4().to_string(), self.engine.clock().now());
        let audiences = ServiceAccountTokens::audiences();
        self.accounts.issue(&Claims::new(bound, audiences, id, now, MAX_SECONDS))
    }

    /// Returns the patch that writes CA certificate, namespace and `token` into `secret`. The patch
    /// fails if the Secret has changed.
    fn filled(&self, secret: &Value, account: &Value, token: Option<&str>) -> Value {
        let mut data = json!({
            "ca.crt": STANDARD.encode(&self.ca_pem),
            "namespace": STANDARD.encode(meta(secret, "namespace")),
        });
        if let Some(token) = token {
            data["token"] = json!(STANDARD.encode(token));
        }
        let metadata = json!({
            "uid": meta(secret, "uid"),
            "resourceVersion": meta(secret, "resourceVersion"),
            "annotations": { ACCOUNT_UID: meta(account, "uid") },
        });
        json!({ "metadata": metadata, "data": data })
    }
}

fn of_type() -> Result<FieldSelector, StatusError> {
    FieldSelector::parse(&format!("type={TOKEN_TYPE}"))
}

#[cfg(test)]
mod tests;
