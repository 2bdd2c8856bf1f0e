//! Variables of a template, with upstream's names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Returns the value of `.` in a template: the hardware map at the top level, `.hardware` as
/// stored, and `.Hardware` with upstream's Go field names. `.references` is empty: only a caller
/// that may read the referenced objects fills it.
pub fn data(hardware_map: &BTreeMap<String, String>, hardware: &Value) -> Value {
    let mut dot: Map<String, Value> =
        hardware_map.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    dot.insert("references".into(), json!({}));
    if !hardware.is_null() {
        dot.insert("hardware".into(), hardware.clone());
        dot.insert("Hardware".into(), legacy(&hardware["spec"]));
    }
    Value::Object(dot)
}

/// Returns the fields of upstream's legacy Go struct that published templates read.
fn legacy(spec: &Value) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let disks: Vec<Value> = list(&spec["disks"]).iter().map(|it| it["device"].clone()).collect();
    let interfaces: Vec<Value> = list(&spec["interfaces"]).iter().map(interface).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let instance = &spec["metadata"]["instance"];
    json!({
        "Disks": disks,
        "Interfaces": interfaces,
        "UserData": text(&spec["userData"]),
        "VendorData": text(&spec["vendorData"]),
        "Metadata": {
            "Instance": {
                "ID": text(&instance["id"]),
                "Hostname": text(&instance["hostname"]),
            },
        },
    })
}

fn interface(interface: &Value) -> Value {
    let dhcp = &interface["dhcp"];
    let ip = &dhcp["ip"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    json!({
        "DHCP": {
            "MAC": text(&dhcp["mac"]),
            "Hostname": text(&dhcp["hostname"]),
            "DomainName": text(&dhcp["domain_name"]),
            "LeaseTime": dhcp["lease_time"].as_i64().unwrap_or(0),
            "NameServers": list(&dhcp["name_servers"]),
            "TimeServers": list(&dhcp["time_servers"]),
            "Arch": text(&dhcp["arch"]),
            "UEFI": dhcp["uefi"].as_bool().unwrap_or(false),
            "IfaceName": text(&dhcp["iface_name"]),
            "VLANID": text(&dhcp["vlan_id"]),
            "IP": {
                "Address": text(&ip["address"]),
                "Netmask": text(&ip["netmask"]),
                "Gateway": text(&ip["gateway"]),
                "Family": ip["family"].as_i64().unwrap_or(0),
            },
        },
    })
}
