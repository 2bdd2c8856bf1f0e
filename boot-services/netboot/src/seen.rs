//! What was fetched: the boot story's raw material.

use std::net::IpAddr;

use stdx::MacAddr;

/// One finished fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// A TFTP transfer ended.
    Tftp {
        /// The machine's address.
        peer: IpAddr,
        /// The name it asked for, shortened to [`Fetched::NAME_LIMIT`].
        file: String,
        /// Bytes it acknowledged.
        bytes: u64,
        /// From the request to the end.
        millis: u64,
        /// How it ended.
        outcome: Outcome,
    },
    /// An HTTP answer was handed to the connection, or the connection ended before that.
    Http {
        /// The machine's address.
        peer: IpAddr,
        /// The path it asked for, shortened to [`Fetched::NAME_LIMIT`].
        path: String,
        /// Body bytes handed to the connection.
        bytes: u64,
        /// From the request to the end.
        millis: u64,
        /// The answer's status.
        status: u16,
    },
    /// A script was asked for.
    Script {
        /// The machine's address.
        peer: IpAddr,
        /// The interface, when the path or the address said which.
        mac: Option<MacAddr>,
        /// `namespace/name` of the machine, when it is known.
        hardware: Option<String>,
        /// [`Boot::word`](crate::Boot::word) of what it was told; `stranger` or `unknown` where no
        /// machine is known; `withheld` where who asks is not known to be the machine.
        boot: &'static str,
        /// The answer's status.
        status: u16,
    },
}

impl Fetched {
    /// The most characters of a foreign name that is kept.
    pub const NAME_LIMIT: usize = 200;
}

/// How a TFTP transfer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every block was acknowledged.
    Completed,
    /// The client only wanted the size (RFC 2349) and then stopped; EDK2 does so before each file.
    SizeOnly,
    /// The client stopped with an ERROR packet.
    Aborted {
        /// RFC 1350's code.
        code: u16,
        /// Its text, shortened.
        message: String,
    },
    /// The client fell silent.
    TimedOut,
    /// There is no such file here.
    NotFound,
    /// The request was refused: a write, a mode other than octet, too many transfers.
    Refused(&'static str),
}

/// Told of every fetch, from the servers' own tasks: must not block.
pub trait Observer: Send + Sync + 'static {
    /// `fetched` just ended.
    fn fetched(&self, fetched: Fetched);
}

/// Nothing is remembered.
impl Observer for () {
    fn fetched(&self, _: Fetched) {}
}

/// A foreign name, shortened for the record.
pub(crate) fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(Fetched::NAME_LIMIT).collect()
}
