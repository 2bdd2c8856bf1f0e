//! Where drivers come from. All drivers of one BMC share one line to it, so that its commands are
//! serialised: BMCs answer one thing at a time and have few sessions.

use crate::ipmi::Ipmi;
use crate::{Driver, Endpoint};

/// The driver for that BMC. No packet is sent until it is asked for something.
pub fn open(endpoint: Endpoint) -> Box<dyn Driver> {
    Box::new(Ipmi::new(endpoint))
}
