//! The simulated box: the real DHCP engine and the real table of TFTP transfers, with a store that
//! can fail and a process that can be killed. [`Errand`]s replace the sockets of `dhcp::Service`
//! and `tftp::serve`. As in the service, the order is: take a batch, decide, commit, send.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::sync::Arc;

use dhcp::{Change, Config, Engine, LeaseStore as _, Mode, Observer as _, ServeMode};
use dhcp::{Outgoing, Output, Sizes};
use fastrand::Rng;
use netboot::tftp::transfers::{MAX_TRANSFERS, Transfers};
use stdx::MacAddr;

use crate::clock::{Clock, Moment};
use crate::ledger::{Durable, Ledger, Sight, Violation};
use crate::message::Reply;
use crate::rack::{Class, Rack, Story, Told};
use crate::store::{Fate, Store};

mod transfers;

/// Datagrams that the socket buffers; a datagram that arrives when the buffer is full is lost.
const RECEIVE_BUFFER: usize = 4096;
/// Limits of `dhcp::Service`: datagrams of one batch, and consecutive failed commits that end the
/// service.
const MAX_BATCH: usize = 256;
const MAX_FAILED_COMMITS: u32 = 8;
/// Limit of `dhcp::arp`: addresses probed at once.
const MAX_QUESTIONS: usize = 1024;
/// Virtual time that the box needs to handle one datagram, in microseconds.
const DATAGRAM_COST: Moment = 20;

/// A DHCP datagram, with the client's address if the datagram was sent to port 4011; `None` for
/// port 67.
pub type Datagram = (Rc<[u8]>, Option<SocketAddrV4>);

/// Requests of the box to the simulation.
#[derive(Debug)]
pub enum Errand {
    /// Send a DHCP message to the client that its header names.
    Dhcp(Outgoing, MacAddr),
    /// Send a TFTP datagram.
    Tftp { to: SocketAddr, bytes: Vec<u8> },
    /// Send a block of a file: block number, offset in the file and length in bytes.
    Block { to: SocketAddr, number: u64, at: u64, length: u64 },
    /// Probe the link for the user of an address; the result goes to [`Appliance::answered`].
    Ask(Ipv4Addr),
    /// Call [`Appliance::turn`] at this time.
    Turn(Moment),
    /// Call [`Appliance::committed`] at this time.
    Commit(Moment),
    /// Call [`Appliance::transfer_timer`] at this time.
    TransferTimer(Moment),
    /// Call [`Appliance::load`] after the disk's time.
    Load { peer: SocketAddr, ticket: u64, file: String },
    /// Record that the machine at this address has fetched a whole loader.
    Loaded { peer: IpAddr, file: String },
}

/// State of the running process, lost when the process is killed.
struct Running {
    engine: Engine,
    transfers: Transfers,
    inbox: VecDeque<Datagram>,
    answers: VecDeque<(Ipv4Addr, Option<MacAddr>)>,
    questions: usize,
    uncommitted: Vec<Change>,
    failed_commits: u32,
    /// True from the scheduling of a turn until the end of its commit.
    busy: bool,
    held: Vec<Outgoing>,
    transfer_timer: Option<Moment>,
}

/// Maximum observed size of each table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Rows of the lease table.
    pub leases: usize,
    /// Address checks under way.
    pub checks: usize,
    /// Datagrams waiting in the socket buffer.
    pub inbox: usize,
    /// TFTP transfers that are open.
    pub transfers: usize,
}

/// The simulated box, whose process can be killed and started again.
pub struct Appliance {
    /// Increased by each kill; events scheduled in an earlier epoch are void.
    pub epoch: u32,
    /// Records of the rack that the box can read.
    pub rack: Rack,
    /// Serving state of DHCP: closed, or only boot files, while another DHCP server may be active.
    pub gate: ServeMode,
    /// Maximum observed table sizes.
    pub peaks: Peaks,
    config: Config,
    clock: Clock,
    store: Store,
    story: Story,
    loader: Arc<[u8]>,
    pool_size: usize,
    running: Option<Running>,
}

impl Appliance {
    /// Returns a box that is off. Each of its loaders has `loader_bytes`.
    pub fn new(config: Config, rack: Rack, loader_bytes: usize, clock: Clock) -> Self {
        let ranges = config.subnets.iter().flat_map(|subnet| &subnet.ranges);
        let pool_size: u64 = ranges.map(|range| range.size()).sum();
        Self {
            epoch: 0,
            rack,
            gate: ServeMode::Open,
            peaks: Peaks::default(),
            config,
            clock,
            store: Store::new(),
            story: Story::default(),
            loader: vec![0; loader_bytes].into(),
            pool_size: usize::try_from(pool_size).unwrap_or(usize::MAX),
            running: None,
        }
    }

    /// True while the process runs.
    pub fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Starts the process with the contents of its store; `unix_secs` is a wall clock that may be
    /// wrong.
    pub fn start(&mut self, unix_secs: u64, now: Moment) {
        let leases = self.store.load().expect("this store can always be read");
        let now = self.clock.instant(now);
        self.running = Some(Running {
            engine: Engine::new(self.config.clone(), &leases, unix_secs, now),
            transfers: Transfers::default(),
            inbox: VecDeque::new(),
            answers: VecDeque::new(),
            questions: 0,
            uncommitted: Vec::new(),
            failed_commits: 0,
            busy: false,
            held: Vec::new(),
            transfer_timer: None,
        });
    }

    /// Kills the process. A commit that was under way may have taken effect.
    pub fn kill(&mut self, rng: &mut Rng) {
        self.epoch += 1;
        self.rack.restart();
        if let Some(dead) = self.running.take()
            && !dead.uncommitted.is_empty()
        {
            let fate = if rng.bool() { Fate::DoneUnknown } else { Fate::Failed };
            self.store.set_fate(fate);
            self.store.commit(&dead.uncommitted).expect_err("nobody was there to hear of it");
        }
    }

    /// Receives a DHCP datagram; returns false if the box is off or the socket buffer is full.
    pub fn datagram(&mut self, datagram: Datagram, now: Moment, errands: &mut Vec<Errand>) -> bool {
        let Some(running) = &mut self.running else { return false };
        if running.inbox.len() >= RECEIVE_BUFFER {
            return false;
        }
        running.inbox.push_back(datagram);
        self.peaks.inbox = self.peaks.inbox.max(running.inbox.len());
        running.wake(now, errands);
        true
    }

    /// Receives the result of an ARP probe: the user of an address, or none.
    pub fn answered(
        &mut self,
        address: Ipv4Addr,
        holder: Option<MacAddr>,
        now: Moment,
        errands: &mut Vec<Errand>,
    ) {
        let Some(running) = &mut self.running else { return };
        running.questions = running.questions.saturating_sub(1);
        running.answers.push_back((address, holder));
        running.wake(now, errands);
    }

    /// Removes expired entries; called once every few seconds.
    pub fn sweep(&mut self, now: Moment) {
        if let Some(running) = &mut self.running {
            running.engine.sweep(self.clock.instant(now));
        }
    }

    /// Handles one batch of waiting datagrams and all waiting probe results, checks the answers
    /// against the rules, and schedules the end of the commit.
    pub fn turn(
        &mut self,
        ledger: &mut Ledger,
        commit_takes: Moment,
        now: Moment,
        errands: &mut Vec<Errand>,
    ) -> Result<(), Violation> {
        let Some(running) = &mut self.running else { return Ok(()) };
        running.engine.set_serve_mode(self.gate);
        let (instant, mut outputs) = (self.clock.instant(now), Vec::new());
        let count = running.inbox.len().min(MAX_BATCH);
        for (address, holder) in running.answers.drain(..) {
            outputs.extend(running.engine.checked(
                address,
                holder,
                self.rack.directory(),
                &self.story,
                instant,
            ));
        }
        for (bytes, boot_server) in running.inbox.drain(..count) {
            let (rack, story) = (self.rack.directory(), &self.story);
            outputs.extend(
                match boot_server {
                    Some(from) => {
                        running.engine.handle_boot_server(&bytes, from, rack, story, instant)
                    }
                    None => running.engine.handle(&bytes, rack, story, instant),
                }
                .expect("clients write lawful messages"),
            );
        }
        while let Some(output) = outputs.pop() {
            match output {
                Output::Send(outgoing) => running.held.push(outgoing),
                Output::Check { address } if running.questions >= MAX_QUESTIONS => {
                    let (rack, story) = (self.rack.directory(), &self.story);
                    outputs.extend(running.engine.checked(address, None, rack, story, instant));
                }
                Output::Check { address } => {
                    running.questions += 1;
                    errands.push(Errand::Ask(address));
                }
            }
        }
        // The messages were popped from the end.
        running.held.reverse();
        for outgoing in &running.held {
            let reply = Reply::read(&outgoing.message).expect("the box writes lawful messages");
            let known = self.rack.class(reply.mac) != Class::Stranger;
            ledger.decided(&reply, self.gate, known)?;
        }
        running.uncommitted.extend(running.engine.take_changes());
        let done = now + DATAGRAM_COST * (count as Moment + 1);
        let takes = if running.uncommitted.is_empty() { 0 } else { commit_takes };
        errands.push(Errand::Commit(done + takes));
        self.measure()
    }

    /// Ends the commit and sends the answers; after a failed commit, only the answers that need no
    /// commit.
    ///
    /// # Errors
    /// When an answer breaks a rule.
    pub fn committed(
        &mut self,
        fate: Fate,
        ledger: &mut Ledger,
        now: Moment,
        errands: &mut Vec<Errand>,
    ) -> Result<(), Violation> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let mut durable = true;
        if !running.uncommitted.is_empty() {
            self.store.set_fate(fate);
            durable = self.store.commit(&running.uncommitted).is_ok();
        }
        if durable {
            running.uncommitted.clear();
            running.failed_commits = 0;
        } else {
            running.failed_commits += 1;
        }
        let lease_now = running.engine.lease_time(self.clock.instant(now));
        for outgoing in running.held.drain(..).filter(|outgoing| durable || !outgoing.needs_commit)
        {
            let reply = Reply::read(&outgoing.message).expect("the box writes lawful messages");
            let ranges = self.config.subnets.iter().flat_map(|subnet| &subnet.ranges);
            let sight = Sight {
                pooled: self.config.mode == Mode::Pool
                    && ranges.into_iter().any(|range| range.contains(reply.address)),
                known: self.rack.class(reply.mac) != Class::Stranger,
                proxy: self.config.mode == Mode::Proxy,
                durable: Durable(self.store.lease(reply.address), lease_now),
            };
            ledger.sent(&reply, sight, now)?;
            self.story.observe(outgoing.event.clone());
            errands.push(Errand::Dhcp(outgoing, reply.mac));
        }
        running.busy = false;
        if !running.inbox.is_empty() || !running.answers.is_empty() {
            running.wake(now, errands);
        }
        Ok(())
    }

    /// True after `MAX_FAILED_COMMITS` failed commits in a row, which end the service.
    pub fn gives_up(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.failed_commits >= MAX_FAILED_COMMITS)
    }

    /// Takes the events that the DHCP service reported since the last call.
    pub fn take_story(&self) -> Vec<Told> {
        self.story.take()
    }

    fn measure(&mut self) -> Result<(), Violation> {
        let Some(running) = &self.running else { return Ok(()) };
        let (sizes, transfers) = (running.engine.sizes(), running.transfers.count());
        let Sizes { leases, checks, .. } = sizes;
        self.peaks.leases = self.peaks.leases.max(leases);
        self.peaks.checks = self.peaks.checks.max(checks);
        self.peaks.transfers = self.peaks.transfers.max(transfers);
        let stored = self.store.len();
        let is_fine = sizes.are_lawful()
            && leases <= self.pool_size
            && stored <= self.pool_size
            && transfers <= MAX_TRANSFERS;
        if is_fine {
            return Ok(());
        }
        let pool = self.pool_size;
        let what = format!("{sizes:?}, {stored} stored, {transfers} transfers, {pool} in pools");
        Err(Violation::Size(what))
    }
}

impl Running {
    fn wake(&mut self, now: Moment, errands: &mut Vec<Errand>) {
        if !std::mem::replace(&mut self.busy, true) {
            errands.push(Errand::Turn(now + DATAGRAM_COST));
        }
    }
}
