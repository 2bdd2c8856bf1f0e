//! Tests the watch with real DHCP servers (dnsmasq) where no other server should be.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dhcp::foreign::{Config, Foreign, Hold, Neighbor, Permit, Role, Start, State, watch};
use dhcp::{DhcpEvent, Netboot, ServeMode};
use stdx::testing::{until, wait_for};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::rack::{self, MAC, SERVER, Service, Wire, sh};

mod capture;

use capture::Capture;

const ROGUE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 66);
/// Duration of a probe.
const PROBE: Duration = Duration::from_secs(10);
/// Maximum time from another server's first OFFER to the box's last OFFER.
const SILENT: Duration = Duration::from_secs(1);
/// Interval of requests, which is long enough that the service answers all of them.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Bridge at the far end of the wire, with another port for a foreign server.
struct Segment {
    wire: Wire,
    rogue_space: String,
}

impl Segment {
    fn new() -> Self {
        let wire = Wire::new();
        let rogue_space = wire.space("rogue");
        let rack = &wire.rack_space;
        sh(&format!(
            "ip -n {rack} link add br0 type bridge stp_state 0 forward_delay 0
             ip -n {rack} link set nuc0 master br0
             ip -n {rack} link add port0 type veth peer name eth0 netns {rogue_space}
             ip -n {rack} link set port0 master br0
             ip -n {rack} addr add 10.77.0.5/24 dev br0
             ip -n {rogue_space} addr add {ROGUE}/24 dev eth0
             ip -n {rack} link set br0 up; ip -n {rack} link set port0 up
             ip -n {rogue_space} link set lo up; ip -n {rogue_space} link set eth0 up"
        ));
        Self { wire, rogue_space }
    }

    /// Starts a server that answers all clients, and waits until the server listens.
    fn rogue(&self) -> Rogue {
        let process = Command::new("ip")
            .args(["netns", "exec", &self.rogue_space, "dnsmasq", "--keep-in-foreground"])
            .args(["--conf-file=/dev/null", "--port=0", "--interface=eth0", "--no-ping"])
            .args(["--dhcp-range=10.77.0.100,10.77.0.199,1h", "--leasefile-ro", "--user=root"])
            .args(["--pid-file=", "--dhcp-authoritative"])
            .stderr(Stdio::null())
            .spawn()
            .expect("ip (iproute2) and dnsmasq (dnsmasq-base) are installed");
        rack::wait_for_server(&self.rogue_space);
        Rogue(process)
    }

    /// Starts a machine that broadcasts requests until it is dropped.
    fn asking(&self) -> Asking {
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = self.wire.in_rack(move || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 68)).unwrap();
            socket.set_broadcast(true).unwrap();
            // Bound to the device, because there is no route for broadcasts.
            socket2::SockRef::from(&socket).bind_device(Some(b"br0")).unwrap();
            let mut discover = vec![0; 300];
            discover[..3].copy_from_slice(&[1, 1, 6]);
            discover[10] = 0x80;
            discover[28..34].copy_from_slice(&MAC.0);
            discover[236..244].copy_from_slice(&[99, 130, 83, 99, 53, 1, 1, 255]);
            while !ends.load(Ordering::Relaxed) {
                socket.send_to(&discover, (Ipv4Addr::BROADCAST, 67)).unwrap();
                std::thread::sleep(ASK_EVERY);
            }
        });
        Asking { over, thread: Some(thread) }
    }
}

struct Asking {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Rogue(Child);

impl Drop for Rogue {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

type States = Arc<Mutex<Vec<(Instant, State)>>>;

/// Runs `watch` in the box's namespace until dropped.
struct Watch {
    started: Instant,
    states: States,
    serve_mode: tokio::sync::watch::Receiver<ServeMode>,
    rearm: Arc<Notify>,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<Result<(), dhcp::Error>>>,
}

impl Watch {
    fn start(segment: &Segment, role: Role, start: Start, record: Option<PathBuf>) -> Self {
        let interface = "box0".to_owned();
        let config =
            Config { interface, role, start, servers: vec![SERVER], macs: Vec::new(), record };
        let (sender, mut receiver) = tokio::sync::watch::channel(State::default());
        let (modes, serve_mode) = tokio::sync::watch::channel(ServeMode::Closed);
        let states = States::default();
        let (rearm, shutdown) = (Arc::new(Notify::new()), CancellationToken::new());
        let (seen, again, stop) = (Arc::clone(&states), Arc::clone(&rearm), shutdown.clone());
        let started = Instant::now();
        let thread = segment.wire.in_box(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let watching = tokio::spawn(watch(config, sender, again, stop));
                while receiver.changed().await.is_ok() {
                    let state = receiver.borrow_and_update().clone();
                    modes.send_replace(match state.permit() {
                        Permit::Everything => ServeMode::Open,
                        Permit::Boots => ServeMode::ProxyOnly,
                        Permit::Nothing => ServeMode::Closed,
                    });
                    seen.lock().unwrap().push((Instant::now(), state));
                }
                watching.await.unwrap()
            })
        });
        Self { started, states, serve_mode, rearm, shutdown, thread: Some(thread) }
    }

    /// Waits for a state. Returns the state and the time at which it began.
    fn reaches(&self, what: &str, is: impl Fn(&State) -> bool) -> (Instant, State) {
        wait_for(what, || {
            let states = self.states.lock().unwrap();
            states.last().filter(|(_, state)| is(state)).cloned()
        })
    }

    fn serves(&self) -> Instant {
        self.reaches("serving", |state| *state == State::Serving).0
    }

    fn stops(&self) -> (Instant, Foreign) {
        let (at, state) = self.reaches("a stop", |state| matches!(state, State::Stopped(_)));
        let State::Stopped(foreign) = state else { unreachable!("what was waited for") };
        (at, foreign)
    }

    fn held(&self, hold: Hold) -> Instant {
        self.reaches("a hold", |state| *state == State::Held(hold)).0
    }

    fn ended(mut self) -> Result<(), dhcp::Error> {
        let thread = self.thread.take().unwrap();
        until("the watch to end", || thread.is_finished());
        let (_, last) = self.states.lock().unwrap().last().cloned().unwrap();
        assert_eq!(last, State::default(), "without a watch, nothing may be answered");
        thread.join().unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Checks that an address of the server's range and the server's MAC were detected.
fn assert_is_rogue(foreign: &Foreign) {
    assert_eq!((foreign.server, foreign.interface.as_str()), (ROGUE, "box0"));
    assert!(foreign.mac.is_some(), "{foreign}");
    let [a, b, c, d] = foreign.offered.expect("an offered address").octets();
    assert!([a, b, c] == [10, 77, 0] && (100..200).contains(&d), "{foreign}");
}

/// Starts a foreign server beside a service whose machine sends requests continuously. The kernel's
/// time stamps show when the foreign server's first answer and the service's last answer were sent,
/// so a slow test machine does not change the result.
fn silent_within_a_second(segment: &Segment, watching: &Watch) -> (Rogue, Foreign) {
    let config = dhcp::Config::new("box0", SERVER);
    let (machine, serve_mode) = (rack::machine(Netboot::Allowed), watching.serve_mode.clone());
    let service = Service::with_mode(&segment.wire, machine, config, None, serve_mode);
    let capture = Capture::start(&segment.wire);
    let _machine = segment.asking();
    let is_offer = |seen: &DhcpEvent| matches!(seen, DhcpEvent::Offered { .. });
    until("an offer of the service", || service.events.all().iter().any(is_offer));
    let rogue = segment.rogue();
    let (_, foreign) = watching.stops();
    // The machine sends requests for longer than the service may answer.
    until("answers to questions that the service leaves alone", || {
        let answers = capture.answers(ROGUE);
        answers.len() > 5 && *answers.last().unwrap() > answers[0] + 3 * SILENT
    });
    let (first, last) = (capture.answers(ROGUE)[0], *capture.answers(SERVER).last().unwrap());
    let late = last.saturating_sub(first);
    assert!(late < SILENT, "the service answered {late:?} after the server's first answer");
    (rogue, foreign)
}

#[test]
fn a_server_that_appears_stops_leases_within_a_second_of_its_first_offer() {
    let segment = Segment::new();
    let folder = tempfile::tempdir().unwrap();
    let record = Some(folder.path().join("dhcp-box0"));
    let watching = Watch::start(&segment, Role::Leases, Start::Arm, record.clone());
    let armed = watching.serves().duration_since(watching.started);
    assert!(armed >= PROBE, "served {armed:?} after its start, before the probe was over");
    drop(watching);

    // A restart with the cable in does not probe first.
    let watching = Watch::start(&segment, Role::Leases, Start::Resume, record.clone());
    watching.serves();
    assert_eq!(watching.states.lock().unwrap()[0].1, State::Serving);

    let (rogue, foreign) = silent_within_a_second(&segment, &watching);
    assert_is_rogue(&foreign);
    drop(watching);

    // Only a person lifts the stop, neither a restart nor the end of the other server.
    drop(rogue);
    let watching = Watch::start(&segment, Role::Leases, Start::Resume, record);
    let (_, remembered) = watching.stops();
    assert_eq!((remembered.server, remembered.offered), (foreign.server, foreign.offered));
    let rearmed = Instant::now();
    watching.rearm.notify_one();
    watching.held(Hold::Probing);
    assert!(watching.serves().duration_since(rearmed) >= PROBE);
}

#[test]
fn a_silent_server_is_found_by_the_probe() {
    let segment = Segment::new();
    let _rogue = segment.rogue();
    // The interface of the probe needs no address.
    sh(&format!("ip -n {} addr flush dev box0", segment.wire.box_space));
    let watching = Watch::start(&segment, Role::Leases, Start::Arm, None);
    let (_, foreign) = watching.stops();
    assert_is_rogue(&foreign);
    let states = watching.states.lock().unwrap().clone();
    assert!(states.iter().all(|(_, state)| *state != State::Serving), "{states:?}");
    drop(watching);

    let proxy = Watch::start(&segment, Role::Proxy, Start::Arm, None);
    let beside = |state: &State| matches!(state, State::Proxy(Neighbor::Server(_)));
    let (_, state) = proxy.reaches("a neighbor", beside);
    let State::Proxy(Neighbor::Server(foreign)) = state else { unreachable!("waited for") };
    assert_is_rogue(&foreign);
}

#[test]
fn a_cable_that_was_out_is_probed_before_it_is_served() {
    let segment = Segment::new();
    let rack = &segment.wire.rack_space;
    let watching = Watch::start(&segment, Role::Leases, Start::Arm, None);
    watching.serves();

    sh(&format!("ip -n {rack} link set nuc0 down"));
    watching.held(Hold::NoCarrier);
    let plugged = Instant::now();
    sh(&format!("ip -n {rack} link set nuc0 up"));
    watching.held(Hold::Probing);
    assert!(watching.serves().duration_since(plugged) >= PROBE);

    // The cable is moved to a network that has a server.
    sh(&format!("ip -n {rack} link set nuc0 down"));
    watching.held(Hold::NoCarrier);
    let _rogue = segment.rogue();
    sh(&format!("ip -n {rack} link set nuc0 up"));
    assert_is_rogue(&watching.stops().1);
    let states = watching.states.lock().unwrap().clone();
    let served = states.iter().filter(|(_, state)| *state == State::Serving).count();
    // Another serving is excluded: each comes after a probe that this test has waited for.
    assert_eq!(served, 2, "{states:?}");

    sh(&format!("ip -n {} link del box0", segment.wire.box_space));
    let error = watching.ended().unwrap_err();
    assert!(matches!(error, dhcp::Error::Interface { .. }), "{error:?}");
}
