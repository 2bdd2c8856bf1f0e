//! Factory of drivers. All drivers of one BMC share one line, which serializes the commands: a BMC
//! answers one request at a time and has few sessions. Therefore the registry is global to the
//! process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::ipmi::Ipmi;
use crate::ipmi::line::Line;
use crate::{Address, Driver, Endpoint};

/// Maximum number of stored lines. Above this number, unused lines are dropped, together with their
/// last working cipher suite.
const LINES_LIMIT: usize = 4096;

type Lines = HashMap<(String, u16), Arc<Line>>;

static LINES: LazyLock<Mutex<Lines>> = LazyLock::new(Mutex::default);

/// Returns the driver for the BMC. The driver sends no packet before its first request.
pub fn open(endpoint: Endpoint) -> Box<dyn Driver> {
    Box::new(ipmi(endpoint))
}

/// Returns the IPMI driver for the BMC, for requests that [`Driver`] does not have.
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
