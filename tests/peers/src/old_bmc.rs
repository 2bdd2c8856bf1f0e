//! A BMC with IPMI 1.5 only: `ipmi_sim` behind a filter of datagrams. `ipmi_sim` always offers IPMI
//! 2.0, so the filter drops RMCP+ and changes what the BMC states about its versions. All messages
//! of sessions are those of `ipmi_sim`.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use bmc::Endpoint;

use crate::{IpmiSim, loopback_address};

/// Maximum wait for a datagram of a client before the datagrams of the BMC are looked for. Without
/// datagrams from both sides, a pause is counted.
const PAUSE: Duration = Duration::from_millis(2);
/// Position of the IPMI message in a datagram without authentication.
const MESSAGE: usize = 14;
/// Position of the AuthCode in a datagram with authentication.
const AUTH_CODE: usize = 13;
/// Positions in a response of Get Channel Authentication Capabilities (IPMI 2.0 table 22-15).
const TYPES: usize = MESSAGE + 8;
const VERSIONS: usize = MESSAGE + 10;
/// Commands of the network function App.
const GET_CAPABILITIES: u8 = 0x38;
const GET_CIPHER_SUITES: u8 = 0x54;

/// Behavior of the filter.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    /// True to change nothing, as with new firmware.
    pub has_plus: bool,
    /// True for a BMC that does not offer MD5.
    pub lacks_md5: bool,
    /// True for a BMC that refuses a request of the fields of IPMI 2.0, with completion code CCh.
    pub refuses_extended: bool,
    /// True for a BMC that ignores commands that it does not know before a session.
    pub ignores_unknown: bool,
    /// True to change the AuthCode of each message, as a BMC that has another password.
    pub signs_otherwise: bool,
    /// True to send forged copies of each message of a session before the message, and the message
    /// twice.
    pub is_noisy: bool,
}

/// State that the thread shares.
#[derive(Default)]
struct Shared {
    filter: Mutex<Filter>,
    received: Mutex<Vec<Vec<u8>>>,
    pauses: AtomicUsize,
    stop: AtomicBool,
}

/// A running BMC, ended when dropped.
pub struct OldBmc {
    sim: IpmiSim,
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl OldBmc {
    /// Puts the filter before `sim`.
    pub fn start(sim: IpmiSim, filter: Filter) -> Result<Self> {
        let socket = UdpSocket::bind((loopback_address()?, 0))?;
        socket.set_read_timeout(Some(PAUSE))?;
        let address = socket.local_addr()?;
        let shared = Arc::new(Shared { filter: Mutex::new(filter), ..Shared::default() });
        let bmc = SocketAddr::from((sim.address(), IpmiSim::PORT));
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || serve(&socket, bmc, &shared)
        });
        Ok(Self { sim, address, shared, thread: Some(thread) })
    }

    /// Endpoint of the BMC behind the filter, with any cipher suite.
    pub fn endpoint(&self) -> Endpoint {
        let mut endpoint = self.sim.endpoint(None);
        endpoint.address.host = self.address.ip().to_string();
        endpoint.address.port = self.address.port();
        endpoint
    }

    /// The BMC behind the filter.
    pub fn sim(&self) -> &IpmiSim {
        &self.sim
    }

    /// Changes the behavior of the filter.
    pub fn set_filter(&self, filter: Filter) {
        *locked(&self.shared.filter) = filter;
    }

    /// All datagrams from clients, in order.
    pub fn received(&self) -> Vec<Vec<u8>> {
        locked(&self.shared.received).clone()
    }

    /// Number of pauses so far, as [`crate::bmc_sim::BmcSim::pauses`].
    pub fn pauses(&self) -> usize {
        self.shared.pauses.load(Ordering::Acquire)
    }
}

impl Drop for OldBmc {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(socket: &UdpSocket, bmc: SocketAddr, shared: &Shared) {
    // `ipmi_sim` answers to the address of each client, so each has a socket.
    let mut clients: HashMap<SocketAddr, UdpSocket> = HashMap::new();
    let mut buffer = [0; 2048];
    while !shared.stop.load(Ordering::Relaxed) {
        let mut is_pause = true;
        if let Ok((len, client)) = socket.recv_from(&mut buffer) {
            is_pause = false;
            let datagram = &buffer[..len];
            locked(&shared.received).push(datagram.to_vec());
            let upstream = clients.entry(client).or_insert_with(|| connect(bmc));
            match request(*locked(&shared.filter), datagram) {
                Verdict::Forward => drop(upstream.send(datagram)),
                Verdict::Drop => {}
                Verdict::Answer(answer) => drop(socket.send_to(&answer, client)),
            }
        }
        for (client, upstream) in &clients {
            while let Ok(len) = upstream.recv(&mut buffer) {
                is_pause = false;
                for answer in answers(*locked(&shared.filter), &buffer[..len]) {
                    let _ = socket.send_to(&answer, client);
                }
            }
        }
        shared.pauses.fetch_add(usize::from(is_pause), Ordering::Release);
    }
}

fn connect(bmc: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port");
    socket.connect(bmc).expect("a loopback address");
    socket.set_nonblocking(true).expect("a socket");
    socket
}

enum Verdict {
    Forward,
    Drop,
    Answer(Vec<u8>),
}

/// Returns true for a datagram of IPMI 1.5 without authentication with this command.
fn is_command(datagram: &[u8], command: u8) -> bool {
    datagram.get(4) == Some(&0) && datagram.get(MESSAGE + 5) == Some(&command)
}

fn request(filter: Filter, datagram: &[u8]) -> Verdict {
    if filter.has_plus {
        return Verdict::Forward;
    }
    let is_extended = datagram.get(MESSAGE + 6).is_some_and(|channel| channel & 0x80 != 0);
    match datagram.get(4) {
        Some(6) => Verdict::Drop,
        _ if is_command(datagram, GET_CIPHER_SUITES) => match filter.ignores_unknown {
            true => Verdict::Drop,
            false => Verdict::Answer(refusal(datagram, 0xC1)),
        },
        _ if is_command(datagram, GET_CAPABILITIES) && is_extended && filter.refuses_extended => {
            Verdict::Answer(refusal(datagram, 0xCC))
        }
        _ => Verdict::Forward,
    }
}

/// Returns the response to a request without authentication, with this completion code.
fn refusal(request: &[u8], code: u8) -> Vec<u8> {
    let [_, net_fn, _, console, sequence, command, ..] = request[MESSAGE..] else {
        return Vec::new();
    };
    let mut answer = request[..MESSAGE - 1].to_vec();
    answer.extend([8, console, net_fn | 0x04, 0, 0x20, sequence, command, code, 0]);
    answer[MESSAGE + 2] = checksum(&answer[MESSAGE..MESSAGE + 2]);
    answer[MESSAGE + 7] = checksum(&answer[MESSAGE + 3..MESSAGE + 7]);
    answer
}

/// Returns the datagrams for the client in place of a datagram of the BMC.
fn answers(filter: Filter, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut answer = datagram.to_vec();
    let is_statement = is_command(datagram, GET_CAPABILITIES) && answer.len() > VERSIONS;
    if is_statement && !filter.has_plus {
        answer[TYPES] &= if filter.lacks_md5 { 0x7B } else { 0x7F };
        answer[VERSIONS] = 0;
        let end = answer.len() - 1;
        answer[end] = checksum(&answer[MESSAGE + 3..end]);
    }
    let is_in_session = answer.get(4) == Some(&2);
    if is_in_session && filter.signs_otherwise {
        answer[AUTH_CODE] ^= 1;
    }
    match filter.is_noisy && is_in_session {
        true => forged(&answer).into_iter().chain([answer.clone(), answer.clone()]).collect(),
        false => vec![answer],
    }
}

/// Returns all beginnings of a datagram, copies with one changed bit, and a copy without AuthCode.
fn forged(answer: &[u8]) -> Vec<Vec<u8>> {
    let beginnings = (0..answer.len()).map(|len| answer[..len].to_vec());
    // The bytes before are the RMCP header, which no code protects.
    let changed = (4..answer.len()).map(|at| {
        let mut copy = answer.to_vec();
        copy[at] ^= 1 << (at % 8);
        copy
    });
    let mut bare = [&answer[..MESSAGE - 1], &answer[MESSAGE - 1 + 16..]].concat();
    bare[4] = 0;
    beginnings.chain(changed).chain([bare]).collect()
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum: u8, byte| sum.wrapping_sub(*byte))
}
