//! Timeouts and retry intervals of a download.

use std::time::Duration;

/// Timeouts and retry intervals for a server that is unreachable or silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum time without a byte on a connection. After that, the connection is closed.
    pub stall: Duration,
    /// Maximum time without a new byte of the image. After that, the download fails.
    pub silence: Duration,
    /// First interval between two attempts. Each following interval is twice as long.
    pub first_wait: Duration,
    /// Maximum interval between two attempts.
    pub longest_wait: Duration,
}

impl Timeouts {
    /// Default values. A box may take some minutes to return after its own update.
    pub const DEFAULT: Self = Self {
        stall: Duration::from_secs(30),
        silence: Duration::from_secs(600),
        first_wait: Duration::from_millis(250),
        longest_wait: Duration::from_secs(5),
    };
}
