//! Packet socket that all ARP checks of one interface share.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stdx::MacAddr;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::checks::{Checks, SECOND, WAIT, probe};
use crate::error::Error;
use crate::foreign::Monitor;
use crate::sockets::packet::{FRAME_MAX, PacketSocket, bpf};
use crate::sockets::udp::{MAX_FAILURES, interface_index};

const ETHERTYPE_ARP: u16 = 0x0806;

/// Checks addresses on one interface. A clone is cheap and shares the socket.
#[derive(Clone)]
pub struct Checker {
    shared: Arc<Shared>,
    _reader: Arc<AbortOnDropHandle<()>>,
}

struct Shared {
    interface: String,
    mac: MacAddr,
    socket: PacketSocket,
    checks: Mutex<Checks>,
    answered: Notify,
}

impl Checker {
    /// Opens the packet socket. Needs `CAP_NET_RAW` and a tokio runtime, but no IP address.
    ///
    /// # Errors
    /// The interface does not exist, or the socket cannot be opened.
    pub async fn open(interface: &str) -> Result<Self, Error> {
        let missing = |source| Error::Interface { interface: interface.to_owned(), source };
        let open =
            |socket| move |source| Error::Open { socket, interface: interface.to_owned(), source };
        let index = interface_index(interface).map_err(missing)?;
        let mut monitor = Monitor::open(index).map_err(open("link state (netlink)"))?;
        let mac = monitor.current().await.map_err(missing)?.mac;
        let mut filter = Vec::new();
        bpf::drop_other_vlans(&mut filter);
        bpf::accept_all(&mut filter);
        let socket = PacketSocket::open(index, ETHERTYPE_ARP, &filter).map_err(open("packet"))?;
        let shared = Arc::new(Shared {
            interface: interface.to_owned(),
            mac,
            socket,
            checks: Mutex::default(),
            answered: Notify::new(),
        });
        let reader = tokio::spawn(read(Arc::clone(&shared)));
        Ok(Self { shared, _reader: Arc::new(AbortOnDropHandle::new(reader)) })
    }

    /// Returns the MAC of the station that uses `address`; `None` if no station answers within
    /// [`WAIT`]. Also `None`, with a log line, if the interface is down or too many checks run.
    pub async fn in_use(&self, address: Ipv4Addr) -> Option<MacAddr> {
        let shared = &*self.shared;
        let Some(check) = CheckGuard::start(shared, address) else {
            tracing::warn!(interface = shared.interface, %address, "too many ARP probes at once");
            return None;
        };
        let start = Instant::now();
        for wait in [SECOND, WAIT] {
            if let Err(error) = shared.socket.send(&probe(address, shared.mac)) {
                let interface = &shared.interface;
                tracing::warn!(interface, %address, %error, "cannot probe an address");
            }
            if let Some(mac) = check.answer_until(start + wait).await {
                return Some(mac);
            }
        }
        None
    }
}

impl Shared {
    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registration of one caller in [`Checks`]; dropping the guard removes the caller.
struct CheckGuard<'a> {
    shared: &'a Shared,
    address: Ipv4Addr,
}

impl<'a> CheckGuard<'a> {
    fn start(shared: &'a Shared, address: Ipv4Addr) -> Option<Self> {
        shared.checks().add(address)?;
        Some(Self { shared, address })
    }

    async fn answer_until(&self, deadline: Instant) -> Option<MacAddr> {
        loop {
            let mut answered = std::pin::pin!(self.shared.answered.notified());
            answered.as_mut().enable();
            if let Some(mac) = self.shared.checks().answer(self.address) {
                return Some(mac);
            }
            timeout_at(deadline, answered).await.ok()?;
        }
    }
}

impl Drop for CheckGuard<'_> {
    fn drop(&mut self) {
        self.shared.checks().remove(self.address);
    }
}

async fn read(shared: Arc<Shared>) {
    let mut buffer = [0; FRAME_MAX];
    let mut failures = 0;
    while failures < MAX_FAILURES {
        match shared.socket.receive(&mut buffer).await {
            Ok(length) => {
                failures = 0;
                if shared.checks().receive(&buffer[..length], shared.mac) {
                    shared.answered.notify_waiters();
                }
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(interface = shared.interface, %error, "cannot receive ARP");
            }
        }
    }
}
