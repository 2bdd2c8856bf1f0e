//! How long a download waits.

use std::time::Duration;

/// How long the download waits for a server that is away or silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A connection without a byte for this long is given up.
    pub stall: Duration,
    /// An image without a new byte for this long is given up.
    pub silence: Duration,
    /// The first wait between two attempts; it doubles.
    pub first_wait: Duration,
    /// The longest wait between two attempts.
    pub longest_wait: Duration,
}

impl Patience {
    /// A box may take some minutes to come back after its own update.
    pub const DEFAULT: Self = Self {
        stall: Duration::from_secs(30),
        silence: Duration::from_secs(600),
        first_wait: Duration::from_millis(250),
        longest_wait: Duration::from_secs(5),
    };
}
