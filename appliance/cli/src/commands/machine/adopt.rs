//! `machine adopt`: adds the MAC address of a new NIC to a known machine.

use api::tinkerbell::{HARDWARE, Hardware};
use serde_json::{Value, json};
use stdx::MacAddr;

use super::super::{Context, name_of};
use crate::error::Error;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address of the machine
    #[arg(value_name = "NAME|ID|MAC|IP")]
    machine: String,

    /// MAC of the new NIC
    #[arg(value_name = "MAC")]
    mac: MacAddr,

    /// MAC of a removed NIC, whose address and settings the new NIC gets [default: the new NIC is
    /// added, with network boot allowed]
    #[arg(long, value_name = "MAC")]
    instead_of: Option<MacAddr>,
}

/// Adds the MAC address to the machine.
///
/// # Errors
/// The MAC belongs to another machine, or the box refuses.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let object = context.find(HARDWARE, &arguments.machine).await?;
    let name = name_of(&object);
    let (mac, old) = (arguments.mac, arguments.instead_of);
    let all = context.list(HARDWARE).await?;
    let has = |object: &&Value| typed(object).spec.macs().any(|own| own == mac);
    let changed = match all.iter().find(has) {
        Some(owner) => Err(format!("{mac} is already a MAC of {}", name_of(owner))),
        None => adopted(object, mac, old),
    };
    let changed = changed.map_err(|why| Error::Unable {
        what: format!("give {mac} to {name}"),
        why,
        hint: "`tinbox hardware list` shows which machine has which MAC",
    })?;
    let object = context.client.replace(&context.path(HARDWARE, &name), &changed).await?;
    context.printer.done(&object, &format!("has {mac}"))
}

fn typed(object: &Value) -> Hardware {
    serde_json::from_value(object.clone()).unwrap_or_default()
}

/// Returns the machine with the new MAC address: in place of `old`, or on a new interface.
fn adopted(mut object: Value, mac: MacAddr, old: Option<MacAddr>) -> Result<Value, String> {
    let place = typed(&object)
        .spec
        .interfaces
        .iter()
        .position(|it| old.is_some() && it.dhcp.as_ref().and_then(|dhcp| dhcp.mac) == old);
    let own_id = object["spec"]["agentID"].as_str().and_then(|id| id.parse().ok());
    match (old, place) {
        (Some(old), None) => return Err(format!("it has no interface with {old}")),
        (Some(old), Some(place)) => {
            object["spec"]["interfaces"][place]["dhcp"]["mac"] = mac.to_string().into();
            if own_id == Some(old) {
                object["spec"]["agentID"] = mac.to_string().into();
            }
        }
        (None, _) => {
            let interface = json!({
                "dhcp": { "mac": mac.to_string() },
                "netboot": { "allowPXE": true },
            });
            match object["spec"]["interfaces"].as_array_mut() {
                Some(interfaces) => interfaces.push(interface),
                None => object["spec"]["interfaces"] = json!([interface]),
            }
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stdx::MacAddr;

    use super::adopted;

    const OLD: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
    const NEW: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 0x99]);

    fn nuc1() -> Value {
        let dhcp = json!({ "mac": "52:54:00:77:00:01", "ip": { "address": "10.77.0.11" } });
        json!({
            "metadata": { "name": "nuc1", "resourceVersion": "7" },
            "spec": { "agentID": "52:54:00:77:00:01", "interfaces": [{ "dhcp": dhcp }] },
        })
    }

    #[test]
    fn a_new_card_takes_the_place_of_the_old_one() {
        let changed = adopted(nuc1(), NEW, Some(OLD)).unwrap();
        let dhcp = json!({ "mac": "52:54:00:77:00:99", "ip": { "address": "10.77.0.11" } });
        assert_eq!(changed["spec"]["interfaces"], json!([{ "dhcp": dhcp }]));
        assert_eq!(changed["spec"]["agentID"], "52:54:00:77:00:99");
        assert_eq!(changed["metadata"], nuc1()["metadata"]);
    }

    #[test]
    fn or_is_one_more() {
        let changed = adopted(nuc1(), NEW, None).unwrap();
        assert_eq!(changed["spec"]["interfaces"][0], nuc1()["spec"]["interfaces"][0]);
        let added = json!({ "dhcp": { "mac": NEW.to_string() }, "netboot": { "allowPXE": true } });
        assert_eq!(changed["spec"]["interfaces"][1], added);
        assert_eq!(changed["spec"]["agentID"], nuc1()["spec"]["agentID"]);
        assert_eq!(adopted(json!({}), NEW, None).unwrap()["spec"]["interfaces"], json!([added]));
    }

    #[test]
    fn a_card_that_it_never_had_cannot_be_replaced() {
        let error = adopted(nuc1(), OLD, Some(NEW)).unwrap_err();
        assert_eq!(error, "it has no interface with 52:54:00:77:00:99");
    }
}
