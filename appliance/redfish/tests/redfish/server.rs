//! HTTP service of one machine whose responses a test decides, for faults that no stock service
//! can produce.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use redfish::{Endpoint, Line, Login, Redfish, Security};
use stdx::testing::PATIENCE;

/// Request that the service received.
#[derive(Debug, Clone, Default)]
pub struct Received {
    /// Method and path: `GET /redfish/v1/`.
    pub line: String,
    /// Headers in lower case, one per line.
    pub headers: String,
    /// Body of the request.
    pub body: String,
}

impl Received {
    /// Returns the value of a header; empty without it.
    pub fn header(&self, name: &str) -> &str {
        let mut pairs = self.headers.lines().filter_map(|line| line.split_once(": "));
        pairs.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
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

/// Running service; its thread ends with the test process.
pub struct Service {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Service {
    /// Starts the service. `decide` returns the response to each request.
    pub fn start(decide: impl FnMut(&Received) -> Response + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let record = Arc::clone(&received);
        let mut decide: Decide = Box::new(decide);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client may close its connection at any time.
                let _ = serve(stream, &record, &mut decide);
            }
        });
        Self { port, received }
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
        let received = self.received.lock().unwrap();
        received.iter().filter(|it| it.line == line).cloned().collect()
    }

    /// Returns the requests so far, oldest first.
    pub fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    record: &Mutex<Vec<Received>>,
    decide: &mut Decide,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let received = read(&stream)?;
    record.lock().unwrap().push(received.clone());
    let Response { status, headers, body } = decide(&received);
    if status == 0 {
        return Ok(());
    }
    let length = body.len();
    let mut head = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n");
    for header in headers.iter().map(String::as_str).chain(["Connection: close"]) {
        head += &format!("{header}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())
}

fn read(stream: &TcpStream) -> io::Result<Received> {
    let mut reader = BufReader::new(stream);
    let mut received = Received::default();
    let mut line = String::new();
    reader.read_line(&mut line)?;
    received.line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        let (name, value) = line.trim_end().split_once(':').unwrap_or_default();
        received.headers += &format!("{}: {}\n", name.to_ascii_lowercase(), value.trim());
    }
    let length = received.header("content-length").parse().unwrap_or_default();
    reader.take(length).read_to_string(&mut received.body)?;
    Ok(received)
}
