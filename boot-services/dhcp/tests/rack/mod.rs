//! Network namespaces with a box and a client on one wire, and the service running in the box's.
//! Needs root: without it the first `ip` command fails, and says so.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dhcp::{Config, Directory, Gate, LeaseFile, Netboot, Observer, Reservation, Seen};
use stdx::MacAddr;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub mod networkd;

pub const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a program that must succeed.
pub fn sh(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{line}` failed (these tests need root): {error}");
}

/// Waits until `ready` says something, with a limit.
pub fn wait_for<T>(what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(start.elapsed() < limit, "waited {limit:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Two namespaces and a wire: `box0` with 10.77.0.1 in one, `nuc0` in the other.
pub struct Wire {
    pub box_space: String,
    pub rack_space: String,
}

impl Wire {
    pub fn new() -> Self {
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let wire =
            Self { box_space: format!("dhcp-box-{name}"), rack_space: format!("dhcp-rack-{name}") };
        let (b, r) = (&wire.box_space, &wire.rack_space);
        sh(&format!(
            "ip netns add {b}; ip netns add {r}
             ip -n {r} link add nuc0 address {MAC} type veth peer name box0 netns {b}
             ip -n {b} addr add {SERVER}/24 dev box0
             ip netns exec {b} sh -c 'echo 0 > /proc/sys/net/ipv6/conf/box0/accept_dad'
             ip -n {b} link set lo up; ip -n {b} link set box0 up; ip -n {r} link set nuc0 up"
        ));
        wire.wait_for_carrier();
        wire
    }

    /// The kernel drops what is sent on an interface that it has not yet found to be up.
    fn wait_for_carrier(&self) {
        for (space, interface) in [(&self.box_space, "box0"), (&self.rack_space, "nuc0")] {
            wait_for("the wire's carrier", Duration::from_secs(30), || {
                let state = Command::new("ip")
                    .args(["-n", space, "-oneline", "link", "show", interface, "up"])
                    .output()
                    .unwrap();
                String::from_utf8_lossy(&state.stdout).contains(" state UP ").then_some(())
            });
        }
    }

    /// A command to be run on the rack's side.
    pub fn rack(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.rack_space, program]);
        command
    }

    /// Starts a thread inside the box's namespace.
    pub fn in_box<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let space = File::open(format!("/run/netns/{}", self.box_space)).unwrap();
        std::thread::spawn(move || {
            let network = rustix::thread::LinkNameSpaceType::Network;
            rustix::thread::move_into_link_name_space(space.as_fd(), Some(network)).unwrap();
            work()
        })
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for space in [&self.box_space, &self.rack_space] {
            let _ = Command::new("ip").args(["netns", "del", space]).status();
        }
    }
}

/// What was seen, and when.
#[derive(Default)]
pub struct Story(Mutex<Vec<(Instant, Seen)>>);

impl Story {
    pub fn all(&self) -> Vec<Seen> {
        self.0.lock().unwrap().iter().map(|(_, seen)| seen.clone()).collect()
    }

    /// When the first such thing was seen.
    pub fn first(&self, is: impl Fn(&Seen) -> bool) -> Option<Instant> {
        self.0.lock().unwrap().iter().find(|(_, seen)| is(seen)).map(|(at, _)| *at)
    }
}

impl Observer for Story {
    fn seen(&self, seen: Seen) {
        self.0.lock().unwrap().push((Instant::now(), seen));
    }
}

struct One(Reservation);

impl Directory for One {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        (mac == self.0.mac).then(|| self.0.clone())
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.0.fixed.is_some_and(|fixed| fixed.address == address)
    }
}

pub fn machine(netboot: Netboot) -> Reservation {
    Reservation {
        hostname: Some("nuc-01".to_owned()),
        gateway: Some(SERVER),
        name_servers: vec![SERVER, Ipv4Addr::new(9, 9, 9, 9)],
        time_servers: vec![SERVER],
        domain_name: Some("rack.example".to_owned()),
        lease_secs: 7200,
        netboot,
        ..Reservation::new(MAC, ADDRESS, Ipv4Addr::new(255, 255, 255, 0))
    }
}

/// `dhcp::Service` in the box's namespace, until dropped.
pub struct Service {
    pub story: Arc<Story>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<Result<(), dhcp::Error>>>,
}

impl Service {
    pub fn start(wire: &Wire, machine: Reservation) -> Self {
        Self::with(wire, machine, Config::new("box0", SERVER))
    }

    pub fn with(wire: &Wire, machine: Reservation, config: Config) -> Self {
        Self::keeping(wire, machine, config, None)
    }

    /// A service that keeps its leases in the file at `path`.
    pub fn keeping(wire: &Wire, machine: Reservation, config: Config, path: Option<&Path>) -> Self {
        let leases = path.map(|path| Arc::new(LeaseFile::open(path).unwrap()) as Arc<_>);
        let story = Arc::new(Story::default());
        let shutdown = CancellationToken::new();
        let (seen, stop) = (Arc::clone(&story), shutdown.clone());
        let thread = wire.in_box(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(
                async {
                    let (_config, config) = watch::channel(config);
                    let (_gate, gate) = watch::channel(Gate::Open);
                    let directory = Arc::new(One(machine));
                    let service = dhcp::Service {
                        config,
                        gate,
                        directory,
                        observer: seen,
                        leases,
                        checker: None,
                        bound: watch::Sender::new(0),
                    };
                    service.run(stop).await
                },
            )
        });
        Self { story, shutdown, thread: Some(thread) }
    }

    /// Waits until it listens.
    pub fn listens(&self, wire: &Wire) {
        wait_for("UDP port 67", Duration::from_secs(10), || {
            let sockets = Command::new("ip")
                .args(["netns", "exec", &wire.box_space, "cat", "/proc/net/udp"])
                .output()
                .unwrap();
            String::from_utf8_lossy(&sockets.stdout).contains(":0043 ").then_some(())
        });
    }

    /// Stops the service and gives its result.
    pub fn stop(mut self) -> Result<(), dhcp::Error> {
        self.shutdown.cancel();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for the service to end by itself.
    pub fn ended(mut self) -> Result<(), dhcp::Error> {
        let thread = self.thread.take().unwrap();
        wait_for("the service to end", Duration::from_secs(30), || {
            thread.is_finished().then_some(())
        });
        thread.join().unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Requests a boot file server got, and when.
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

/// A TFTP server (RFC 1350, with `tsize` and `blksize`, which EDK2 insists on) for one file of
/// `/usr/lib/ipxe`; any other is not found. It lives until the test's process ends.
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
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
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

/// RFC 2347: only what was asked for is acknowledged.
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

/// Sends until the other side acknowledges.
fn delivered(socket: &UdpSocket, packet: &[u8], number: [u8; 2]) -> bool {
    let mut buffer = [0; 1500];
    for _ in 0..5 {
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

/// An HTTP server on port 7080 that has nothing: it writes requests down and answers 404.
/// It lives until the test's process ends.
pub fn http(wire: &Wire) -> Requests {
    let requests = Requests::default();
    let log = requests.clone();
    wire.in_box(move || {
        let listener = TcpListener::bind((SERVER, 7080)).unwrap();
        for client in listener.incoming() {
            let _ = refuse(client.unwrap(), &log);
        }
    });
    requests
}

fn refuse(mut client: TcpStream, log: &Requests) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(5)))?;
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
