//! Tests of Secrets into which the box writes tokens.

use serde_json::json;

use crate::access::{ACCOUNTS, RBAC};
use crate::requests::Client;
use crate::server::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_secret_takes_leave_to_make_tokens() {
    let server = Server::start().await;
    let mut admin = Client::connect(&server).await;
    let rules = json!([{ "verbs": ["create"], "apiGroups": [""], "resources": ["secrets"] }]);
    let role = json!({ "metadata": { "name": "writer" }, "rules": rules });
    assert_eq!(admin.post(&format!("{RBAC}/clusterroles"), &[], role).await.0, 201);
    let capt = json!({ "metadata": { "name": "capt" } });
    assert_eq!(admin.post(ACCOUNTS, &[], capt).await.0, 201);
    let mut writer = Client::connect(&server).await;
    writer.token = admin.account("writer", "writer").await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |name: &str| {
        json!({ "metadata": { "name": name,
            "annotations": { "kubernetes.io/service-account.name": "capt" } },
            "type": "kubernetes.io/service-account-token" })
    };
    let (code, status) = writer.post(secrets, &[], secret("a")).await;
    assert_eq!(code, 403, "{status}");
    let why = "may not create tokens of the ServiceAccount \"capt\"";
    assert!(status["message"].as_str().unwrap().contains(why), "{status}");
    let plain = json!({ "metadata": { "name": "b" } });
    assert_eq!(writer.post(secrets, &[], plain).await.0, 201);
    assert_eq!(admin.post(secrets, &[], secret("a")).await.0, 201);
    server.stop().await;
}
