//! Network namespaces with a box and a client on one veth pair, and the service in the box's.

use std::fs::File;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dhcp::{Config, DhcpEvent, Directory, LeaseFile, Netboot, Observer, Reservation, ServeMode};
use stdx::MacAddr;
use stdx::testing::{Wait, until};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub mod networkd;
pub mod servers;

pub const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs a shell command; panics if it fails.
pub fn sh(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{line}` failed (these tests need root): {error}");
}

/// Maximum time to wait for an emulated machine: fifteen times its time on a quiet test machine.
pub const BOOT: Duration = Duration::from_secs(480);

/// Polls like `stdx::testing::wait_for`, with the limit [`BOOT`].
pub fn wait_for_boot<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let wait = Wait::limited(what, BOOT);
    loop {
        if let Some(value) = ready() {
            return value;
        }
        std::thread::sleep(wait.pause());
    }
}

/// Script that reads names of namespaces and, at the end of its input, removes them with all their
/// processes. The input ends with the test, even if the test is killed.
const WARDEN: &str = "while read -r space; do spaces=\"$spaces $space\"; done
for space in $spaces; do
  ip netns pids $space | xargs -r kill -KILL
  ip netns del $space
done";

/// Two namespaces and a veth pair: `box0` with 10.77.0.1 in one, `nuc0` in the other.
pub struct Wire {
    pub box_space: String,
    pub rack_space: String,
    name: String,
    warden: Child,
}

impl Wire {
    pub fn new() -> Self {
        let name = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let warden = Command::new("sh")
            .args(["-c", WARDEN])
            // Signals to the test's process group do not reach the warden.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (box_space, rack_space) = (String::new(), String::new());
        let mut wire = Self { box_space, rack_space, name, warden };
        wire.box_space = wire.space("box");
        wire.rack_space = wire.space("rack");
        let (b, r) = (&wire.box_space, &wire.rack_space);
        sh(&format!(
            "ip -n {r} link add nuc0 address {MAC} type veth peer name box0 netns {b}
             ip -n {b} addr add {SERVER}/24 dev box0
             ip netns exec {b} sh -c 'echo 0 > /proc/sys/net/ipv6/conf/box0/accept_dad'
             ip -n {b} link set lo up; ip -n {b} link set box0 up; ip -n {r} link set nuc0 up"
        ));
        wire.wait_for_carrier();
        wire
    }

    /// Adds a namespace, which is removed together with the wire.
    pub fn space(&self, kind: &str) -> String {
        let space = format!("dhcp-{kind}-{}", self.name);
        let mut warden = self.warden.stdin.as_ref().unwrap();
        warden.write_all(format!("{space}\n").as_bytes()).unwrap();
        sh(&format!("ip netns add {space}"));
        space
    }

    /// Waits until both interfaces are up: before, the kernel drops packets sent on them.
    fn wait_for_carrier(&self) {
        for (space, interface) in [(&self.box_space, "box0"), (&self.rack_space, "nuc0")] {
            until("the wire's carrier", || {
                let state = Command::new("ip")
                    .args(["-n", space, "-oneline", "link", "show", interface, "up"])
                    .output()
                    .unwrap();
                String::from_utf8_lossy(&state.stdout).contains(" state UP ")
            });
        }
    }

    /// Returns a command that runs in the rack's namespace.
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
        inside(&self.box_space, work)
    }

    /// Starts a thread inside the rack's namespace.
    pub fn in_rack<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        inside(&self.rack_space, work)
    }
}

fn inside<T: Send + 'static>(
    space: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let space = File::open(format!("/run/netns/{space}")).unwrap();
    std::thread::spawn(move || {
        let network = rustix::thread::LinkNameSpaceType::Network;
        rustix::thread::move_into_link_name_space(space.as_fd(), Some(network)).unwrap();
        work()
    })
}

impl Drop for Wire {
    fn drop(&mut self) {
        drop(self.warden.stdin.take());
        let _ = self.warden.wait();
    }
}

/// Waits until a program in a namespace listens at DHCP's server port.
pub fn wait_for_server(space: &str) {
    until("UDP port 67", || {
        let sockets = Command::new("ip")
            .args(["netns", "exec", space, "cat", "/proc/net/udp"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&sockets.stdout).contains(":0043 ")
    });
}

/// Observer that records all events with their times.
#[derive(Default)]
pub struct EventLog(Mutex<Vec<(Instant, DhcpEvent)>>);

impl EventLog {
    pub fn all(&self) -> Vec<DhcpEvent> {
        self.0.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }

    /// Waits until the newest entry is `expected`: the service reports an answer after it has sent
    /// the answer.
    pub fn ends_with(&self, expected: &DhcpEvent) {
        until(&format!("{expected:?}"), || self.all().last() == Some(expected));
    }

    /// Returns the time of the first matching event.
    pub fn first(&self, is: impl Fn(&DhcpEvent) -> bool) -> Option<Instant> {
        self.0.lock().unwrap().iter().find(|(_, event)| is(event)).map(|(at, _)| *at)
    }
}

impl Observer for EventLog {
    fn observe(&self, event: DhcpEvent) {
        self.0.lock().unwrap().push((Instant::now(), event));
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

/// Runs `dhcp::Service` in the box's namespace until dropped.
pub struct Service {
    pub events: Arc<EventLog>,
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

    /// Starts a service with its leases in the file at `path`, if any.
    pub fn keeping(wire: &Wire, machine: Reservation, config: Config, path: Option<&Path>) -> Self {
        let (_open, serve_mode) = watch::channel(ServeMode::Open);
        let leases = path.map(|path| LeaseFile::open(path).unwrap());
        Self::with_mode(wire, machine, config, leases, serve_mode)
    }

    /// Starts a service with this serving state.
    pub fn with_mode(
        wire: &Wire,
        machine: Reservation,
        config: Config,
        leases: Option<LeaseFile>,
        serve_mode: watch::Receiver<ServeMode>,
    ) -> Self {
        let leases = leases.map(|leases| Arc::new(leases) as Arc<_>);
        let events = Arc::new(EventLog::default());
        let shutdown = CancellationToken::new();
        let (observer, stop) = (Arc::clone(&events), shutdown.clone());
        let thread = wire.in_box(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(
                async {
                    let (_config, config) = watch::channel(config);
                    let directory = Arc::new(One(machine));
                    let service = dhcp::Service {
                        config,
                        serve_mode,
                        directory,
                        observer,
                        leases,
                        checker: None,
                        counts: watch::Sender::new(dhcp::LeaseCounts::default()),
                    };
                    service.run(stop).await
                },
            )
        });
        Self { events, shutdown, thread: Some(thread) }
    }

    /// Waits until the service listens.
    pub fn listens(&self, wire: &Wire) {
        wait_for_server(&wire.box_space);
    }

    /// Stops the service and returns its result.
    pub fn stop(mut self) -> Result<(), dhcp::Error> {
        self.shutdown.cancel();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits for the service to end by itself.
    pub fn ended(mut self) -> Result<(), dhcp::Error> {
        let thread = self.thread.take().unwrap();
        until("the service to end", || thread.is_finished());
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
