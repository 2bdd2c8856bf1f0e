//! Tests of OpenAPI documents, and of bodies in other formats than JSON.

use http::Response;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::json;

use crate::requests::{Client, HARDWARE};
use crate::server::Server;

const SWAGGER: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_sent_once() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let (code, index) = client.json("GET", "/openapi/v3", &[], "").await;
    assert_eq!(code, 200);
    let address = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let first = client.send("GET", &address, &[(ACCEPT_ENCODING, "gzip")], "").await;
    let header = |response: &Response<Incoming>, name: &str| {
        response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(header(&first, "content-encoding").as_deref(), Some("gzip"));
    assert!(header(&first, "cache-control").unwrap().contains("immutable"));
    let tag = header(&first, "etag").unwrap();
    first.into_body().collect().await.unwrap();
    let again = client.send("GET", &address, &[(IF_NONE_MATCH, &tag)], "").await;
    assert_eq!(again.status(), 304);
    again.into_body().collect().await.unwrap();
    let (code, plain) = client.json("GET", "/openapi/v3/api/v1", &[], "").await;
    assert_eq!((code.as_u16(), &plain["openapi"]), (200, &json!("3.0.0")));
    let old = client.send("GET", "/openapi/v3/api/v1?hash=0", &[], "").await;
    assert_eq!((old.status().as_u16(), header(&old, "location")), (301, Some(address)));
    old.into_body().collect().await.unwrap();
    for (accept, code, form) in [
        ("application/json", 200, "application/json"),
        (SWAGGER, 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"),
        ("text/html", 406, "application/json"),
    ] {
        let response = client.send("GET", "/openapi/v2", &[(ACCEPT, accept)], "").await;
        assert_eq!(response.status(), code, "{accept}");
        assert_eq!(header(&response, "content-type").as_deref(), Some(form), "{accept}");
        response.into_body().collect().await.unwrap();
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_kubernetes_own_kinds_may_be_protobuf() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" }, "data": { "k": "dg==" },
    });
    let body = kube_protobuf::encode(&secret).unwrap();
    let protobuf = [(CONTENT_TYPE, "application/vnd.kubernetes.protobuf")];
    let secrets = "/api/v1/namespaces/default/secrets";
    let (code, created) = client.json("POST", secrets, &protobuf, body.clone()).await;
    assert_eq!((code.as_u16(), &created["data"]), (201, &json!({ "k": "dg==" })), "{created}");
    let (code, _) = client.json("POST", HARDWARE, &protobuf, body).await;
    assert_eq!(code, 415);
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"] });
    let options = kube_protobuf::encode(&options).unwrap();
    let one = format!("{secrets}/s");
    assert_eq!(client.json("DELETE", &one, &protobuf, options).await.0, 200);
    assert_eq!(client.json("GET", &one, &[], "").await.0, 200);
    server.stop().await;
}
