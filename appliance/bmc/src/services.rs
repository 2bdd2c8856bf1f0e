//! Drivers by requests over HTTP: Redfish, webhooks, Home Assistant and smart plugs.

mod redfish;
mod webhook;

pub(crate) use redfish::RedfishDriver;
pub use webhook::check;
pub(crate) use webhook::{WebhookDriver, WebhookLine};
