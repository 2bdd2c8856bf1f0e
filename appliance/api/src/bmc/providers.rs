//! Choice of the protocol of a BMC (`providerOptions`).

use serde_json::Value;

use super::Connection;

/// Protocols whose options exclude all other protocols.
const EXCLUSIVE: [(&str, Provider); 5] = [
    (HOME_ASSISTANT, Provider::HomeAssistant),
    (RPC, Provider::Rpc),
    (PLUG, Provider::Plug),
    (POE, Provider::Poe),
    (WAKE_ON_LAN, Provider::WakeOnLan),
];
/// Key of `providerOptions` for Home Assistant.
pub const HOME_ASSISTANT: &str = "homeassistant";
/// Key of `providerOptions` for a webhook.
pub const RPC: &str = "rpc";
/// Key of `providerOptions` for Redfish.
pub const REDFISH: &str = "redfish";
/// Key of `providerOptions` for a smart plug, which upstream lacks.
pub const PLUG: &str = "plug";
/// Key of `providerOptions` for a port of a switch, which upstream lacks.
pub const POE: &str = "poe";
/// Key of `providerOptions` for Wake-on-LAN, which upstream lacks.
pub const WAKE_ON_LAN: &str = "wakeOnLAN";
/// Key of `providerOptions` with a list of driver names, in order of preference.
const ORDER: &str = "preferredOrder";

/// Protocol with a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// IPMI 2.0 over LAN.
    Ipmi,
    /// Intel AMT by WS-Management.
    IntelAmt,
    /// Redfish service of the BMC.
    Redfish,
    /// Webhook of the owner.
    Rpc,
    /// Switch of Home Assistant.
    HomeAssistant,
    /// Smart plug, or a switch port by HTTP requests.
    Plug,
    /// Port of a switch with Power over Ethernet, by SNMP.
    Poe,
    /// Magic packets of Wake-on-LAN.
    WakeOnLan,
}

impl Connection {
    /// Returns the protocol: an exclusive one, else the first of `preferredOrder` with a driver,
    /// else the one with options, IPMI first as upstream.
    ///
    /// # Errors
    /// The options name only protocols without a driver; the error is a sentence.
    pub fn provider(&self) -> Result<Provider, String> {
        let Some(options) = &self.provider_options else { return Ok(Provider::Ipmi) };
        let is_set = |name: &str| options.rest.get(name).is_some_and(|value| !value.is_null());
        if let Some((_, provider)) = EXCLUSIVE.iter().find(|(name, _)| is_set(name)) {
            return Ok(*provider);
        }
        let order: Vec<&str> = options
            .rest
            .get(ORDER)
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let preferred = order.iter().find_map(|name| match name.to_ascii_lowercase().as_str() {
            "ipmitool" => Some(Provider::Ipmi),
            "intelamt" => Some(Provider::IntelAmt),
            "gofish" | REDFISH => Some(Provider::Redfish),
            _ => None,
        });
        let ipmi = options.ipmitool.as_ref().map(|_| Provider::Ipmi);
        let redfish = is_set(REDFISH).then_some(Provider::Redfish);
        let set = ipmi.or(redfish).or(options.intel_amt.as_ref().map(|_| Provider::IntelAmt));
        if let Some(provider) = preferred.or(set) {
            return Ok(provider);
        }
        if order.is_empty() {
            return Ok(Provider::Ipmi);
        }
        Err(format!(
            "this BMC needs the driver {}, which this version of the box does not have; \
             nothing was sent to the BMC. If the BMC also supports IPMI, add \
             connection.providerOptions.ipmitool; otherwise switch the machine by hand",
            order.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::bmc::{Connection, Provider};

    fn connection(options: Value) -> Connection {
        let connection = json!({ "host": "10.0.0.9", "providerOptions": options });
        serde_json::from_value(connection).unwrap()
    }

    fn undriven(options: Value) -> Option<String> {
        connection(options).provider().err()
    }

    #[test]
    fn the_protocol_is_the_preferred_one_with_a_driver() {
        for (options, expected) in [
            (json!({}), Provider::Ipmi),
            (json!({ "intelAMT": {} }), Provider::IntelAmt),
            (json!({ "intelAMT": {}, "ipmitool": {} }), Provider::Ipmi),
            (
                json!({ "intelAMT": {}, "ipmitool": {}, "preferredOrder": ["dell", "IntelAMT"] }),
                Provider::IntelAmt,
            ),
            (json!({ "intelAMT": {}, "redfish": {} }), Provider::Redfish),
            (json!({ "redfish": {}, "ipmitool": {} }), Provider::Ipmi),
            (json!({ "preferredOrder": ["dell", "gofish"] }), Provider::Redfish),
            (json!({ "preferredOrder": ["intelAMT"] }), Provider::IntelAmt),
            (json!({ "rpc": { "consumerURL": "http://x" }, "ipmitool": {} }), Provider::Rpc),
            (json!({ "rpc": {}, "homeassistant": {} }), Provider::HomeAssistant),
            (json!({ "plug": { "preset": "shelly" }, "redfish": {} }), Provider::Plug),
            (json!({ "poe": { "outlet": "1.3" } }), Provider::Poe),
            (json!({ "wakeOnLAN": {} }), Provider::WakeOnLan),
        ] {
            assert_eq!(connection(options.clone()).provider(), Ok(expected), "{options}");
        }
        let amt =
            json!({ "intelAMT": { "port": 7, "hostScheme": "https" }, "redfish": { "a": 1 } });
        let read = connection(amt.clone()).provider_options.unwrap();
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(
            (&written["intelAMT"], &written["redfish"]),
            (&amt["intelAMT"], &amt["redfish"])
        );
    }

    #[test]
    fn a_bmc_without_a_driver_is_named() {
        for driven in [
            Value::Null,
            json!({ "ipmitool": { "port": 623 }, "redfish": { "port": 443 } }),
            json!({ "redfish": {}, "preferredOrder": ["gofish", "IPMITool"] }),
            json!({ "preferredOrder": [] }),
        ] {
            assert_eq!(undriven(driven.clone()), None, "{driven}");
        }
        for (options, ways) in [
            (json!({ "preferredOrder": ["dell", "openbmc"] }), "dell, openbmc,"),
            (json!({ "preferredOrder": ["supermicro"] }), "supermicro,"),
        ] {
            let why = undriven(options.clone()).unwrap();
            assert!(why.starts_with(&format!("this BMC needs the driver {ways}")), "{why}");
            assert!(why.contains("does not have"), "{why}");
        }
    }
}
