//! Check for the protocol of a BMC (`providerOptions`). The box has a driver for IPMI only.

use serde_json::Value;

use super::Connection;

/// Name of IPMI in `providerOptions` and in `preferredOrder`, in lower case.
const IPMI: &str = "ipmitool";
/// Keys of `providerOptions` for protocols without a driver, each with its name for display.
const OTHERS: [(&str, &str); 4] = [
    ("redfish", "Redfish"),
    ("intelAMT", "Intel AMT"),
    ("rpc", "webhooks (rpc)"),
    ("homeassistant", "Home Assistant"),
];
/// Key of `providerOptions` with a list of driver names, in order of preference.
const ORDER: &str = "preferredOrder";

impl Connection {
    /// Returns the reason why the box cannot control the BMC: the options name only protocols other
    /// than IPMI. Returns `None` if the options name IPMI, or no protocol.
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
             nothing was sent to the BMC. If the BMC also supports IPMI, add \
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
