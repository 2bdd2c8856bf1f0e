//! HTTP service of one machine whose responses a test decides, for faults that no stock service
//! can produce.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use redfish::{Endpoint, Line, Login, Redfish, Security};

/// Request that the service received.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// Method and path: `GET /redfish/v1/`.
    pub line: String,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Body of the request.
    pub body: String,
}

impl Received {
    /// Returns the value of a header; empty without it.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Response of the service.
pub struct Response {
    /// HTTP status; 0 closes the connection without a response.
    pub status: u16,
    /// Header lines without line ends.
    pub headers: Vec<String>,
    /// Body of the response.
    pub body: String,
}

impl Response {
    /// Response with a status and a body.
    pub fn new(status: u16, body: impl ToString) -> Self {
        Self { status, headers: Vec::new(), body: body.to_string() }
    }

    /// Response with one more header line.
    pub fn with(mut self, header: &str) -> Self {
        self.headers.push(header.to_owned());
        self
    }
}

type Decide = Box<dyn FnMut(&Received) -> Response + Send>;

/// Decisions of a test, and the requests so far.
struct Shared {
    decide: Mutex<Decide>,
    received: Mutex<Vec<Received>>,
}

/// Running service; its thread ends with the test process.
pub struct Service {
    port: u16,
    shared: Arc<Shared>,
}

impl Service {
    /// Starts the service. `decide` returns the response to each request.
    pub fn start(decide: impl FnMut(&Received) -> Response + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let received = Mutex::default();
        let shared = Arc::new(Shared { decide: Mutex::new(Box::new(decide)), received });
        let service = Arc::clone(&shared);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(accept(listener, service));
        });
        Self { port, shared }
    }

    /// Returns the URL of a path of the service.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns a client with this password.
    pub fn client(&self, password: &str) -> Redfish {
        let login = Login { username: "admin".into(), password: password.into(), is_basic: false };
        let endpoint = Endpoint {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            security: Security::Plain,
            login,
            system: String::new(),
        };
        Redfish::new(Arc::new(Line::default()), endpoint)
    }

    /// Returns the requests with this method and path.
    pub fn received(&self, line: &str) -> Vec<Received> {
        let received = self.shared.received.lock().unwrap();
        received.iter().filter(|it| it.line == line).cloned().collect()
    }

    /// Returns the requests so far, oldest first.
    pub fn all(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| respond(request, Arc::clone(&shared)));
        let server = hyper::server::conn::http1::Builder::new();
        // A client may close its connection at any time.
        tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond(
    request: http::Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<http::Response<Full<Bytes>>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let received = Received {
        line: format!("{} {}", head.method, head.uri),
        headers: head.headers,
        body: String::from_utf8(body.into()).unwrap(),
    };
    shared.received.lock().unwrap().push(received.clone());
    let Response { status, headers, body } = (shared.decide.lock().unwrap())(&received);
    if status == 0 {
        return Err(io::Error::other("no response"));
    }
    let mut response = http::Response::builder().status(status);
    for header in &headers {
        let (name, value) = header.split_once(": ").unwrap();
        response = response.header(name, value);
    }
    Ok(response.body(Full::from(body)).unwrap())
}
