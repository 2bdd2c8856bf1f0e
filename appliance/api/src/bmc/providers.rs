//! Protocols of management controllers, and the one that this box has a driver for.

use serde_json::Value;

use super::Connection;

/// Option name and value of `preferredOrder` that mean IPMI, in lower case.
const IPMI: &str = "ipmitool";
/// Options of `providerOptions` for other protocols, each with its name for display.
const OTHERS: [(&str, &str); 4] = [
    ("redfish", "Redfish"),
    ("intelAMT", "Intel AMT"),
    ("rpc", "webhooks (rpc)"),
    ("homeassistant", "Home Assistant"),
];
/// Option with the names of drivers, first choice first.
const ORDER: &str = "preferredOrder";

impl Connection {
    /// Reason why this box cannot drive the controller: the options name other protocols than IPMI.
    /// A controller without options, or with options for IPMI too, is driven by IPMI.
    pub fn undriven(&self) -> Option<String> {
        let options = self.provider_options.as_ref()?;
        if options.ipmitool.is_some() {
            return None;
        }
        let is_set = |name: &str| options.rest.get(name).is_some_and(|value| !value.is_null());
        let named = OTHERS.iter().filter(|(option, _)| is_set(option));
        let mut ways: Vec<String> = named.map(|(_, name)| (*name).to_owned()).collect();
        let order: Vec<&str> = options
            .rest
            .get(ORDER)
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        if order.iter().any(|name| name.eq_ignore_ascii_case(IPMI)) {
            return None;
        }
        if ways.is_empty() {
            ways.extend(order.iter().map(|name| (*name).to_owned()));
        }
        if ways.is_empty() {
            return None;
        }
        let ways = ways.join(", ");
        Some(format!(
            "this BMC needs the driver {ways}, which this version of the box does not have; \
             nothing was sent to it. If it also supports IPMI, add \
             connection.providerOptions.ipmitool; otherwise switch the machine by hand"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::bmc::Connection;

    fn undriven(options: Value) -> Option<String> {
        let connection = json!({ "host": "10.0.0.9", "providerOptions": options });
        serde_json::from_value::<Connection>(connection).unwrap().undriven()
    }

    #[test]
    fn only_a_bmc_that_may_speak_ipmi_is_driven() {
        for driven in [
            Value::Null,
            json!({}),
            json!({ "ipmitool": {} }),
            json!({ "ipmitool": { "port": 623 }, "redfish": { "port": 443 } }),
            json!({ "redfish": {}, "preferredOrder": ["gofish", "IPMITool"] }),
            json!({ "preferredOrder": [] }),
        ] {
            assert_eq!(undriven(driven.clone()), None, "{driven}");
        }
        for (options, ways) in [
            (json!({ "redfish": { "port": 443 } }), "Redfish,"),
            (json!({ "intelAMT": {} }), "Intel AMT,"),
            (json!({ "rpc": { "consumerURL": "http://x" } }), "webhooks (rpc),"),
            (json!({ "homeassistant": { "switchEntityID": "x" } }), "Home Assistant,"),
            (json!({ "redfish": {}, "rpc": {} }), "Redfish, webhooks (rpc),"),
            (json!({ "preferredOrder": ["supermicro"] }), "supermicro,"),
        ] {
            let why = undriven(options.clone()).unwrap();
            assert!(why.starts_with(&format!("this BMC needs the driver {ways}")), "{why}");
            assert!(why.contains("does not have"), "{why}");
        }
    }
}
