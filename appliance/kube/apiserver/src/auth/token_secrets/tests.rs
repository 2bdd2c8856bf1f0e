use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use stdx::TestClock;
use store::{Options, Store};
use tempfile::TempDir;

use super::{ACCOUNT_NAME, ACCOUNTS, SECRETS, STANDARD, TOKEN_TYPE, TokenSecrets};
use crate::auth::{ServiceAccountTokens, SigningKey};
use base64::Engine as _;
use resources::engine::{DeleteOptions, Engine, WriteOptions};
use resources::{Reason, builtin};

struct Bench {
    secrets: TokenSecrets,
    folder: TempDir,
}

impl Bench {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
        let clock = TestClock::at("2026-11-20T10:00:00Z".parse::<Timestamp>().unwrap());
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(clock));
        engine.ensure_permanent().await.unwrap();
        let accounts = ServiceAccountTokens::new(SigningKey::ensure(folder.path()).unwrap());
        Self { secrets: TokenSecrets { engine, accounts, ca_pem: "CA".to_owned() }, folder }
    }

    async fn create(&self, resource: &str, object: Value) {
        let options = WriteOptions::default();
        self.secrets.engine.create(resource, "default", object, options).await.unwrap();
    }

    async fn account(&self) {
        self.create(ACCOUNTS, json!({ "metadata": { "name": "capt" } })).await;
    }

    async fn secret(&self) {
        let metadata = json!({ "name": "t", "annotations": { ACCOUNT_NAME: "capt" } });
        self.create(SECRETS, json!({ "metadata": metadata, "type": TOKEN_TYPE })).await;
    }

    /// Returns the Secret after one pass of the controller.
    async fn swept(&self) -> Result<Value, resources::StatusError> {
        self.secrets.sweep().await.unwrap();
        self.secrets.engine.get(SECRETS, "default", "t").await
    }

    async fn user(&self, secret: &Value) -> Result<String, String> {
        let token = STANDARD.decode(secret["data"]["token"].as_str().unwrap()).unwrap();
        let token = String::from_utf8(token).unwrap();
        let audiences = ServiceAccountTokens::audiences();
        let known = self.secrets.accounts.user(&self.secrets.engine, &token, &audiences).await;
        known.map(|(user, _)| user.name)
    }

    async fn delete(&self, resource: &str, name: &str) {
        let options = DeleteOptions::default();
        self.secrets.engine.delete(resource, "default", name, options).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_secret_is_filled_and_ends_with_its_account() {
    let made = Bench::new().await;
    made.secret().await;
    // The Secret may be created before its account.
    assert!(made.swept().await.unwrap()["data"]["token"].is_null());
    made.account().await;
    let filled = made.swept().await.unwrap();
    assert_eq!(filled["data"]["ca.crt"], STANDARD.encode("CA"));
    assert_eq!(filled["data"]["namespace"], STANDARD.encode("default"));
    assert_eq!(made.user(&filled).await.unwrap(), "system:serviceaccount:default:capt");
    // A filled Secret stays unchanged.
    assert_eq!(made.swept().await.unwrap(), filled);
    made.delete(ACCOUNTS, "capt").await;
    assert!(made.user(&filled).await.is_err());
    // A new account with the same name does not get the old account's Secret.
    made.account().await;
    assert_eq!(made.swept().await.unwrap_err().reason, Reason::NotFound);
}

#[tokio::test]
async fn a_token_ends_with_its_secret() {
    let made = Bench::new().await;
    made.account().await;
    made.secret().await;
    let filled = made.swept().await.unwrap();
    made.delete(SECRETS, "t").await;
    assert!(made.user(&filled).await.is_err());
    made.secret().await;
    assert!(made.user(&filled).await.is_err());
    let again = made.swept().await.unwrap();
    assert!(made.user(&again).await.is_ok());
}

#[tokio::test]
async fn a_token_of_another_box_is_made_anew() {
    let mut made = Bench::new().await;
    made.account().await;
    made.secret().await;
    let filled = made.swept().await.unwrap();
    let other = made.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    made.secrets.accounts = ServiceAccountTokens::new(SigningKey::ensure(&other).unwrap());
    assert!(made.user(&filled).await.is_err());
    let again = made.swept().await.unwrap();
    assert!(made.user(&again).await.is_ok());
}
