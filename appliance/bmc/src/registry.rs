//! Where drivers come from. All drivers of one BMC share one line to it, so that its commands are
//! serialised: BMCs answer one thing at a time and have few sessions. The registry is the
//! process's own, because so is that rule.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::ipmi::Ipmi;
use crate::ipmi::line::Line;
use crate::{Address, Driver, Endpoint};

/// Lines remembered; beyond it those not in use are forgotten, and with them which suite worked.
const LINES_LIMIT: usize = 4096;

type Lines = HashMap<(String, u16), Arc<Line>>;

static LINES: LazyLock<Mutex<Lines>> = LazyLock::new(Mutex::default);

/// The driver for that BMC. No packet is sent until it is asked for something.
pub fn open(endpoint: Endpoint) -> Box<dyn Driver> {
    Box::new(ipmi(endpoint))
}

/// The IPMI driver for that BMC, for what other BMCs cannot be asked.
pub fn ipmi(endpoint: Endpoint) -> Ipmi {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() >= LINES_LIMIT {
        lines.retain(|_, line| Arc::strong_count(line) > 1);
    }
    let Address { host, port } = &endpoint.address;
    // Names are compared as written: two names of one BMC are two lines.
    let line = Arc::clone(lines.entry((host.to_ascii_lowercase(), *port)).or_default());
    Ipmi::new(line, endpoint)
}
