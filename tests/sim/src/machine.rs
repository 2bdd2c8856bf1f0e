//! One machine: firmware, loader and system of one boot, each with the manners recorded of it. No
//! socket, no clock: packets and moments in, [`Act`]s out.

use std::net::{Ipv4Addr, SocketAddrV4};

use fastrand::Rng;
use stdx::MacAddr;

use crate::clock::{MILLI, Moment, SECOND};
use crate::message::{Client, Reply};

mod boot;
mod download;
mod exchange;

use download::Download;

/// What is burnt into the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// UEFI, PXE over IPv4.
    Edk2Pxe,
    /// UEFI, HTTP Boot over IPv4.
    Edk2Http,
    /// A BIOS with a plain PXE ROM.
    BiosPxe,
    /// A BIOS with iPXE as its ROM.
    IpxeBios,
    /// UEFI with iPXE as its ROM.
    IpxeEfi,
    /// Nothing that boots from the network: a system on a disk, which remembers its address.
    Disk,
}

/// Which of its programs runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// None.
    Off,
    /// The firmware.
    Rom,
    /// iPXE, loaded from the box.
    Ipxe,
    /// The agent's, or an installed, system.
    System,
}

/// What the program does.
#[derive(Debug)]
enum Phase {
    /// Nothing, until the timer: a prompt, a pause between tries, a kernel that starts.
    Resting,
    /// It hangs, until somebody switches it off and on.
    Hung,
    /// It looks for servers.
    Selecting,
    /// It asks for an address that was offered to it, or (`rebooting`) that it had.
    Requesting { rebooting: bool },
    /// It asks port 4011 for its boot file.
    AskingBootServer,
    /// It loads by TFTP.
    Loading(Download),
    /// It loads by HTTP.
    Fetching(Wanted),
    /// It asks the link whether somebody uses its new address.
    Probing,
    /// It has an address, and renews it.
    Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Loader,
    Script,
    Kernel,
}

/// What a machine does to the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Sends a DHCP message.
    Dhcp {
        /// The payload; the wire adds the relay's address.
        bytes: Vec<u8>,
        /// Where to.
        to: Place,
    },
    /// Sends a TFTP datagram to the box.
    Tftp {
        /// Its own address and port.
        from: SocketAddrV4,
        /// The payload.
        bytes: Vec<u8>,
    },
    /// Asks for a URL, to be told by [`Machine::fetched`].
    Get {
        /// Which.
        url: String,
    },
    /// Asks its link who else uses an address, to be told by [`Machine::probed`].
    Probe {
        /// Which.
        address: Ipv4Addr,
    },
    /// Wants [`Machine::timer`] then, and not when it wanted it before.
    Wake {
        /// When.
        at: Moment,
    },
    /// Believes, since it was told so by a server, that an address is its own.
    Uses {
        /// Which.
        address: Ipv4Addr,
        /// How long.
        until: Moment,
    },
    /// Uses an address no more.
    Leaves {
        /// Which.
        address: Ipv4Addr,
    },
    /// Gives an address back (RELEASE), or says that it cannot be used (DECLINE).
    GivesBack {
        /// Which.
        address: Ipv4Addr,
    },
    /// Its system runs and has an address.
    Booted,
    /// Its lease ran out although it had asked for more.
    Lost,
}

/// Where a DHCP message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Everybody on the link, port 67, or its relay.
    Everybody,
    /// One server, port 67.
    Server(Ipv4Addr),
    /// One server, port 4011.
    BootServer(Ipv4Addr),
}

/// What came of a [`Act::Get`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetch {
    /// The text of a script.
    Script(String),
    /// A file, whole.
    File,
    /// An error, a timeout, a connection that ended.
    Failed,
}

/// What one event may use.
pub struct Turn<'a> {
    /// The moment.
    pub now: Moment,
    /// The run's chance.
    pub rng: &'a mut Rng,
    /// What the machine does, in order.
    pub acts: &'a mut Vec<Act>,
}

impl Turn<'_> {
    fn wake(&mut self, after: Moment) {
        self.acts.push(Act::Wake { at: self.now + after });
    }

    fn between(&mut self, low: Moment, high: Moment) -> Moment {
        self.rng.u64(low..high)
    }
}

/// What a machine believes to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lease {
    address: Ipv4Addr,
    server: Ipv4Addr,
    since: Moment,
    until: Moment,
}

/// One machine.
#[derive(Debug)]
pub struct Machine {
    /// Its interface.
    pub mac: MacAddr,
    /// What it is.
    pub firmware: Firmware,
    /// A loader that its card does not work with.
    pub hates: Option<&'static str>,
    /// Bumped whenever the timer is set, so that an earlier setting no longer counts.
    pub timer_number: u32,
    /// Bumped whenever something begins whose answer is waited for.
    pub exchange: u32,
    stage: Stage,
    phase: Phase,
    xid: u32,
    /// Sent so often without an answer.
    tries: usize,
    began: Moment,
    offer: Option<Reply>,
    proxy: Option<Reply>,
    lease: Option<Lease>,
    /// The address that a system on disk had last.
    remembered: Option<Ipv4Addr>,
    loader: String,
    kernel: String,
}

impl Machine {
    /// A machine that is switched off.
    pub fn new(mac: MacAddr, firmware: Firmware) -> Self {
        Self {
            mac,
            firmware,
            hates: None,
            timer_number: 0,
            exchange: 0,
            stage: Stage::Off,
            phase: Phase::Resting,
            xid: 0,
            tries: 0,
            began: 0,
            offer: None,
            proxy: None,
            lease: None,
            remembered: None,
            loader: String::new(),
            kernel: String::new(),
        }
    }

    /// The address that its system remembers from another network.
    pub fn with_memory(self, address: Ipv4Addr) -> Self {
        Self { remembered: Some(address), ..self }
    }

    /// The address that it uses.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.lease.map(|lease| lease.address)
    }

    /// Its system runs and has an address that it found nobody else to use.
    pub fn is_up(&self) -> bool {
        self.stage == Stage::System && matches!(self.phase, Phase::Bound)
    }

    /// One line on what it does, for whoever asks why.
    pub fn story(&self) -> String {
        let phase = match &self.phase {
            Phase::Loading(download) => format!("Loading({download})"),
            phase => format!("{phase:?}"),
        };
        let (firmware, stage, tries) = (self.firmware, self.stage, self.tries);
        format!("{} {firmware:?} {stage:?} {phase} try {tries}, {:?}", self.mac, self.address())
    }

    /// The power button.
    pub fn power_on(&mut self, turn: &mut Turn<'_>) {
        self.stage = if self.firmware == Firmware::Disk { Stage::System } else { Stage::Rom };
        let after = turn.between(2 * SECOND, 4 * SECOND);
        self.rest(after, turn);
    }

    /// The power fails, or (`orderly`) the system is told to go down, and gives its address back.
    pub fn power_off(&mut self, orderly: bool, turn: &mut Turn<'_>) {
        if let Some(lease) = self.lease.filter(|_| self.stage == Stage::System) {
            if orderly {
                self.release(lease, turn);
            }
            self.remembered = (self.firmware == Firmware::Disk).then_some(lease.address);
        }
        self.leave(turn);
        self.exchange += 1;
        self.timer_number += 1;
        (self.stage, self.phase) = (Stage::Off, Phase::Resting);
    }

    /// The moment that was waited for has come.
    pub fn timer(&mut self, turn: &mut Turn<'_>) {
        match &mut self.phase {
            Phase::Resting => self.begin(turn),
            Phase::Hung => {
                self.power_off(false, turn);
                self.power_on(turn);
            }
            Phase::Selecting => self.select_again(turn),
            Phase::Requesting { .. } => self.request_again(turn),
            Phase::AskingBootServer => self.ask_boot_server_again(turn),
            Phase::Loading(_) => self.load_again(turn),
            Phase::Fetching(_) => self.fetched(&Fetch::Failed, turn),
            // The wire always answers a probe.
            Phase::Probing => {}
            Phase::Bound => self.renew(turn),
        }
    }

    fn client(&self) -> Client {
        match (self.stage, self.firmware) {
            (Stage::Off | Stage::System, _) | (_, Firmware::Disk) => Client::System,
            (Stage::Ipxe, Firmware::BiosPxe) | (_, Firmware::IpxeBios) => Client::IpxeBios,
            (Stage::Ipxe, _) | (_, Firmware::IpxeEfi) => Client::IpxeEfi,
            (Stage::Rom, Firmware::Edk2Pxe) => Client::Edk2Pxe,
            (Stage::Rom, Firmware::Edk2Http) => Client::Edk2Http,
            (Stage::Rom, Firmware::BiosPxe) => Client::BiosPxe,
        }
    }

    fn manners(&self) -> &'static Manners {
        match self.client() {
            Client::Edk2Pxe | Client::Edk2Http => &EDK2,
            Client::BiosPxe => &BIOS_PXE,
            Client::IpxeBios | Client::IpxeEfi => &IPXE,
            Client::System => &SYSTEM,
        }
    }

    fn rest(&mut self, for_: Moment, turn: &mut Turn<'_>) {
        self.phase = Phase::Resting;
        turn.wake(for_);
    }

    /// Its addresses are nobody's that it knows of.
    fn leave(&mut self, turn: &mut Turn<'_>) {
        if let Some(Lease { address, .. }) = self.lease.take() {
            turn.acts.push(Act::Leaves { address });
        }
    }

    /// What ran cannot go on: the firmware tries its boot entries anew, a system its client.
    fn fail(&mut self, turn: &mut Turn<'_>) {
        self.leave(turn);
        self.exchange += 1;
        if self.stage == Stage::Ipxe {
            self.stage = Stage::Rom;
        }
        let pause = self.manners().rests;
        let after = turn.between(pause, 2 * pause);
        self.rest(after, turn);
    }
}

/// How a client behaves.
struct Manners {
    /// How long each DISCOVER or REQUEST waits for an answer before the next; after the last the
    /// client gives up.
    waits: &'static [Moment],
    /// For how long offers are collected.
    collects: Moment,
    /// The least time before it begins again.
    rests: Moment,
}

/// Recorded: DISCOVERs 4, 8, 16 and 32 s apart; offers are collected for 3.7 to 3.9 s.
const EDK2: Manners = Manners {
    waits: &[4 * SECOND, 8 * SECOND, 16 * SECOND, 32 * SECOND],
    collects: 3_800 * MILLI,
    rests: 5 * SECOND,
};
/// PXE 2.1 §2.2.1's times.
const BIOS_PXE: Manners = Manners {
    waits: &[4 * SECOND, 8 * SECOND, 16 * SECOND, 32 * SECOND],
    collects: 2 * SECOND,
    rests: 5 * SECOND,
};
/// Times that double from one second; it waits for a ProxyDHCP offer unless it is told not to.
const IPXE: Manners = Manners {
    waits: &[SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND, 10 * SECOND],
    collects: 3 * SECOND,
    rests: 5 * SECOND,
};
/// udhcpc's: three tries of three seconds, then a pause of twenty.
const SYSTEM: Manners =
    Manners { waits: &[3 * SECOND, 3 * SECOND, 3 * SECOND], collects: 0, rests: 20 * SECOND };
