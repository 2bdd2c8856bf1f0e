//! One machine: firmware, loader and system of one boot, each with its recorded behavior. It has no
//! socket and no clock: packets and times are inputs, [`Act`]s are outputs.

use std::net::{Ipv4Addr, SocketAddrV4};

use fastrand::Rng;
use stdx::MacAddr;

use crate::clock::{MILLI, Moment, SECOND};
use crate::message::{Client, Reply};

mod boot;
mod download;
mod exchange;

use download::Download;

/// Firmware of the machine, which decides its network boot.
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
    /// No network boot: an installed system on a disk, which remembers its address.
    Disk,
}

/// Program that runs on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The machine is off.
    Off,
    /// The firmware, with its boot ROM.
    Rom,
    /// iPXE, loaded from the box.
    Ipxe,
    /// The system of the agent, or an installed system.
    System,
}

/// State of the program that runs.
#[derive(Debug)]
enum Phase {
    /// Waiting for the timer: a prompt, a pause between tries, a kernel that starts.
    Resting,
    /// Hung until the next power cycle.
    Hung,
    /// Sent DISCOVER, waiting for offers (SELECTING of RFC 2131).
    Selecting,
    /// Sent REQUEST for an offered address, or (`rebooting`) for its former address.
    Requesting { rebooting: bool },
    /// Sent a request for its boot file to port 4011.
    AskingBootServer,
    /// Loading a file by TFTP.
    Loading(Download),
    /// Loading a file by HTTP.
    Fetching(Wanted),
    /// Probing its link for another user of the new address.
    Probing,
    /// Using an address, and renewing it.
    Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Loader,
    Script,
    Kernel,
}

/// Action of a machine that affects other parts of the simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Sends a DHCP message.
    Dhcp {
        /// The payload; the wire adds the relay's address.
        bytes: Vec<u8>,
        /// Destination of the message.
        to: Place,
    },
    /// Sends a TFTP datagram to the box.
    Tftp {
        /// Source address and port.
        from: SocketAddrV4,
        /// Bytes of the TFTP packet.
        bytes: Vec<u8>,
    },
    /// Fetches a URL; the result goes to [`Machine::fetched`].
    Get {
        /// URL of the box.
        url: String,
    },
    /// Probes its link for another user of an address; the result goes to [`Machine::probed`].
    Probe {
        /// Address to probe, the new one.
        address: Ipv4Addr,
    },
    /// Sets the timer for [`Machine::timer`], and replaces the earlier setting.
    Wake {
        /// Virtual time of the call.
        at: Moment,
    },
    /// Uses an address, by the ACK of a server.
    Uses {
        /// Address that the ACK assigned.
        address: Ipv4Addr,
        /// End of its lease.
        until: Moment,
    },
    /// Stops using an address.
    Leaves {
        /// Address that it no longer uses.
        address: Ipv4Addr,
    },
    /// Gives an address back (RELEASE), or reports that it cannot be used (DECLINE).
    GivesBack {
        /// Address that it gives back.
        address: Ipv4Addr,
    },
    /// Its system runs and has an address.
    Booted,
    /// Its lease ended although the machine had requested a renewal.
    Lost,
}

/// Destination of a DHCP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Broadcast to port 67: all servers on the link, or its relay.
    Everybody,
    /// One server, port 67.
    Server(Ipv4Addr),
    /// One server, port 4011.
    BootServer(Ipv4Addr),
}

/// Result of an [`Act::Get`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetch {
    /// The text of a script.
    Script(String),
    /// A whole file, without its bytes.
    File,
    /// An error, a timeout, a connection that ended.
    Failed,
}

/// Inputs and outputs of a machine during one event.
pub struct Turn<'a> {
    /// Virtual time of the event.
    pub now: Moment,
    /// Random source of the run.
    pub rng: &'a mut Rng,
    /// Actions of the machine, in order.
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

/// A lease from the view of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lease {
    address: Ipv4Addr,
    server: Ipv4Addr,
    since: Moment,
    until: Moment,
}

/// A simulated machine with its program, phase and lease.
#[derive(Debug)]
pub struct Machine {
    /// MAC address of its NIC.
    pub mac: MacAddr,
    /// Firmware, fixed for the whole run.
    pub firmware: Firmware,
    /// Loader file that hangs with the NIC of this machine; `None`: every loader works.
    pub hates: Option<&'static str>,
    /// Increased whenever the timer is set, so that an earlier setting no longer counts.
    pub timer_number: u32,
    /// Increased when a probe or a download begins or ends, so that a late result is ignored.
    pub exchange: u32,
    stage: Stage,
    phase: Phase,
    xid: u32,
    /// Number of messages sent without an answer.
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

    /// Sets the address that the machine's system remembers from another network.
    pub fn with_memory(self, address: Ipv4Addr) -> Self {
        Self { remembered: Some(address), ..self }
    }

    /// Address that the machine uses; `None` without a lease.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.lease.map(|lease| lease.address)
    }

    /// True when the machine's system runs, and has probed its address: no other station answered.
    pub fn is_up(&self) -> bool {
        self.stage == Stage::System && matches!(self.phase, Phase::Bound)
    }

    /// Current state in one line, for messages of failed runs.
    pub fn story(&self) -> String {
        let phase = match &self.phase {
            Phase::Loading(download) => format!("Loading({download})"),
            phase => format!("{phase:?}"),
        };
        let (firmware, stage, tries) = (self.firmware, self.stage, self.tries);
        format!("{} {firmware:?} {stage:?} {phase} try {tries}, {:?}", self.mac, self.address())
    }

    /// Switches the machine on.
    pub fn power_on(&mut self, turn: &mut Turn<'_>) {
        self.stage = if self.firmware == Firmware::Disk { Stage::System } else { Stage::Rom };
        let after = turn.between(2 * SECOND, 4 * SECOND);
        self.rest(after, turn);
    }

    /// Switches the machine off. With `orderly` the system shuts down and releases its address;
    /// otherwise the power fails.
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

    /// Handles the timer of [`Act::Wake`].
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
            // An earlier timer, without effect: the simulation always reports the result of a
            // probe.
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

    /// Ends the use of the machine's address, if there is one.
    fn leave(&mut self, turn: &mut Turn<'_>) {
        if let Some(Lease { address, .. }) = self.lease.take() {
            turn.acts.push(Act::Leaves { address });
        }
    }

    /// Starts over after a failure: firmware with its boot entries, a system with its DHCP client.
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

/// Recorded times of a DHCP client.
struct Manners {
    /// Waits after each DISCOVER or REQUEST before the next; after the last wait the client gives
    /// up.
    waits: &'static [Moment],
    /// Time for which the client collects offers.
    collects: Moment,
    /// Minimum pause before a new exchange.
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
/// Times that double from one second. iPXE waits for a ProxyDHCP offer, unless an option forbids
/// this wait.
const IPXE: Manners = Manners {
    waits: &[SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND, 10 * SECOND],
    collects: 3 * SECOND,
    rests: 5 * SECOND,
};
/// Times of udhcpc: three tries of three seconds, then a pause of 20 seconds.
const SYSTEM: Manners =
    Manners { waits: &[3 * SECOND, 3 * SECOND, 3 * SECOND], collects: 0, rests: 20 * SECOND };
