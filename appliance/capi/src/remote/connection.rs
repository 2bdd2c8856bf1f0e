//! Connection to the API server of a management cluster: one HTTP client with limits for time and
//! sizes. Requests over HTTP/2 share one TCP connection, whose loss pings detect.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::{Stream, TryStreamExt as _};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use kube::client::middleware::BaseUriLayer;
use resolver::ConnectorNames;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use stdx::Secret;
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::io::StreamReader;
use tower::ServiceBuilder;

use super::failure::{self, Failure, Subject};
use super::kubeconfig::{ClientCertificate, Kubeconfig, KubeconfigError};
use super::server_clock::ServerClock;

/// Maximum time of a TCP connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time from a request to the end of its response, or to the start of a watch. Longer than
/// [`CONNECT_TIMEOUT`] and the 10 s that a webhook may need.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of HTTP/2 pings while a request or a watch is open, as in client-go.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum wait for the answer to a ping, as in client-go.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Time after which an unused connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum unused connections to a server without HTTP/2.
const IDLE_MAX: usize = 4;
/// Maximum size of a response. The largest is a page of a list.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum size of an error response.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of an event of a watch. etcd limits an object to 1.5 MiB, binary data in JSON needs
/// a third more.
const LINE_BYTES_MAX: usize = 3 * 1024 * 1024;
const TOO_LARGE: &str = "the response is larger than 16 MiB";
/// Namespace that kube requires; every request here names its own.
const DEFAULT_NAMESPACE: &str = "default";
/// Name of the client in the server's audit log.
const USER_AGENT: &str = concat!("tinbox/", env!("CARGO_PKG_VERSION"));

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Lines of a watch.
pub type Lines = Pin<Box<dyn Stream<Item = Result<String, LinesCodecError>> + Send>>;

/// HTTP client of one API server; clones share its connections.
#[derive(Clone)]
pub struct Connection {
    client: kube::Client,
    authorization: Arc<RwLock<Option<HeaderValue>>>,
    clock: ServerClock,
}

impl Connection {
    /// Creates a client. The first request connects.
    ///
    /// # Errors
    /// The client certificate does not match its key.
    ///
    /// # Panics
    /// The caller is not inside a Tokio runtime.
    pub fn new(kubeconfig: &Kubeconfig) -> Result<Self, KubeconfigError> {
        let mut tcp = HttpConnector::new_with_resolver(ConnectorNames);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let mut connector =
            HttpsConnectorBuilder::new().with_tls_config(tls(kubeconfig)?).https_only();
        if let Some(name) = &kubeconfig.server_name {
            connector =
                connector.with_server_name_resolver(FixedServerNameResolver::new(name.clone()));
        }
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_MAX)
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .build::<_, Body>(connector.enable_all_versions().wrap_connector(tcp));
        // kube's own stack retries requests and logs each failure as an error.
        let service = ServiceBuilder::new()
            .layer(BaseUriLayer::new(kubeconfig.server.clone()))
            .map_err(BoxError::from)
            .service(client);
        let client = kube::Client::new(service, DEFAULT_NAMESPACE);
        let authorization = kubeconfig.token.as_ref().and_then(authorization);
        let authorization = Arc::new(RwLock::new(authorization));
        Ok(Self { client, authorization, clock: ServerClock::default() })
    }

    /// Creates a connection that sends its requests through `client`.
    #[cfg(test)]
    pub fn of(client: kube::Client) -> Self {
        Self { client, authorization: Arc::default(), clock: ServerClock::default() }
    }

    /// Returns the clock of the server.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// Uses another token from the next request on, in all clones.
    pub fn set_token(&self, token: &Secret) {
        let mut current = self.authorization.write().unwrap_or_else(PoisonError::into_inner);
        *current = authorization(token);
    }

    /// Sends a request and reads the JSON of its response.
    ///
    /// # Errors
    /// The server cannot be reached, or does not answer with success and JSON.
    pub async fn call(
        &self,
        subject: &Subject,
        request: Request<Vec<u8>>,
    ) -> Result<Value, Failure> {
        let exchange = async {
            let response = self.send(subject, request).await?;
            let limited = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
            limited.map_err(|error| match error.is::<LengthLimitError>() {
                true => subject.unavailable(TOO_LARGE, None).into(),
                false => failure::of_transport(subject, error.as_ref()).into(),
            })
        };
        let body = timeout(REQUEST_TIMEOUT, exchange).await;
        let body = body.unwrap_or_else(|_| Err(silent(subject)))?.to_bytes();
        serde_json::from_slice(&body).map_err(|_| {
            let start = String::from_utf8_lossy(&body);
            failure::of_unexpected(subject, "JSON", &start).into()
        })
    }

    /// Sends the request of a watch, and returns its lines.
    ///
    /// # Errors
    /// The server cannot be reached, or does not answer with success.
    pub async fn watch(
        &self,
        subject: &Subject,
        request: Request<Vec<u8>>,
    ) -> Result<Lines, Failure> {
        let response = timeout(REQUEST_TIMEOUT, self.send(subject, request)).await;
        let response = response.unwrap_or_else(|_| Err(silent(subject)))?;
        let bytes = response.into_body().into_data_stream().map_err(std::io::Error::other);
        let codec = LinesCodec::new_with_max_length(LINE_BYTES_MAX);
        Ok(Box::pin(FramedRead::new(StreamReader::new(bytes), codec)))
    }

    /// Sends a request, and converts an error response.
    async fn send(
        &self,
        subject: &Subject,
        mut request: Request<Vec<u8>>,
    ) -> Result<Response<Body>, Failure> {
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let authorization =
            self.authorization.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(value) = authorization {
            headers.insert(header::AUTHORIZATION, value);
        }
        let response = self.client.send(request.map(Body::from)).await;
        let response = response.map_err(|error| match error {
            kube::Error::Service(error) => failure::of_transport(subject, error.as_ref()),
            error => failure::of_transport(subject, &error),
        })?;
        self.clock.read(response.headers());
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let body = Limited::new(response.into_body(), ERROR_BYTES_MAX).collect().await;
        // A body that cannot be read leaves the status code, which alone never means "not found".
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        Err(failure::of_response(subject, code, &body))
    }
}

fn silent(subject: &Subject) -> Failure {
    let why = format!("no answer in {REQUEST_TIMEOUT:?}");
    failure::of_silence(subject, &why).into()
}

/// Returns the status code in a `Status` of a watch.
pub fn code(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Creates the TLS configuration. kube's own also links code for programs and files that a
/// kubeconfig names. TLS 1.2 is enabled for load balancers in front of API servers.
fn tls(kubeconfig: &Kubeconfig) -> Result<ClientConfig, KubeconfigError> {
    let invalid = |why: String| KubeconfigError::Invalid {
        field: kubeconfig.user.clone(),
        why,
        hint: "create the client certificate again",
    };
    let mut roots = RootCertStore::empty();
    let authorities = kubeconfig.authorities.iter().map(|der| CertificateDer::from(der.clone()));
    let (good, _) = roots.add_parsable_certificates(authorities);
    if good == 0 {
        return Err(KubeconfigError::Invalid {
            field: "certificate-authority-data".to_owned(),
            why: "expected X.509 certificates".to_owned(),
            hint: "take the CA of the API server from a kubeconfig that works",
        });
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| invalid(error.to_string()))?
        .with_root_certificates(roots);
    let Some(ClientCertificate { chain, key }) = &kubeconfig.certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = chain.iter().map(|der| CertificateDer::from(der.clone())).collect();
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes());
    let key = key.map_err(|_| invalid("client-key-data is not a PEM private key".to_owned()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| invalid(error.to_string()))
}

/// Returns the value of the `Authorization` header, which is never printed.
fn authorization(token: &Secret) -> Option<HeaderValue> {
    let token = Secret::from(format!("Bearer {}", token.expose()));
    let mut value = HeaderValue::from_str(token.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
