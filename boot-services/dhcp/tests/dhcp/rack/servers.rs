//! Boot file servers in the box's namespace. They run until the test's process ends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stdx::testing::PATIENCE;

use super::{SERVER, Wire};

/// Time after which a TFTP packet is sent again.
const RESEND: Duration = Duration::from_secs(1);

/// Requests that a boot file server received, with their times.
#[derive(Clone, Default)]
pub struct Requests(Arc<Mutex<Vec<(Instant, String)>>>);

impl Requests {
    fn push(&self, request: String) {
        self.0.lock().unwrap().push((Instant::now(), request));
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, request)| request.clone()).collect()
    }

    pub fn first(&self, request: &str) -> Option<Instant> {
        self.0.lock().unwrap().iter().find(|(_, got)| got == request).map(|(at, _)| *at)
    }
}

/// Starts a TFTP server (RFC 1350, with `tsize` and `blksize`, which EDK2 requires) for one file of
/// `/usr/lib/ipxe`; any other file is not found.
pub fn tftp(wire: &Wire, name: &'static str) -> Requests {
    let requests = Requests::default();
    let log = requests.clone();
    wire.in_box(move || {
        let listener = UdpSocket::bind((SERVER, 69)).unwrap();
        let mut buffer = [0; 1500];
        loop {
            let (length, client) = listener.recv_from(&mut buffer).unwrap();
            if buffer[..2] != [0, 1] {
                continue;
            }
            let request = String::from_utf8_lossy(&buffer[2..length]).into_owned();
            let words: Vec<&str> = request.split('\0').collect();
            log.push(words[0].to_owned());
            let socket = UdpSocket::bind((SERVER, 0)).unwrap();
            socket.set_read_timeout(Some(RESEND)).unwrap();
            socket.connect(client).unwrap();
            if words[0] == name {
                let content = std::fs::read(format!("/usr/lib/ipxe/{name}"))
                    .expect("the package ipxe provides the loaders");
                let asked = |option| {
                    let at = words.iter().position(|word| *word == option)?;
                    words.get(at + 1).copied()
                };
                send_file(&socket, &content, asked("blksize"), asked("tsize").is_some());
            } else {
                socket.send(b"\0\x05\0\x01File not found\0").unwrap();
            }
        }
    });
    requests
}

/// Sends a file. Acknowledges only requested options (RFC 2347).
fn send_file(socket: &UdpSocket, content: &[u8], size: Option<&str>, tell_length: bool) {
    let length = content.len();
    let mut options = "\0\x06".to_owned();
    if let Some(size) = size {
        options += &format!("blksize\0{size}\0");
    }
    if tell_length {
        options += &format!("tsize\0{length}\0");
    }
    if options.len() > 2 && !delivered(socket, options.as_bytes(), [0, 0]) {
        return;
    }
    let size = size.map_or(512, |size| size.parse().unwrap());
    let end: &[u8] = &[];
    let end = length.is_multiple_of(size).then_some(end);
    for (index, block) in content.chunks(size).chain(end).enumerate() {
        let number = (index as u16).wrapping_add(1).to_be_bytes();
        if !delivered(socket, &[&[0, 3], &number[..], block].concat(), number) {
            return;
        }
    }
}

/// Sends a packet until the client acknowledges it; returns false after [`PATIENCE`].
fn delivered(socket: &UdpSocket, packet: &[u8], number: [u8; 2]) -> bool {
    let mut buffer = [0; 1500];
    let begun = Instant::now();
    while begun.elapsed() <= PATIENCE {
        if socket.send(packet).is_err() {
            return false;
        }
        match socket.recv(&mut buffer) {
            Ok(4) if buffer[..4] == [0, 4, number[0], number[1]] => return true,
            Ok(_) if buffer[1] == 5 => return false,
            _ => {}
        }
    }
    false
}

/// Starts an HTTP server on port 7080 that records requests and answers each with 404.
pub fn http(wire: &Wire) -> Requests {
    let requests = Requests::default();
    let log = requests.clone();
    wire.in_box(move || {
        let listener = TcpListener::bind((SERVER, 7080)).unwrap();
        for client in listener.incoming() {
            let (client, log) = (client.unwrap(), log.clone());
            std::thread::spawn(move || {
                // A client that disconnects sends its request again on another connection.
                let _ = refuse(client, &log);
            });
        }
    });
    requests
}

fn refuse(mut client: TcpStream, log: &Requests) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut buffer)? {
            0 => return Ok(()),
            length => request.extend_from_slice(&buffer[..length]),
        }
    }
    let line = String::from_utf8_lossy(&request);
    log.push(line.split(" HTTP/").next().unwrap_or_default().to_owned());
    client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}
