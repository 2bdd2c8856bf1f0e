//! Timeouts and retry intervals of a download.

use std::time::Duration;

/// Timeouts and retry intervals of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Maximum time without a byte on a connection, until a new connection is tried.
    pub stall: Duration,
    /// Maximum time without a new byte of the image, until the download fails.
    pub silence: Duration,
    /// First interval between two attempts; doubles with each further attempt.
    pub first_wait: Duration,
    /// Maximum interval between two attempts.
    pub longest_wait: Duration,
}

impl Timeouts {
    /// Default values. The silence of 10 minutes allows for a restart of the box after an update.
    pub const DEFAULT: Self = Self {
        stall: Duration::from_secs(30),
        silence: Duration::from_secs(600),
        first_wait: Duration::from_millis(250),
        longest_wait: Duration::from_secs(5),
    };
}
