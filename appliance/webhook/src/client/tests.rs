use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap as Headers, StatusCode as Status};
use axum::response::IntoResponse;
use axum::routing::any;
use bytes::Bytes;
use http::{HeaderMap, Method};

use super::{BODY_BYTES_MAX, Call, Client, Login, Tls, url};
use crate::Error;

/// Logins of the requests.
type Logins = Arc<Mutex<Vec<String>>>;

const CHALLENGE: &str = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256";

/// Notes the login of each request. `/digest` and `/basic` ask for a login of this kind.
async fn answer(
    State(seen): State<Logins>,
    uri: axum::http::Uri,
    headers: Headers,
) -> impl IntoResponse {
    let login = headers.get("authorization").map(|it| it.to_str().unwrap().to_owned());
    seen.lock().unwrap().push(login.clone().unwrap_or_default());
    let asks = |challenge| (Status::UNAUTHORIZED, [("www-authenticate", challenge)], Bytes::new());
    let has = |scheme: &str| login.as_deref().is_some_and(|it| it.starts_with(scheme));
    match uri.path() {
        "/digest" if !has("Digest ") => asks(CHALLENGE),
        "/basic" if !has("Basic ") => asks("Basic realm=\"r\""),
        "/moved" => (Status::FOUND, [("location", "/ok")], Bytes::new()),
        "/large" => (Status::OK, [("x", "y")], Bytes::from(vec![b'x'; BODY_BYTES_MAX + 1])),
        _ => (Status::OK, [("x", "y")], Bytes::from_static(b"done")),
    }
}

async fn server() -> (String, Logins) {
    let seen = Logins::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(any(answer)).with_state(Arc::clone(&seen));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (base, seen)
}

async fn send(base: &str, path: &str, client: &Client) -> Result<Bytes, Error> {
    let uri = url("host", &format!("{base}{path}")).unwrap();
    let (method, headers, body) = (Method::GET, HeaderMap::new(), Bytes::new());
    client.send(&Call { method, uri, headers, body, what: "state".to_owned() }).await
}

fn client(login: Login) -> Client {
    Client::new(Tls::Verified, login).unwrap()
}

#[tokio::test]
async fn a_digest_uses_its_nonce_again_and_counts() {
    let (base, seen) = server().await;
    let client = client(Login::Digest("admin".into(), "s3cret".into()));
    for _ in 0..2 {
        assert_eq!(send(&base, "/digest", &client).await.unwrap(), "done");
    }
    let seen = seen.lock().unwrap();
    let [first, second, third] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(first, "");
    assert!(second.contains("nc=00000001,") && third.contains("nc=00000002,"), "{seen:?}");
}

#[tokio::test]
async fn a_server_that_offers_only_basic_gets_no_password_of_a_digest() {
    let (base, seen) = server().await;
    let digest = client(Login::Digest("admin".into(), "s3cret".into()));
    let refused = send(&base, "/basic", &digest).await.unwrap_err();
    assert!(matches!(refused, Error::Login { .. }) && refused.refuses_login(), "{refused:?}");
    assert_eq!(*seen.lock().unwrap(), [""]);
    let basic = client(Login::Basic("admin".into(), "s3cret".into()));
    send(&base, "/basic", &basic).await.unwrap();
    assert_eq!(seen.lock().unwrap()[1], "Basic YWRtaW46czNjcmV0");
}

#[tokio::test]
async fn redirects_are_not_followed_and_large_answers_not_read() {
    let (base, seen) = server().await;
    let client = client(Login::Bearer("t0ken".into()));
    let moved = send(&base, "/moved", &client).await.unwrap_err();
    assert!(matches!(moved, Error::Status { status: Status::FOUND, .. }), "{moved:?}");
    assert!(send(&base, "/large", &client).await.is_err());
    assert_eq!(*seen.lock().unwrap(), ["Bearer t0ken", "Bearer t0ken"]);
    let unreachable = send("http://127.0.0.1:1", "/", &client).await.unwrap_err();
    assert!(unreachable.is_transient(), "{unreachable:?}");
}
