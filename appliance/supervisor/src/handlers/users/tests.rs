use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use axum::body::{Body, to_bytes};
use axum::http::Request;
use box_owner::PrivateFiles;
use serde_json::Value;
use stdx::SystemClock;
use tower::ServiceExt as _;

use super::*;

const FROM: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

#[derive(Default)]
struct Files(std::sync::Mutex<HashMap<String, Vec<u8>>>);

impl PrivateFiles for Files {
    fn load(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(name).cloned())
    }
    fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().insert(name.to_owned(), content.to_vec());
        Ok(())
    }
}

fn owner() -> Arc<Owner> {
    Arc::new(Owner::open(Arc::<Files>::default(), Arc::new(SystemClock)).unwrap())
}

/// Returns code and body of the response to a request such as `POST /jane`.
async fn ask(owner: &Arc<Owner>, line: &str, body: Value) -> (u16, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let request = Request::builder()
        .method(method)
        .uri(format!("{ROOT}{path}"))
        .header("content-type", "application/merge-patch+json")
        .body(Body::from(body.to_string()))
        .unwrap();
    let answer = router(Arc::clone(owner)).oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
    (code, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_user_is_added_changed_and_removed() {
    let owner = owner();
    let jane = user("jane", "operator", "correct horse");
    let (code, early) = ask(&owner, "POST ", jane.clone()).await;
    assert_eq!((code, early["reason"].as_str()), (409, Some("Conflict")), "{early}");
    owner.claim(&owner.code().unwrap().0, "the owner's own", FROM).unwrap();

    let (code, added) = ask(&owner, "POST ", jane.clone()).await;
    let expected = json!({ "name": "jane", "role": "operator", "sshKeys": 0, "owner": false });
    assert_eq!((code, &added), (201, &expected));
    assert!(owner.enter("jane", "correct horse", FROM).is_ok());
    let (code, again) = ask(&owner, "POST ", jane).await;
    assert_eq!((code, again["reason"].as_str()), (409, Some("AlreadyExists")));

    let change = json!({ "role": "viewer", "passphrase": "battery staple" });
    let (code, changed) = ask(&owner, "PATCH /jane", change).await;
    assert_eq!((code, changed["role"].as_str()), (200, Some("viewer")));
    assert!(owner.enter("jane", "correct horse", FROM).is_err());
    assert!(owner.enter("jane", "battery staple", FROM).is_ok());
    let (_, all) = ask(&owner, "GET ", json!(null)).await;
    let users = all["users"].as_array().unwrap().iter();
    let names: Vec<&str> = users.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["owner", "jane"]);
    assert!(!all.to_string().contains("battery"), "{all}");

    assert_eq!(ask(&owner, "DELETE /jane", json!(null)).await.0, 200);
    assert_eq!(ask(&owner, "DELETE /jane", json!(null)).await.0, 404);
}

fn user(name: &str, role: &str, passphrase: &str) -> Value {
    json!({ "name": name, "role": role, "passphrase": passphrase })
}

#[tokio::test]
async fn a_request_that_is_not_valid_changes_nothing() {
    let owner = owner();
    owner.claim(&owner.code().unwrap().0, "the owner's own", FROM).unwrap();
    for (line, body, code) in [
        ("POST ", user("Jane", "viewer", "correct horse"), 422),
        ("POST ", user("jane", "king", "correct horse"), 422),
        ("POST ", user("jane", "viewer", "short"), 422),
        ("POST ", user("owner", "viewer", "correct horse"), 409),
        ("POST ", json!({ "name": "jane" }), 400),
        ("PATCH /owner", json!({ "role": "viewer" }), 404),
        ("PATCH /jane", json!({ "role": "viewer" }), 404),
        ("PATCH /owner", json!({ "rank": "viewer" }), 400),
        ("DELETE /owner", json!(null), 404),
    ] {
        let (found, answer) = ask(&owner, line, body.clone()).await;
        assert_eq!(found, code, "{line} {body}: {answer}");
    }
    assert_eq!(owner.users().len(), 1);
}
