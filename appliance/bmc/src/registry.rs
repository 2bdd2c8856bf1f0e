//! Factory of drivers. All drivers of one BMC share one line, which serializes the commands: a BMC
//! answers one request at a time and has few sessions. Therefore the registry is global to the
//! process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::services::{PoeDriver, RedfishDriver, WebhookDriver, WebhookLine};
use crate::wake_on_lan::WakeOnLanDriver;
use crate::{AmtOptions, Driver, Endpoint, IntelAmt, IpmiLan, Protocol};

/// Maximum number of stored lines of one protocol. Above this number, unused lines are dropped,
/// together with their last working cipher suite or their certificate of first use.
const LINES_LIMIT: usize = 4096;

/// Lines of one protocol, by host name or address and port.
type Lines<L> = HashMap<(String, u16), Arc<L>>;

static IPMI_LINES: LazyLock<Mutex<Lines<ipmi::Line>>> = LazyLock::new(Mutex::default);
static WEBHOOK_LINES: LazyLock<Mutex<Lines<WebhookLine>>> = LazyLock::new(Mutex::default);
static REDFISH_LINES: LazyLock<Mutex<Lines<redfish::Line>>> = LazyLock::new(Mutex::default);
static POE_LINES: LazyLock<Mutex<Lines<poe::Line>>> = LazyLock::new(Mutex::default);
static AMT_LINES: LazyLock<Mutex<Lines<amt::Line>>> = LazyLock::new(Mutex::default);

/// Returns the driver for the BMC. The driver sends no packet before its first request.
pub fn open(endpoint: Endpoint) -> Box<dyn Driver> {
    match endpoint.protocol {
        Protocol::Ipmi { .. } => Box::new(ipmi(endpoint)),
        Protocol::Amt(ref options) => {
            let options = options.clone();
            Box::new(intel_amt(endpoint, options))
        }
        Protocol::Redfish(ref options) => {
            let options = options.clone();
            Box::new(RedfishDriver::new(line(&REDFISH_LINES, &endpoint), endpoint, options))
        }
        Protocol::Poe(ref options) => {
            let options = (**options).clone();
            Box::new(PoeDriver::new(line(&POE_LINES, &endpoint), endpoint, options))
        }
        Protocol::WakeOnLan(_) => Box::new(WakeOnLanDriver::new(endpoint)),
        Protocol::Rpc(..) | Protocol::HomeAssistant { .. } | Protocol::Plug(_) => {
            Box::new(WebhookDriver::new(line(&WEBHOOK_LINES, &endpoint), endpoint))
        }
    }
}

/// Returns the IPMI driver for the BMC, for requests that [`Driver`] does not have.
pub fn ipmi(endpoint: Endpoint) -> IpmiLan {
    IpmiLan::new(line(&IPMI_LINES, &endpoint), endpoint)
}

/// Returns the Intel AMT driver for the machine, for requests that [`Driver`] does not have.
pub fn intel_amt(endpoint: Endpoint, options: AmtOptions) -> IntelAmt {
    IntelAmt::new(line(&AMT_LINES, &endpoint), endpoint, options)
}

fn line<L: Default>(lines: &Mutex<Lines<L>>, endpoint: &Endpoint) -> Arc<L> {
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() >= LINES_LIMIT {
        lines.retain(|_, line| Arc::strong_count(line) > 1);
    }
    let (host, port) = (&endpoint.address.host, endpoint.address.port);
    // Names are compared as written: two names of one BMC give two lines.
    Arc::clone(lines.entry((host.to_ascii_lowercase(), port)).or_default())
}
