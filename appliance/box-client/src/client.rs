//! Client of the box's API over one TLS connection.
//!
//! A response is read whole, up to [`BODY_BYTES_MAX`]; only a watch is a stream.

mod api_objects;
mod conditional;
mod console;
mod download;
mod find;
mod path;
mod reach;
mod upload;
mod warning;
mod watch;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::request::Builder;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};

use crate::error::ClientError;
use crate::kubeconfig::Kubeconfig;

pub use api_objects::ApiObjects;
pub use conditional::NewContent;
pub use console::ConsoleOutput;
pub use find::find;
pub use path::{Path, query};
pub use upload::{BackupUpload, UploadContent};
pub use watch::{Watch, WatchEvent};

/// Maximum size of a response, in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;
/// Number of objects per page of a list (`limit`).
const PAGE: usize = 500;
/// Maximum number of objects in one list; a rack has far fewer.
const LIST_MAX: usize = 100_000;
/// Maximum time to connect to the box.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of HTTP/2 pings on an idle connection, and the maximum wait for a reply.
const PING_EVERY: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Body of a request: a document in memory, or a file that is read while it is sent.
type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Receiver of a warning in a response of the box, for the person at the command.
pub type ShowWarning = fn(&str);

/// Client of one box; clones share the connection.
#[derive(Clone)]
pub struct Client {
    show_warning: ShowWarning,
    http: HyperClient<HttpsConnector<HttpConnector>, Body>,
    server: String,
    authorization: HeaderValue,
}

impl Client {
    /// Creates a client for the box of a kubeconfig. Sends no request. `show_warning` receives each
    /// different warning of the box once.
    ///
    /// # Errors
    /// The CA or the token of the kubeconfig cannot be used.
    pub fn new(kubeconfig: &Kubeconfig, show_warning: ShowWarning) -> Result<Client, ClientError> {
        let unusable =
            |why: String| ClientError::Unusable { server: kubeconfig.server.clone(), why };
        let mut roots = RootCertStore::empty();
        for authority in &kubeconfig.authorities {
            roots.add(authority.clone()).map_err(|error| unusable(error.to_string()))?;
        }
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| unusable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_all_versions()
            .wrap_connector(tcp);
        let http = HyperClient::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_EVERY)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .build(connector);
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", kubeconfig.token.expose()))
                .map_err(|_| unusable("the token is not valid in a header".to_owned()))?;
        authorization.set_sensitive(true);
        let server = kubeconfig.server.clone();
        Ok(Client { show_warning, http, server, authorization })
    }

    /// Returns the URL of the box.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads an object or a document.
    pub async fn get(&self, path: &Path) -> Result<Value, ClientError> {
        let what = format!("read {path}");
        self.answer(&what, Method::GET, path, "", None).await
    }

    /// Reads an object or a document; `None` if it does not exist (404).
    pub async fn get_if_any(&self, path: &Path) -> Result<Option<Value>, ClientError> {
        match self.get(path).await {
            Ok(value) => Ok(Some(value)),
            Err(ClientError::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists all objects of a collection. Returns the objects and the revision of the list.
    pub async fn list(
        &self,
        path: &Path,
        selector: &str,
    ) -> Result<(Vec<Value>, String), ClientError> {
        let what = format!("list {path}");
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let query = path::query(&[
                ("limit", &PAGE.to_string()),
                ("fieldSelector", selector),
                ("continue", &token),
            ]);
            let mut page = self.answer(&what, Method::GET, path, &query, None).await?;
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            let metadata = &page["metadata"];
            token = metadata["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() || items.len() > LIST_MAX {
                let revision = metadata["resourceVersion"].as_str().unwrap_or_default();
                return Ok((items, revision.to_owned()));
            }
        }
    }

    /// Creates an object in a collection.
    pub async fn create(&self, path: &Path, object: &Value) -> Result<Value, ClientError> {
        let what = format!("create {path}");
        self.answer(&what, Method::POST, path, "", Some(object)).await
    }

    /// Starts an operation that creates no API object.
    pub async fn post(
        &self,
        path: &Path,
        query: &str,
        order: &Value,
    ) -> Result<Value, ClientError> {
        let what = format!("start {path}");
        self.answer(&what, Method::POST, path, query, Some(order)).await
    }

    /// Replaces an object. If `object` has a `resourceVersion`, it must be the current revision.
    pub async fn replace(&self, path: &Path, object: &Value) -> Result<Value, ClientError> {
        let what = format!("change {path}");
        self.answer(&what, Method::PUT, path, "", Some(object)).await
    }

    /// Changes the fields of an object that `patch` contains (JSON merge patch, RFC 7396).
    pub async fn patch(&self, path: &Path, patch: &Value) -> Result<Value, ClientError> {
        let what = format!("change {path}");
        self.answer(&what, Method::PATCH, path, "", Some(patch)).await
    }

    /// Requests the deletion of an object.
    pub async fn delete(&self, path: &Path, uid: &str) -> Result<Value, ClientError> {
        let what = format!("delete {path}");
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid },
        });
        self.answer(&what, Method::DELETE, path, "", Some(&options)).await
    }

    async fn answer(
        &self,
        what: &str,
        method: Method,
        path: &Path,
        query: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let whole = async { self.read(self.send(method, path, query, body).await?).await };
        let (code, body) = tokio::time::timeout(ANSWER_TIMEOUT, whole)
            .await
            .unwrap_or_else(|_| Err(reach::silent(&self.server)))?;
        read_answer(what, code, &body)
    }

    /// Reads the whole response. Returns the status code and the body.
    async fn read(&self, response: Response<Incoming>) -> Result<(u16, Bytes), ClientError> {
        let code = response.status().as_u16();
        warning::show_new(response.headers(), self.show_warning);
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| reach::broken(&self.server, error.as_ref()))?;
        Ok((code, body.to_bytes()))
    }

    async fn send(
        &self,
        method: Method,
        path: &Path,
        query: &str,
        body: Option<&Value>,
    ) -> Result<Response<Incoming>, ClientError> {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let document = Full::new(body.map(Value::to_string).unwrap_or_default().into());
        let request = self.request(method, path, query, content);
        self.ask(request, document.map_err(|never| match never {}).boxed_unsync()).await
    }

    fn request(&self, method: Method, path: &Path, query: &str, content: &str) -> Builder {
        Request::builder()
            .method(method)
            .uri(format!("{}{}{query}", self.server, path.as_str()))
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("tinbox/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, content)
            .header(AUTHORIZATION, self.authorization.clone())
    }

    async fn ask(&self, request: Builder, body: Body) -> Result<Response<Incoming>, ClientError> {
        let request = request.body(body).map_err(|error| ClientError::Answer {
            what: format!("ask {}", self.server),
            why: error.to_string(),
        })?;
        self.http.request(request).await.map_err(|error| reach::of(&self.server, &error))
    }

    /// Watches a collection across restarts of the box, until the returned watch is dropped.
    pub fn watch(&self, path: Path, selector: String) -> Watch {
        Watch::start(self.clone(), path, selector)
    }
}

/// Parses a response. Returns the object, or the error that the box reported.
fn read_answer(what: &str, code: u16, body: &[u8]) -> Result<Value, ClientError> {
    let read = serde_json::from_slice::<Value>(body);
    if (200..300).contains(&code) {
        let what = what.to_owned();
        return read.map_err(|error| ClientError::Answer { what, why: error.to_string() });
    }
    let status = read.unwrap_or_default();
    let text = |key: &str| status[key].as_str().filter(|text| !text.is_empty());
    let reason = text("reason").unwrap_or_default().to_owned();
    let message = text("message").map_or_else(|| format!("HTTP status {code}"), str::to_owned);
    let (message, hint) = stdx::split_hint(&message);
    let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
    Err(ClientError::Refused { what: what.to_owned(), code, reason, message, hint })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read_answer;

    #[test]
    fn the_hint_of_the_box_is_printed_once() {
        let body = json!({ "reason": "Conflict", "message": "it is busy\nhint: wait a moment" });
        let error = read_answer("create backup", 409, body.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "cannot create backup: it is busy");
        assert_eq!(error.hint("tinbox").as_deref(), Some("wait a moment"));
    }
}
