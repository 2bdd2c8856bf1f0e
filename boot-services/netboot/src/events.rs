//! Events about finished fetches, from which a machine's boot history is made.

use std::net::IpAddr;

use stdx::MacAddr;

/// Record of one finished fetch, by TFTP or HTTP, or of one script request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchEvent {
    /// A TFTP transfer ended.
    Tftp {
        /// IP address of the client; an IPv4-mapped IPv6 address appears as IPv4.
        peer: IpAddr,
        /// Requested file name, shortened to [`FetchEvent::NAME_LIMIT`] characters.
        file: String,
        /// Bytes that the client acknowledged.
        bytes: u64,
        /// Milliseconds from the request to the end.
        millis: u64,
        /// Result of the transfer.
        outcome: Outcome,
    },
    /// An HTTP response was written to the connection completely, or the connection ended before
    /// that.
    Http {
        /// IP address of the client; an IPv4-mapped IPv6 address appears as IPv4.
        peer: IpAddr,
        /// Requested path, shortened to [`FetchEvent::NAME_LIMIT`] characters.
        path: String,
        /// Body bytes written to the connection.
        bytes: u64,
        /// Milliseconds from the request to the end.
        millis: u64,
        /// HTTP status code of the response.
        status: u16,
    },
    /// A client requested its boot script.
    Script {
        /// IP address of the client; an IPv4-mapped IPv6 address appears as IPv4.
        peer: IpAddr,
        /// MAC address of the interface, if the path or the client's IP address identifies one.
        mac: Option<MacAddr>,
        /// `namespace/name` of the machine's hardware object; `None` for an unknown machine.
        hardware: Option<String>,
        /// Label of the plan's action ([`Boot::label`](crate::Boot::label)). For an unknown
        /// machine: `unknown-machine` (the machine got the common script) or `unknown`. `withheld`:
        /// the client was not verified as the machine.
        boot: &'static str,
        /// HTTP status code of the response.
        status: u16,
    },
}

impl FetchEvent {
    /// Maximum characters of a client's file name or path in a record.
    pub const NAME_LIMIT: usize = 200;
}

/// Result of a TFTP transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The client acknowledged every block.
    Completed,
    /// The client requested only the size (RFC 2349) and then stopped. EDK2 does so before each
    /// file.
    SizeOnly,
    /// The client stopped the transfer with an ERROR packet.
    Aborted {
        /// Error code from the packet (RFC 1350).
        code: u16,
        /// Error text from the packet, at most [`FetchEvent::NAME_LIMIT`] characters.
        message: String,
    },
    /// The client acknowledged nothing new for 20 s
    /// ([`GIVE_UP`](crate::tftp::session::GIVE_UP)).
    TimedOut,
    /// The requested file does not exist.
    NotFound,
    /// The server refused the request: a write, a mode other than octet, or too many transfers.
    Refused(&'static str),
}

/// Receiver of a record of every fetch. The servers call it in their own tasks, so it must not
/// block.
pub trait Observer: Send + Sync + 'static {
    /// Records a fetch that has just ended.
    fn fetched(&self, event: FetchEvent);
}

/// Implementation that discards every record.
impl Observer for () {
    fn fetched(&self, _: FetchEvent) {}
}

/// Returns a client's name without control characters, at most [`FetchEvent::NAME_LIMIT`] long.
pub(crate) fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(FetchEvent::NAME_LIMIT).collect()
}
