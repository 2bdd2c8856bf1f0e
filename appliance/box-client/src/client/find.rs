//! Finds an object by its name, id, MAC address or IP address.

use std::net::IpAddr;

use api::meta::Resource;
use api::tinkerbell::{HARDWARE, Hardware};
use serde_json::Value;
use stdx::MacAddr;

use super::{Client, Path};
use crate::error::ClientError;

/// JSON pointer to the annotation with the id from an older hardware file.
const LEGACY_ID: &str = "/metadata/annotations/tinbox.dev~1legacy-id";

/// Returns the object of `resource` whose name or uid is `text`. Hardware is also found by MAC
/// address, IP address, agent id, and the id of an older hardware file.
///
/// # Errors
/// No object matches, or more than one.
pub async fn find(
    client: &Client,
    resource: Resource,
    namespace: &str,
    text: &str,
) -> Result<Value, ClientError> {
    let by_name = Path::object(resource, namespace, text);
    if !text.is_empty()
        && let Some(object) = client.get_if_any(&by_name).await?
    {
        return Ok(object);
    }
    let (items, _) = client.list(&Path::collection(resource, namespace), "").await?;
    pick(items, resource, namespace, text)
}

fn pick(
    items: Vec<Value>,
    resource: Resource,
    namespace: &str,
    text: &str,
) -> Result<Value, ClientError> {
    let mut found: Vec<Value> =
        items.into_iter().filter(|it| is_called(it, resource, text)).collect();
    match (found.pop(), found.is_empty()) {
        (Some(object), true) => Ok(object),
        (None, _) => {
            let (text, namespace) = (text.to_owned(), namespace.to_owned());
            Err(ClientError::Unknown { resource, text, namespace })
        }
        (Some(last), false) => {
            found.push(last);
            let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
            let names: Vec<String> = found.iter().filter_map(name).collect();
            Err(ClientError::Ambiguous { resource, text: text.to_owned(), names: names.join(", ") })
        }
    }
}

fn is_called(object: &Value, resource: Resource, text: &str) -> bool {
    if text.is_empty() {
        return false;
    }
    let is = |pointer: &str| object.pointer(pointer).and_then(Value::as_str) == Some(text);
    if is("/metadata/name") || is("/metadata/uid") {
        return true;
    }
    if resource != HARDWARE {
        return false;
    }
    if is(LEGACY_ID) {
        return true;
    }
    let Ok(hardware) = serde_json::from_value::<Hardware>(object.clone()) else { return false };
    let spec = &hardware.spec;
    let mac = text.parse::<MacAddr>().ok();
    let address = text.parse::<IpAddr>().ok();
    spec.agent_id().as_deref() == Some(text)
        || mac.is_some_and(|mac| spec.macs().any(|it| it == mac))
        || address.is_some_and(|address| spec.addresses().any(|it| it == address))
}

#[cfg(test)]
mod tests {
    use super::pick;
    use api::tinkerbell::{HARDWARE, TEMPLATE};
    use serde_json::{Value, json};

    fn rack() -> Vec<Value> {
        let machine = |name: &str, mac: &str, address: &str| {
            let dhcp = json!({ "mac": mac, "ip": { "address": address } });
            json!({
                "metadata": {
                    "name": name,
                    "uid": format!("uid-{name}"),
                    "annotations": { "tinbox.dev/legacy-id": format!("old-{name}") },
                },
                "spec": { "interfaces": [{ "dhcp": dhcp }] },
            })
        };
        vec![
            machine("nuc1", "52:54:00:77:00:01", "10.77.0.11"),
            machine("nuc2", "52:54:00:77:00:02", "10.77.0.12"),
            machine("twin", "52:54:00:77:00:02", "fd00::2"),
        ]
    }

    #[test]
    fn every_way_to_call_a_machine() {
        for text in
            ["nuc1", "uid-nuc1", "old-nuc1", "52:54:00:77:00:01", "52-54-00-77-00-01", "10.77.0.11"]
        {
            let found = pick(rack(), HARDWARE, "default", text).unwrap();
            assert_eq!(found["metadata"]["name"], "nuc1", "{text}");
        }
        let found = pick(rack(), HARDWARE, "default", "fd00:0::2").unwrap();
        assert_eq!(found["metadata"]["name"], "twin");
    }

    #[test]
    fn nothing_and_too_much_are_said() {
        let error = pick(rack(), HARDWARE, "default", "nuc9").unwrap_err();
        assert_eq!(error.to_string(), "found no hardware \"nuc9\" in namespace default");
        let error = pick(rack(), HARDWARE, "default", "52:54:00:77:00:02").unwrap_err();
        let text = "\"52:54:00:77:00:02\" matches more than one hardware: nuc2, twin";
        assert_eq!(error.to_string(), text);
        assert!(pick(rack(), TEMPLATE, "default", "10.77.0.11").is_err());
        assert!(pick(rack(), HARDWARE, "default", "").is_err());
    }
}
