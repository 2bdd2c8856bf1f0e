//! Connection settings of Redfish.

use api::bmc::{Connection, REDFISH};
use bmc::{Address, Fingerprint, Protocol, RedfishOptions, RedfishSecurity};
use serde::Deserialize;

use super::{Target, first_port, http, trust};

/// Options of Redfish, as upstream's `redfish` with the additional field `scheme`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    /// TCP port; 0 for that of the scheme.
    port: u16,
    /// `https` (default), or `http` without TLS.
    scheme: String,
    /// Identifier or name of the system; empty for the only or first one.
    system_name: String,
    /// True to log in by HTTP Basic instead of a session.
    use_basic_auth: bool,
}

pub fn redfish(connection: &Connection, pin: Option<Fingerprint>) -> Target {
    let options: Options = http::options(connection, REDFISH)?;
    let trust = trust(connection, pin, &options.scheme, [REDFISH, "scheme"])?;
    let (security, standard) = match trust {
        Some(trust) => (RedfishSecurity::Tls(trust), RedfishSecurity::TLS_PORT),
        None => (RedfishSecurity::Plain, RedfishSecurity::PLAIN_PORT),
    };
    // The port of the connection is the one of IPMI.
    let port = first_port([options.port, 0], standard);
    let address = Address { host: connection.host.clone(), port };
    let (system, is_basic) = (options.system_name, options.use_basic_auth);
    Ok((address, Protocol::Redfish(RedfishOptions { system, is_basic, security })))
}
