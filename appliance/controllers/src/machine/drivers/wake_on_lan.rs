//! Connection settings of Wake-on-LAN.

use api::bmc::{Connection, WAKE_ON_LAN};
use bmc::{Address, Protocol, WakeOnLan};
use serde::Deserialize;
use stdx::MacAddr;

use super::http::options;
use super::{Secrets, Target};

/// Key of the Secret with the SecureOn password.
const SECURE_ON: &str = "secureOn";

/// Options of Wake-on-LAN. `connection.host` is only a name.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WakeOnLanOptions {
    /// Hardware addresses; empty for those of the Hardware whose `bmcRef` names the Machine.
    macs: Vec<MacAddr>,
    /// UDP port; 0 means 9.
    port: u16,
}

pub async fn wake_on_lan(connection: &Connection, secrets: &Secrets<'_>) -> Target {
    let options: WakeOnLanOptions = options(connection, WAKE_ON_LAN)?;
    let secure_on = match connection.auth_secret_ref.name.as_str() {
        "" => None,
        _ => Some(secrets.value(&connection.auth_secret_ref, SECURE_ON).await?),
    };
    let port = if options.port == 0 { WakeOnLan::PORT } else { options.port };
    let options = WakeOnLan { macs: options.macs, secure_on, port, interfaces: Vec::new() };
    let address = Address { host: connection.host.clone(), port: 0 };
    Ok((address, Protocol::WakeOnLan(Box::new(options))))
}
