//! A simulated BMC for cases that `ipmi_sim` lacks: cipher suite 17, lost datagrams, datagram
//! counts, lost sessions, malformed answers. The simulator shares only the cryptographic primitives
//! with our client; `ipmitool` checks independently that the simulator is correct.

mod chassis;
mod machine;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use bmc::{Address, CipherSuite, Credentials, Endpoint, Protocol};

pub use chassis::Chassis;
use machine::Machine;

use crate::loopback_address;

/// Time without a datagram after which a pause is counted.
const PAUSE: Duration = Duration::from_millis(5);

/// Datagrams that get lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// No datagram is lost.
    #[default]
    None,
    /// The first copy of every request is lost.
    Requests,
    /// The first answer to every request is lost, after the request was carried out.
    Replies,
    /// Every answer to Get Chassis Status is lost.
    StatusReplies,
}

/// Step in which a BMC without a free session refuses the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullAt {
    /// Open Session Response with status 0x01, as `ipmi_sim` and most BMCs.
    #[default]
    Open,
    /// RAKP message 2 with status 0x0B: no session is free at this role.
    Role,
    /// RAKP message 4 with status 0x01.
    Proof,
    /// Set Session Privilege Level with completion code 0xC0, in a session that was opened.
    Privilege,
}

/// Malformed datagrams in an open session. The session setup has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Noise {
    /// No datagram is malformed.
    #[default]
    None,
    /// Before every answer: each of its beginnings, and copies with one changed bit.
    Before,
    /// The datagrams of [`Noise::Before`], without the answer.
    Instead,
    /// [`Noise::Instead`] for the answers to Chassis Control only, which was carried out.
    InsteadOfPower,
    /// Every answer ends after this many bytes of its IPMI message, with a valid signature.
    Cut(usize),
}

/// Behavior of the simulated BMC.
#[derive(Debug, Clone)]
pub struct Config {
    /// Cipher suites that the BMC accepts: 3, 17 or both, in any order.
    pub suites: Vec<CipherSuite>,
    /// Suite numbers in the answer to Get Channel Cipher Suites; `None` for a BMC that never
    /// answers this request.
    pub listed: Option<Vec<u8>>,
    /// True for a BMC that ignores a proposal of another suite, instead of refusing the proposal.
    pub ignores_unknown_suites: bool,
    /// Datagrams that this BMC loses.
    pub loss: Loss,
    /// True for a BMC that answers every request with a malformed datagram.
    pub rubbish: bool,
    /// Step in which the BMC refuses a client while no session is free.
    pub full_at: FullAt,
    /// Malformed datagrams in open sessions.
    pub noise: Noise,
    /// Maximum privilege level of the BMC's user: 2 is User, 3 is Operator, 4 is Administrator.
    pub privilege: u8,
    /// True for a BMC that checks the privilege level in Set Session Privilege Level only, and not
    /// in the key exchange.
    pub checks_privilege_late: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            suites: vec![CipherSuite::Seventeen],
            listed: Some(vec![3, 17]),
            ignores_unknown_suites: false,
            loss: Loss::None,
            rubbish: false,
            full_at: FullAt::default(),
            noise: Noise::default(),
            privilege: 4,
            checks_privilege_late: false,
        }
    }
}

/// Counts of datagrams and sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Datagrams that arrived at the BMC, including those that count as lost.
    pub received: usize,
    /// Datagrams that the BMC sent.
    pub sent: usize,
    /// Sessions that were opened.
    pub opened: usize,
    /// Sessions that the client closed.
    pub closed: usize,
}

/// A running BMC, ended when dropped.
pub struct BmcSim {
    address: SocketAddr,
    machine: Arc<Mutex<Machine>>,
    pauses: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BmcSim {
    /// Name of the only user of the simulated BMC.
    pub const USERNAME: &str = "operator";
    /// Password of [`BmcSim::USERNAME`]: 20 bytes, the maximum of IPMI 2.0.
    pub const PASSWORD: &str = "correct horse batter";

    /// Starts a BMC on a loopback address of its own. The machine is off.
    pub fn start(config: Config) -> Result<Self> {
        let socket = UdpSocket::bind((loopback_address()?, 0))?;
        socket.set_read_timeout(Some(PAUSE))?;
        let address = socket.local_addr()?;
        let machine = Arc::new(Mutex::new(Machine::new(config)));
        let pauses = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (machine, pauses, stop) =
                (Arc::clone(&machine), Arc::clone(&pauses), Arc::clone(&stop));
            move || serve(&socket, &machine, &pauses, &stop)
        });
        Ok(Self { address, machine, pauses, stop, thread: Some(thread) })
    }

    /// Endpoint of the BMC. The client uses `cipher_suite`, or selects a suite itself for `None`.
    pub fn endpoint(&self, cipher_suite: Option<CipherSuite>) -> Endpoint {
        Endpoint {
            address: Address { host: self.address.ip().to_string(), port: self.address.port() },
            credentials: Credentials {
                username: Self::USERNAME.into(),
                password: Self::PASSWORD.into(),
            },
            protocol: Protocol::Ipmi { cipher_suite },
        }
    }

    /// State of the machine, with a log of the commands that the BMC received.
    pub fn chassis(&self) -> Chassis {
        self.machine().chassis.clone()
    }

    /// Counts of datagrams and sessions so far.
    pub fn traffic(&self) -> Traffic {
        self.machine().traffic
    }

    /// Number of pauses so far. A pause: every datagram that arrived was answered, and no other
    /// came for 5 ms.
    pub fn pauses(&self) -> usize {
        self.pauses.load(Ordering::Acquire)
    }

    /// Number of open sessions.
    pub fn sessions(&self) -> usize {
        self.machine().sessions()
    }

    /// Sets the number of sessions that other clients hold. The BMC has four sessions.
    pub fn occupy(&self, sessions: usize) {
        self.machine().occupied = sessions;
    }

    /// Changes the malformed datagrams in open sessions.
    pub fn set_noise(&self, noise: Noise) {
        self.machine().set_noise(noise);
    }

    /// Restarts the BMC as after a power cut: all sessions end.
    pub fn restart(&self) {
        self.machine().restart();
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// BMC without a socket, for a program that simulates many of them.
pub struct BmcEngine(Machine);

impl BmcEngine {
    /// Creates a BMC whose machine is off.
    pub fn new(config: Config) -> Self {
        Self(Machine::new(config))
    }

    /// Returns the answer to a received datagram, the last one with [`Noise`]; `None` for silence.
    pub fn receive(&mut self, datagram: &[u8]) -> Option<Vec<u8>> {
        self.0.receive(datagram).pop()
    }
}

fn serve(socket: &UdpSocket, machine: &Mutex<Machine>, pauses: &AtomicUsize, stop: &AtomicBool) {
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, peer)) = socket.recv_from(&mut buffer) else {
            pauses.fetch_add(1, Ordering::Release);
            continue;
        };
        let answers =
            machine.lock().unwrap_or_else(PoisonError::into_inner).receive(&buffer[..len]);
        for answer in answers {
            let _ = socket.send_to(&answer, peer);
        }
    }
}

impl Drop for BmcSim {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
