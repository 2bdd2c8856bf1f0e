//! Sockets of the watch for other servers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rustix::io::Errno;
use tokio::sync::{Notify, watch::Sender};
use tokio_util::sync::CancellationToken;

use super::Config;
use super::carrier::{LinkMessage, Monitor};
use super::evidence::OwnServers;
use super::probe::ProbeSender;
use super::record::Record;
use super::state::State;
use super::watcher::{Action, Now, Subject, Watcher};
use crate::error::Error;
use crate::sockets::packet::{ETHERTYPE_IPV4, FRAME_MAX, PacketSocket, bpf};
use crate::sockets::udp::{MAX_FAILURES, interface_index};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Watches `config.interface` until `shutdown` is cancelled. Needs `CAP_NET_RAW`.
///
/// `updates` always has the current state, and [`State::default`] (answer nothing) as soon as this
/// function returns, fails or is dropped. Each `rearm` notification is a request to lift a stop.
///
/// # Errors
/// A socket cannot be opened, or the interface was removed. The caller may call the function again.
/// A record that cannot be read or written is only logged.
pub async fn watch(
    config: Config,
    updates: Sender<State>,
    rearm: Arc<Notify>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let updates = Updates(updates);
    let (mut sockets, mut watcher, actions) = tokio::select! {
        opened = open(config, &updates) => opened?,
        () = shutdown.cancelled() => return Ok(()),
    };
    sockets.perform(&mut watcher, actions).await;
    tokio::select! {
        error = sockets.run(&mut watcher, &rearm) => Err(error),
        () = shutdown.cancelled() => Ok(()),
    }
}

/// Channel of states. On drop it sends [`State::default`], so that no answer is permitted any more.
struct Updates(Sender<State>);

impl Drop for Updates {
    fn drop(&mut self) {
        self.0.send_replace(State::default());
    }
}

struct Sockets<'a> {
    interface: String,
    record: Option<PathBuf>,
    updates: &'a Updates,
    socket: PacketSocket,
    monitor: Monitor,
}

async fn open(
    config: Config,
    updates: &Updates,
) -> Result<(Sockets<'_>, Watcher, Vec<Action>), Error> {
    let Config { interface, role, start, servers, mut macs, record } = config;
    let name = &interface;
    let missing = |source| Error::Interface { interface: name.clone(), source };
    let open = |socket| move |source| Error::Open { socket, interface: name.clone(), source };
    let index = interface_index(&interface).map_err(missing)?;
    let mut filter = Vec::new();
    bpf::drop_other_vlans(&mut filter);
    bpf::accept_dhcp(&mut filter);
    // The sockets listen before the link state is requested, so that no event is lost.
    let socket = PacketSocket::open(index, ETHERTYPE_IPV4, &filter).map_err(open("packet"))?;
    let mut monitor = Monitor::open(index).map_err(open("link state (netlink)"))?;
    let link = monitor.current().await.map_err(missing)?;
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| open("packet")(io::Error::other(error)))?;
    let [x0, x1, x2, x3, client @ ..] = random;
    let sender = ProbeSender::new(link.mac, client);
    if let Err(error) = socket.join(index, sender.client) {
        tracing::debug!(interface, %error, "cannot receive unicast replies to a probe");
    }
    macs.push(link.mac);
    let subject = Subject {
        interface: interface.clone(),
        role,
        own: OwnServers { servers, macs },
        sender,
        xid: u32::from_be_bytes([x0, x1, x2, x3]),
        boot_id: std::fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned(),
    };
    let stored = record.as_deref().map_or(Ok(None), Record::load).unwrap_or_else(|error| {
        tracing::warn!(interface, %error, "cannot read the state of the last watch: probing first");
        None
    });
    let (watcher, actions) = Watcher::new(subject, link, start, stored, now());
    Ok((Sockets { interface, record, updates, socket, monitor }, watcher, actions))
}

fn now() -> Now {
    Now { at: Instant::now(), wall: SystemTime::now() }
}

impl Sockets<'_> {
    async fn run(&mut self, watcher: &mut Watcher, rearm: &Notify) -> Error {
        let mut buffer = [0; FRAME_MAX];
        let mut failures = 0;
        loop {
            let deadline = watcher.deadline();
            let actions = tokio::select! {
                // Frames before timers: a probe is not over while answers wait to be read.
                biased;
                message = self.monitor.next() => match message {
                    Ok(LinkMessage::Link(link)) => watcher.link(link, now()),
                    Ok(LinkMessage::Gone) => return self.gone(),
                    Err(source) => return self.receive_failed(source),
                },
                received = self.socket.receive(&mut buffer) => match received {
                    Ok(length) => {
                        failures = 0;
                        watcher.frame(&buffer[..length], now())
                    }
                    Err(source) => {
                        failures += 1;
                        if failures >= MAX_FAILURES {
                            return self.receive_failed(source);
                        }
                        continue;
                    }
                },
                () = rearm.notified() => watcher.rearm(now()),
                () = until(deadline) => watcher.tick(now()),
            };
            self.perform(watcher, actions).await;
        }
    }

    async fn perform(&mut self, watcher: &mut Watcher, actions: Vec<Action>) {
        let interface = &self.interface;
        for action in actions {
            match action {
                Action::Report(state) => {
                    tracing::info!(interface, %state, "DHCP watch");
                    self.updates.0.send_replace(state);
                }
                Action::Send(frame) => {
                    if let Err(error) = self.socket.send(&frame) {
                        tracing::debug!(interface, %error, "cannot send a probe");
                        watcher.unsent();
                    }
                }
                Action::StoreRecord(record) => self.store_record(record).await,
            }
        }
    }

    async fn store_record(&self, record: Option<Record>) {
        let Some(path) = self.record.clone() else { return };
        let store = move || Record::store(record.as_ref(), &path);
        // A failed join is a panic in `store`, which the runtime has reported.
        if let Ok(Err(error)) = tokio::task::spawn_blocking(store).await {
            let interface = &self.interface;
            tracing::warn!(interface, %error, "cannot save the state of the DHCP watch");
        }
    }

    fn gone(&self) -> Error {
        Error::Interface { interface: self.interface.clone(), source: Errno::NODEV.into() }
    }

    fn receive_failed(&self, source: io::Error) -> Error {
        Error::Receive { interface: self.interface.clone(), source }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
