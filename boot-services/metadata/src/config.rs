//! Settings of the metadata service: section `[metadata]` of the box's configuration.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde::Deserialize;

/// Maximum networks of trusted proxies.
const MAX_PROXIES: usize = 64;
/// Minimum and maximum of `user_data_window_secs`: a minute, thirty days.
const WINDOW_SECS: std::ops::RangeInclusive<u32> = 60..=2_592_000;
/// Maximum of `phone_home_grace_secs`: a day.
const MAX_GRACE_SECS: u32 = 86_400;

/// Settings of the metadata service. Each default except that of `user_data` is Tinkerbell's
/// behavior.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Session tokens in the EC2 tree. `optional`: a request needs no token. `required`: a request
    /// without a valid token gets status 401. Of cloud-init's datasources, only the EC2 datasource
    /// fetches a token, and only on machines whose firmware identifies as Amazon's, so with
    /// `required`, cloud-init on other machines reads nothing from the EC2 tree. The key does not
    /// apply to `/nocloud`, `/ignition`, `/talos` and `/metadata`, whose clients do not support
    /// tokens.
    pub imdsv2: Imdsv2,
    /// Serves `/tootles/instanceID/<id>/2009-04-04/…` if true: any client that knows a machine's id
    /// can then read the machine's data, including user data.
    pub instance_endpoint: bool,
    /// Networks of proxies whose `X-Forwarded-For` header is trusted; empty by default.
    pub trusted_proxies: Vec<IpNet>,
    /// Source of the IP addresses of installed systems, for the `network-config` of NoCloud.
    /// `dhcp`: DHCP; a static address only on an interface without DHCP. `static`: a static address
    /// for each reservation, so that the system does not need the DHCP server of the box.
    pub addressing: Addressing,
    /// Condition under which a machine gets its user data. `address`: always, for requests from the
    /// address of the machine. `window`: only during an installation by a workflow, and for a
    /// limited time after it.
    pub user_data: UserData,
    /// Seconds after a successful installation for which a machine gets its user data. 60 to
    /// 2592000. Applies to `user_data = "window"`.
    pub user_data_window_secs: u32,
    /// Seconds after the first phone-home for which a machine still gets its user data. 0 to 86400.
    /// Applies to `user_data = "window"`.
    pub phone_home_grace_secs: u32,
}

/// Requirement of a session token (IMDSv2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Imdsv2 {
    /// A request needs no token, but a token in a request must be valid.
    #[default]
    Optional,
    /// A request without a valid token gets status 401.
    Required,
}

/// Source of the IP addresses of installed systems.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addressing {
    /// The system uses DHCP, so the reservation stays the only record of its address. The
    /// configuration has a static address only for an interface without DHCP.
    #[default]
    Dhcp,
    /// The configuration has a static address wherever an address is reserved. The system then does
    /// not need the box.
    Static,
}

/// Condition under which a machine gets its user data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserData {
    /// At any time, for each request from the machine's address.
    Address,
    /// During the machine's installation, and for a limited time after it ([`crate`]).
    #[default]
    Window,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            imdsv2: Imdsv2::default(),
            instance_endpoint: false,
            trusted_proxies: Vec::new(),
            addressing: Addressing::default(),
            user_data: UserData::default(),
            user_data_window_secs: 3600,
            phone_home_grace_secs: 300,
        }
    }
}

impl Config {
    /// Returns all mistakes; each names the key, its limit and the unit.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let proxies = &self.trusted_proxies;
        if proxies.len() > MAX_PROXIES {
            let count = proxies.len();
            problems.push(format!(
                "metadata.trusted_proxies: {count} entries, the limit is {MAX_PROXIES}"
            ));
        }
        for open in proxies.iter().filter(|network| network.prefix_len() == 0) {
            problems.push(format!("metadata.trusted_proxies: {open} would trust every client"));
        }
        let (from, to) = (WINDOW_SECS.start(), WINDOW_SECS.end());
        for (key, secs, from, to) in [
            ("user_data_window_secs", self.user_data_window_secs, from, to),
            ("phone_home_grace_secs", self.phone_home_grace_secs, &0, &MAX_GRACE_SECS),
        ] {
            if !(from..=to).contains(&&secs) {
                problems
                    .push(format!("metadata.{key}: {secs} s is not between {from} s and {to} s"));
            }
        }
        problems
    }

    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_secs(self.user_data_window_secs.into())
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.phone_home_grace_secs.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Imdsv2, UserData};

    fn read(json: &str) -> Result<Config, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn without_settings_user_data_has_a_window_and_the_rest_is_as_in_tinkerbell() {
        let config = read("{}").unwrap();
        assert_eq!((config.imdsv2, config.user_data), (Imdsv2::Optional, UserData::Window));
        assert!(!config.instance_endpoint && config.trusted_proxies.is_empty());
        assert_eq!(config.problems(), Vec::<String>::new());
    }

    #[test]
    fn every_mistake_is_told_and_unknown_keys_are_refused() {
        let config = read(
            r#"{"imdsv2": "required", "user_data": "window", "user_data_window_secs": 1,
                "phone_home_grace_secs": 86401, "trusted_proxies": ["0.0.0.0/0", "fd00::/8"]}"#,
        );
        assert_eq!(
            config.unwrap().problems(),
            [
                "metadata.trusted_proxies: 0.0.0.0/0 would trust every client",
                "metadata.user_data_window_secs: 1 s is not between 60 s and 2592000 s",
                "metadata.phone_home_grace_secs: 86401 s is not between 0 s and 86400 s",
            ]
        );
        let error = read(r#"{"imds": "required"}"#).unwrap_err();
        assert!(error.contains("unknown field `imds`"), "{error}");
        assert!(read(r#"{"trusted_proxies": ["10.0.0.300/8"]}"#).is_err());
    }
}
