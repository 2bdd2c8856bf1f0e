//! Variables of a template (`--hardware`), and the machine of each variable.

use std::collections::BTreeMap;

use api::tinkerbell::{HARDWARE, Hardware};
use serde_json::Value;

use super::super::{Context, name_of};
use crate::error::Error;

/// Default variable for the machine of a template.
const DEVICE: &str = "device_1";

/// Finds the Hardware of each variable, from a machine's name or from the variables as JSON.
///
/// # Errors
/// `text` is not valid JSON, or names an unknown machine.
pub async fn machines(context: &Context, text: &str) -> Result<BTreeMap<String, Value>, Error> {
    let mut machines = BTreeMap::new();
    for (variable, text) in named(text)? {
        machines.insert(variable, context.find(HARDWARE, &text).await?);
    }
    Ok(machines)
}

/// Parses `text` to a map from variable to machine name. A plain name is the machine of `device_1`.
fn named(text: &str) -> Result<BTreeMap<String, String>, Error> {
    if !text.trim_start().starts_with('{') {
        return Ok([(DEVICE.to_owned(), text.to_owned())].into());
    }
    let map: BTreeMap<String, String> = serde_json::from_str(text).map_err(|error| {
        Error::Usage(format!("--hardware is not JSON like {{\"device_1\":\"MAC\"}}: {error}"))
    })?;
    if map.is_empty() {
        return Err(Error::Usage("--hardware contains no machine".to_owned()));
    }
    Ok(map)
}

/// Returns the agent id of the machine of each variable.
///
/// # Errors
/// A machine has no agent id, so `what` cannot be done.
pub fn agents(
    what: &str,
    machines: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut map = BTreeMap::new();
    for (variable, object) in machines {
        let agent = hardware(object).spec.agent_id().ok_or_else(|| Error::Unable {
            what: what.to_owned(),
            why: format!("hardware {} has neither a MAC nor an agentID", name_of(object)),
            hint: "add an interface with dhcp.mac, push the hardware, then repeat the command",
        })?;
        map.insert(variable.clone(), agent);
    }
    Ok(map)
}

/// Returns the machine to boot, whose facts the template gets: of `device_1`, else the first.
///
/// # Errors
/// `machines` is empty.
pub fn first(machines: &BTreeMap<String, Value>) -> Result<&Value, Error> {
    let first = machines.get(DEVICE).or_else(|| machines.values().next());
    first.ok_or_else(|| Error::Usage("--hardware contains no machine".to_owned()))
}

pub fn hardware(object: &Value) -> Hardware {
    serde_json::from_value(object.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn machines_by_name_or_by_json() {
        assert_eq!(named("nuc1").unwrap()["device_1"], "nuc1");
        let two = named(r#"{"device_1":"a","device_2":"b"}"#).unwrap();
        assert_eq!(two["device_2"], "b");
        for text in ["{", "{}", r#"{"device_1":1}"#] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}
