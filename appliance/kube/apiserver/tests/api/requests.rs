//! Tests of HTTP requests and responses, byte by byte where kubectl hides details.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::server::{PATIENCE, Server};

pub const HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";

/// HTTP/1.1 client connection that trusts only the server's own CA.
pub struct Client {
    sender: http1::SendRequest<Full<Bytes>>,
    /// Token for every request without its own credentials.
    pub token: String,
}

impl Client {
    pub async fn connect(server: &Server) -> Self {
        Self::connect_as(server, None).await
    }

    /// Connects with a client certificate.
    pub async fn connect_as(
        server: &Server,
        certificate: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    ) -> Self {
        let (sender, connection) =
            http1::handshake(TokioIo::new(secure(server, certificate, &[]).await)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, token: server.token.clone() }
    }

    pub async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(http::HeaderName, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Incoming> {
        let mut request = Request::builder().method(method).uri(path).header("host", "box");
        if !headers.iter().any(|(name, _)| name == AUTHORIZATION) {
            request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        self.sender.ready().await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.sender.send_request(request));
        answer.await.expect("an answer in time").unwrap()
    }

    pub async fn json(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(http::HeaderName, &str)],
        body: impl Into<Bytes>,
    ) -> (StatusCode, Value) {
        let response = self.send(method, path, headers, body).await;
        let code = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub async fn create(&mut self, name: &str) -> Value {
        let body = json!({ "metadata": { "name": name }, "spec": {} }).to_string();
        let (code, object) = self.json("POST", HARDWARE, &[], body).await;
        assert_eq!(code, 201, "{object}");
        object
    }
}

/// Opens a TLS connection that trusts only the server's own CA.
pub async fn secure(
    server: &Server,
    certificate: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
    protocols: &[&[u8]],
) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match certificate {
        Some((certificate, key)) => config.with_client_auth_cert(vec![certificate], key).unwrap(),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let socket = TcpStream::connect(server.address()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_unknown_gets_in() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let nobody = [(AUTHORIZATION, "")];
    for path in ["/version", "/healthz", "/livez", "/readyz", "/readyz/store"] {
        let (code, _) = client.json("GET", path, &nobody, "").await;
        assert_eq!(code, 200, "{path}");
    }
    for path in ["/", "/api", "/apis", HARDWARE, "/apis/tinbox.dev/v1alpha1/hello", "/openapi/v3"] {
        for token in ["", "Bearer wrong", "Basic YWRtaW46YWRtaW4="] {
            let (code, status) = client.json("GET", path, &[(AUTHORIZATION, token)], "").await;
            assert_eq!((code.as_u16(), &status["reason"]), (401, &json!("Unauthorized")), "{path}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_the_right_codes() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    client.create("a").await;
    let protobuf = [(CONTENT_TYPE, "application/vnd.kubernetes.protobuf")];
    let strategic = [(CONTENT_TYPE, "application/strategic-merge-patch+json")];
    let merge = [(CONTENT_TYPE, "application/merge-patch+json")];
    let html = [(ACCEPT, "text/html")];
    let object = format!("{HARDWARE}/a");
    let deep = "[".repeat(200);
    let table: [(&str, &str, &[_], &str, u16); 20] = [
        ("POST", HARDWARE, &[], "{", 400),
        ("POST", HARDWARE, &[], "", 400),
        ("POST", HARDWARE, &[], &deep, 400),
        ("POST", HARDWARE, &protobuf, "k8s", 415),
        ("PATCH", &object, &strategic, "{}", 415),
        ("PATCH", &object, &[], "{}", 415),
        ("PATCH", &object, &merge, "[]", 400),
        ("PATCH", &format!("{object}/status"), &merge, "{}", 200),
        ("PATCH", &format!("{object}/scale"), &merge, "{}", 404),
        ("GET", &object, &html, "", 406),
        ("GET", &format!("{object}?resourceVersion=99999"), &[], "", 504),
        ("GET", &format!("{HARDWARE}?labelSelector=a%20b"), &[], "", 400),
        ("GET", &format!("{HARDWARE}?watch=1&sendInitialEvents=true"), &[], "", 422),
        ("GET", &format!("{HARDWARE}?watch=1&resourceVersion=99999"), &[], "", 504),
        ("PUT", HARDWARE, &[], "{}", 405),
        ("POST", "/apis/tinkerbell.org/v1alpha1/hardware", &[], "{}", 404),
        ("POST", "/api/v1/secrets", &[], "{}", 405),
        ("POST", "/api", &[], "{}", 405),
        ("GET", "/apis/tinkerbell.org/v1alpha1/hardware/a", &[], "", 404),
        ("GET", "/openapi/v1", &[], "", 404),
    ];
    for (method, path, headers, body, expected) in table {
        let (code, status) = client.json(method, path, headers, body.to_owned()).await;
        assert_eq!(code, expected, "{method} {path}: {status}");
        if expected != 200 {
            assert_eq!(status["kind"], "Status", "{method} {path}");
            assert_eq!(status["code"], expected);
        }
    }
    // Sent last, because the server need not read the rest of a body that is too large.
    let large = Bytes::from(vec![b' '; 3 * 1024 * 1024 + 1]);
    let (code, _) = client.json("POST", HARDWARE, &[], large).await;
    assert_eq!(code, 413);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_come_in_the_form_asked_for() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    for name in ["a", "b", "c"] {
        client.create(name).await;
    }
    let (_, page) = client.json("GET", &format!("{HARDWARE}?&limit=2"), &[], "").await;
    assert_eq!(page["kind"], "HardwareList");
    assert_eq!(page["apiVersion"], "tinkerbell.org/v1alpha1");
    assert_eq!(page["items"][0]["kind"], "Hardware");
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let next = format!("{HARDWARE}?limit=2&continue={token}");
    let (_, page) = client.json("GET", &next, &[], "").await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let metadata = [(ACCEPT, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")];
    let (_, list) = client.json("GET", HARDWARE, &metadata, "").await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert!(list["items"][0].get("spec").is_none());
    let table = [(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let path = format!("{HARDWARE}?includeObject=Object");
    let (_, table) = client.json("GET", &path, &table, "").await;
    assert_eq!(table["rows"][2]["cells"], json!(["c", null]));
    assert_eq!(table["rows"][2]["object"]["kind"], "Hardware");
    let (code, gone) = client.json("DELETE", &format!("{HARDWARE}/a"), &[], "{}").await;
    assert_eq!((code.as_u16(), &gone["status"]), (200, &json!("Success")));
    assert_eq!(gone["details"]["name"], "a");
    let (_, list) = client.json("DELETE", &format!("{HARDWARE}?&labelSelector="), &[], "").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    server.stop().await;
}

/// Reads the next line of a watch.
pub async fn event(body: &mut Incoming) -> Option<Value> {
    let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("an event in time");
    let data = frame?.unwrap().into_data().unwrap();
    assert_eq!(data.last(), Some(&b'\n'));
    Some(serde_json::from_slice(&data).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_streams_ends_and_resumes() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let mut watching = Client::connect(&server).await;
    client.create("a").await;
    let path = format!("{HARDWARE}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1");
    let mut body = watching.send("GET", &path, &[], "").await.into_body();
    let first = event(&mut body).await.unwrap();
    assert_eq!((&first["type"], &first["object"]["kind"]), (&json!("ADDED"), &json!("Hardware")));
    // The last event is a bookmark with the revision; then the body ends without an error.
    let mut last = event(&mut body).await.unwrap();
    assert_eq!(last["type"], "BOOKMARK");
    assert!(event(&mut body).await.is_none());
    let second = client.create("b").await;
    let revision = last["object"]["metadata"]["resourceVersion"].take();
    let revision = revision.as_str().unwrap();
    let path = format!("{HARDWARE}?watch=1&resourceVersion={revision}");
    let mut body = watching.send("GET", &path, &[], "").await.into_body();
    let resumed = event(&mut body).await.unwrap();
    assert_eq!(resumed, json!({ "type": "ADDED", "object": second }));
    // Changes arrive while the stream is open.
    let (code, _) = client.json("DELETE", &format!("{HARDWARE}/a"), &[], "").await;
    assert_eq!(code, 200);
    let deleted = event(&mut body).await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["metadata"]["name"], "a");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_engine_writes_is_what_clients_read() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let object = json!({ "metadata": { "name": "inside" }, "spec": { "agentID": "x" } });
    let options = resources::WriteOptions::default();
    let resource = "tinkerbell.org/hardware";
    let created = server.engine.create(resource, "default", object, options).await.unwrap();
    let (_, read) = client.json("GET", &format!("{HARDWARE}/inside"), &[], "").await;
    assert_eq!(read, created);
    server.stop().await;
}
