//! Creates drivers. All drivers of one BMC share one line to it, so that its commands are
//! serialized: BMCs answer one request at a time and have few sessions. So the registry is global
//! to the process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::ipmi::Ipmi;
use crate::ipmi::line::Line;
use crate::{Address, Driver, Endpoint};

/// Maximum number of remembered lines. Beyond it, unused lines are forgotten, and with them the
/// suite that worked.
const LINES_LIMIT: usize = 4096;

type Lines = HashMap<(String, u16), Arc<Line>>;

static LINES: LazyLock<Mutex<Lines>> = LazyLock::new(Mutex::default);

/// Returns the driver for the BMC. No packet is sent before the first request.
pub fn open(endpoint: Endpoint) -> Box<dyn Driver> {
    Box::new(ipmi(endpoint))
}

/// Returns the IPMI driver for the BMC, for requests that only IPMI has.
pub fn ipmi(endpoint: Endpoint) -> Ipmi {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() >= LINES_LIMIT {
        lines.retain(|_, line| Arc::strong_count(line) > 1);
    }
    let Address { host, port } = &endpoint.address;
    // Names are compared as written: two names of one BMC give two lines.
    let line = Arc::clone(lines.entry((host.to_ascii_lowercase(), *port)).or_default());
    Ipmi::new(line, endpoint)
}
