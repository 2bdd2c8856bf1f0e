//! Power state of a machine from all evidence: the report of its BMC, and the requests that the box
//! received from the machine. Pure rules, without I/O and without a clock.
//!
//! A missing request never means off: an installed system may be silent for days. A machine is off
//! only if its BMC reports so, or if a shutdown was acknowledged and silence followed. If two
//! pieces of evidence contradict each other, the state is unknown, and the reason names both.

mod conclusion;
mod request_times;
mod sightings;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use bmc::PowerAction;
pub use conclusion::{Conclusion, Confidence, conclude};
pub use request_times::RequestTimes;
pub use sightings::{Confirming, MachineSightings, Sightings};

/// Maximum age of a request that shows that the machine is on. An agent sends a message at least
/// every 10 s.
pub const FRESH: Duration = Duration::from_secs(30);
/// Maximum age of an answer to ARP that shows that the machine is on. The kernel trusts an answer
/// for up to 45 s (1.5 times `base_reachable_time`), and then needs up to 8 s for the next one.
pub const ARP_FRESH: Duration = Duration::from_secs(60);
/// Minimum silence after which a machine that cannot be asked is taken as off.
pub const SILENT: Duration = Duration::from_secs(120);
/// Maximum time from the acknowledgement of a shutdown to the last request of the machine.
pub const SETTLE: Duration = Duration::from_secs(10);

/// Minimum time from the acknowledgement of a shutdown after which silence means off: a power hook
/// polls every 10 s, and would have polled twice after [`SETTLE`].
pub const OFF_AFTER: Duration = Duration::from_secs(30);

/// Maximum time from the acknowledgement of a shutdown to the last sign of the system. systemd
/// stops a service after 90 s (`DefaultTimeoutStopSec`).
pub const STOP_LIMIT: Duration = Duration::from_secs(150);

/// Origin of a sighting: a request that the machine itself sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Message of the agent on the machine.
    Agent,
    /// DHCP request (RFC 2131, RFC 8415).
    Dhcp,
    /// Request for a boot file by TFTP or HTTP.
    Boot,
    /// Request for metadata, or the phone-home call of the installed system.
    Metadata,
    /// Poll of the power hook in the installed system.
    Hook,
    /// ARP reply. The management engine of a machine with Intel AMT sends replies while the machine
    /// is off.
    Arp,
}

impl Source {
    /// All sources, for tables.
    pub const ALL: [Self; 6] =
        [Self::Agent, Self::Dhcp, Self::Boot, Self::Metadata, Self::Hook, Self::Arp];

    /// Returns the maximum age of a sighting that shows that the machine is on.
    fn fresh(self) -> Duration {
        match self {
            Self::Arp => ARP_FRESH,
            _ => FRESH,
        }
    }

    /// Returns true if a machine that is on repeats the sighting, so that its end means something.
    fn is_steady(self) -> bool {
        matches!(self, Self::Agent | Self::Hook | Self::Arp)
    }

    /// Returns the request as a clause.
    fn clause(self) -> &'static str {
        match self {
            Self::Agent => "its agent sent a message",
            Self::Dhcp => "it sent a DHCP request",
            Self::Boot => "it fetched a boot file",
            Self::Metadata => "it read its metadata",
            Self::Hook => "the power hook of its system polled the box",
            Self::Arp => "it answered ARP",
        }
    }
}

/// Last request from one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Kind of the request.
    pub source: Source,
    /// Time since the request.
    pub age: Duration,
}

impl Sighting {
    fn is_fresh(&self) -> bool {
        self.age <= self.source.fresh()
    }
}

/// All evidence about one machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// State that the BMC reports now; `None` without a BMC, or without an answer.
    pub report: Option<bmc::Power>,
    /// Last request from each source.
    pub sightings: Vec<Sighting>,
    /// Time since the machine acknowledged the last shutdown; `None` without one. Requests before
    /// the end of this shutdown do not count.
    pub shutdown: Option<Duration>,
    /// True after a request to switch on that is later than the shutdown. The shutdown then does
    /// not mean off.
    pub is_woken: bool,
    /// True if a management engine shares the NIC of the machine and answers ARP.
    pub has_engine: bool,
}
