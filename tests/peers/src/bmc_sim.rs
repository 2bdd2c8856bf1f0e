//! A BMC in software for what `ipmi_sim` cannot do: cipher suite 17, losing datagrams, counting
//! them, forgetting its sessions, sending rubbish. It shares the cryptographic primitives with our
//! client and nothing else; `ipmitool` is the witness that it is right.

mod chassis;
mod machine;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use bmc::{Address, CipherSuite, Credentials, Endpoint};

pub use chassis::Chassis;
use machine::Machine;

use crate::loopback_address;

/// Longest wait for a datagram before a pause is counted.
const PAUSE: Duration = Duration::from_millis(5);

/// Which datagrams get lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// The first sending of every request.
    Requests,
    /// The first answer to every request, which was carried out.
    Replies,
    /// Every answer to Get Chassis Status.
    StatusReplies,
}

/// What the BMC is like.
#[derive(Debug, Clone)]
pub struct Config {
    /// Suites it takes; from the list of 3 and 17 in any order.
    pub suites: Vec<CipherSuite>,
    /// Numbers it lists when asked; `None`: it never answers that question.
    pub listed: Option<Vec<u8>>,
    /// Says nothing at all to a proposal of another suite, in place of refusing it.
    pub ignores_unknown_suites: bool,
    /// What gets lost.
    pub loss: Loss,
    /// Answers everything with rubbish.
    pub rubbish: bool,
    /// Highest privilege level its user may have.
    pub privilege: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            suites: vec![CipherSuite::Seventeen],
            listed: Some(vec![3, 17]),
            ignores_unknown_suites: false,
            loss: Loss::None,
            rubbish: false,
            privilege: 4,
        }
    }
}

/// What was seen on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Datagrams that arrived, lost ones too.
    pub received: usize,
    /// Datagrams sent.
    pub sent: usize,
    /// Sessions opened.
    pub opened: usize,
    /// Sessions closed by their owner.
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
    /// Its only user.
    pub const USERNAME: &str = "operator";
    /// That user's password: as long as IPMI allows.
    pub const PASSWORD: &str = "correct horse batter";

    /// Start one on a loopback address of its own. The machine is off.
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

    /// How to reach it, asking for this suite.
    pub fn endpoint(&self, cipher_suite: Option<CipherSuite>) -> Endpoint {
        Endpoint {
            address: Address { host: self.address.ip().to_string(), port: self.address.port() },
            credentials: Credentials {
                username: Self::USERNAME.into(),
                password: Self::PASSWORD.into(),
            },
            cipher_suite,
        }
    }

    /// The machine's real state and what was done to it.
    pub fn chassis(&self) -> Chassis {
        self.machine().chassis.clone()
    }

    /// What was seen on the wire so far.
    pub fn traffic(&self) -> Traffic {
        self.machine().traffic
    }

    /// Pauses so far: moments when every datagram that had arrived was answered and no other came
    /// for 5 ms.
    pub fn pauses(&self) -> usize {
        self.pauses.load(Ordering::Acquire)
    }

    /// Sessions open now.
    pub fn sessions(&self) -> usize {
        self.machine().sessions()
    }

    /// Lose power: every session is forgotten.
    pub fn restart(&self) {
        self.machine().restart();
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(socket: &UdpSocket, machine: &Mutex<Machine>, pauses: &AtomicUsize, stop: &AtomicBool) {
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, peer)) = socket.recv_from(&mut buffer) else {
            pauses.fetch_add(1, Ordering::Release);
            continue;
        };
        let answer = machine.lock().unwrap_or_else(PoisonError::into_inner).receive(&buffer[..len]);
        if let Some(answer) = answer {
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
