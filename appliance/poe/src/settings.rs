//! Options of a port as the owner writes them, and the keys of its Secret.

use serde::Deserialize;
use stdx::Secret;

use crate::{Authentication, Error, ExpectedName, Login, Options, PortId, Switch, User};

/// Options of a port, in the spelling of the API. An absent field has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Settings {
    /// Group and number of the port in POWER-ETHERNET-MIB: `1.3`.
    pub outlet: String,
    /// Name that the switch must report for the port; empty for no check.
    pub port_name: String,
    /// Number of the interface (`ifIndex`) whose names are compared; 0 for the number of the port.
    pub interface: u32,
    /// UDP port of SNMP; 0 for [`Switch::PORT`].
    pub port: u16,
    /// `3` (default), or `2c` with a community string in clear text.
    pub version: String,
    /// Hash of version 3: `sha256` (default) or `sha1`.
    pub authentication: String,
}

impl Settings {
    /// Returns the connection data of the port at the switch `host`. `secret` returns the value of
    /// a key of the Secret: `username`, `password` and optionally `privacyPassword`, or
    /// `community`.
    ///
    /// # Errors
    /// An option is not valid, or the Secret has no such key.
    pub fn options(
        &self,
        host: &str,
        secret: impl Fn(&str) -> Option<Secret>,
    ) -> Result<Options, Error> {
        let port: PortId = self.outlet.parse()?;
        let interface = if self.interface == 0 { port.index } else { self.interface };
        let name = match self.port_name.trim() {
            "" => None,
            text => Some(ExpectedName { text: text.to_owned(), interface }),
        };
        let udp_port = if self.port == 0 { Switch::PORT } else { self.port };
        let login = self.login(secret)?;
        login.check()?;
        Ok(Options { host: host.to_owned(), udp_port, login, port, name })
    }

    fn login(&self, secret: impl Fn(&str) -> Option<Secret>) -> Result<Login, Error> {
        let invalid = |field, reason| Err(Error::Invalid { field, reason });
        let key = |field| {
            let missing = Error::Invalid { field, reason: "the Secret has no such readable key" };
            secret(field).ok_or(missing)
        };
        let authentication = match (self.version.as_str(), self.authentication.as_str()) {
            ("" | "3", "" | "sha256") => Authentication::Sha256,
            ("" | "3", "sha1") => Authentication::Sha1,
            ("" | "3", _) => return invalid("authentication", "expected sha256 or sha1"),
            // The community string crosses the network in clear text, so the owner must write it.
            ("2c", "") => return key("community").map(Login::Community),
            ("2c", _) => return invalid("authentication", "needs version 3"),
            _ => return invalid("version", "expected 3 or 2c"),
        };
        let (name, password) = (key("username")?.expose().to_owned(), key("password")?);
        let privacy_password = secret("privacyPassword").unwrap_or_else(|| password.clone());
        Ok(Login::User(User { name, authentication, password, privacy_password }))
    }
}

#[cfg(test)]
mod tests;
