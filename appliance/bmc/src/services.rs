//! Drivers by requests to a server or a switch: Redfish, webhooks, Home Assistant, smart plugs, and
//! ports with Power over Ethernet.

mod poe;
mod redfish;
mod webhook;

use crate::{Endpoint, Error};

pub(crate) use poe::PoeDriver;
pub(crate) use redfish::RedfishDriver;
pub(crate) use webhook::{WebhookDriver, WebhookLine};

/// Checks the options of a webhook, Home Assistant, a plug or a port. Sends nothing.
///
/// # Errors
/// An option is not valid.
pub fn check(endpoint: &Endpoint) -> Result<(), Error> {
    webhook::check(endpoint)?;
    poe::check(endpoint)
}
