//! Machines that enrol: an agent that nobody knows becomes Hardware, by what it says of itself.
//!
//! Names, label and annotation are those of Tinkerbell's auto-discovery; what differs is that
//! netboot is allowed, so that the machine can be given something to do.

use std::sync::Arc;

use api::tinkerbell::HARDWARE;
use controllers::{ObjectError, Objects};
use serde_json::{Value, json};
use stdx::MacAddr;
use tokio::sync::mpsc;
use workflow_rpc::Attributes;

/// Says that nobody wrote this Hardware.
const LABEL: &str = "tinkerbell.org/auto-discovered";
/// What the agent said of its machine, as JSON.
const ATTRIBUTES: &str = "tinkerbell.org/agent-attributes";
/// Bytes of attributes that are kept (upstream's limit).
const ATTRIBUTES_MAX: usize = 64 << 10;
/// Where discovered machines are put.
const NAMESPACE: &str = "default";
/// Machines that wait to be written; more ask again.
const WAITING_MAX: usize = 64;
/// Interfaces and disks of one machine that are written.
const PARTS_MAX: usize = 64;

/// An agent that nobody knows.
pub struct Stranger {
    agent_id: String,
    attributes: Attributes,
}

/// Takes in strangers.
#[derive(Clone)]
pub struct Discovery(mpsc::Sender<Stranger>);

impl Discovery {
    /// With the end at which strangers come out.
    pub fn new() -> (Self, mpsc::Receiver<Stranger>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), receiver)
    }

    /// An agent that nobody knows said what its machine is.
    pub fn meet(&self, agent_id: &str, attributes: Attributes) {
        let stranger = Stranger { agent_id: agent_id.to_owned(), attributes };
        if self.0.try_send(stranger).is_err() {
            tracing::debug!(agent_id, "too many machines enrol at once: it will ask again");
        }
    }
}

/// Makes Hardware of strangers.
pub async fn run(objects: Arc<dyn Objects>, mut strangers: mpsc::Receiver<Stranger>) {
    while let Some(stranger) = strangers.recv().await {
        let Some(object) = hardware(&stranger) else {
            let agent_id = &stranger.agent_id;
            tracing::warn!(agent_id, "an agent that names no network interface cannot enrol");
            continue;
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match objects.create(HARDWARE, object).await {
            Ok(_) => tracing::info!(name, agent_id = stranger.agent_id, "a machine enrolled"),
            Err(ObjectError::AlreadyExists(_)) => {}
            Err(error) => tracing::warn!(name, %error, "a machine cannot enrol"),
        }
    }
}

fn hardware(stranger: &Stranger) -> Option<Value> {
    let attributes = &stranger.attributes;
    let macs = attributes.network.iter().filter_map(|it| it.mac.as_deref()?.parse().ok());
    let mut macs: Vec<MacAddr> = macs.filter(|mac: &MacAddr| mac.0 != [0; 6]).collect();
    // The one that it booted by comes first.
    if let Ok(own) = stranger.agent_id.parse::<MacAddr>() {
        macs.retain(|mac| *mac != own);
        macs.insert(0, own);
    }
    if macs.is_empty() {
        return None;
    }
    let interfaces: Vec<Value> = macs
        .iter()
        .take(PARTS_MAX)
        .map(|mac| json!({ "dhcp": { "mac": mac.to_string() }, "netboot": { "allowPXE": true } }))
        .collect();
    let sized = attributes.block.iter().filter(|disk| disk.size.is_some());
    let disks = sized.filter_map(|disk| disk.name.as_deref());
    let disks: Vec<Value> =
        disks.take(PARTS_MAX).map(|name| json!({ "device": device(name) })).collect();
    let mut metadata = json!({
        "name": format!("discovery-{}", name_of(&stranger.agent_id)),
        "namespace": NAMESPACE,
        "labels": { LABEL: "true" },
    });
    let said = serde_json::to_string(attributes).unwrap_or_default();
    if said.len() <= ATTRIBUTES_MAX {
        metadata["annotations"] = json!({ ATTRIBUTES: said });
    }
    Some(json!({
        "apiVersion": HARDWARE.api_version(),
        "kind": HARDWARE.kind,
        "metadata": metadata,
        "spec": { "agentID": stranger.agent_id, "interfaces": interfaces, "disks": disks },
    }))
}

fn device(name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("/dev/{name}") }
}

/// An agent's id as a part of a name: what a name may not have becomes a dash.
fn name_of(agent_id: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let lower = agent_id.to_ascii_lowercase();
    let name: String = lower.chars().map(|c| if allowed(c) { c } else { '-' }).take(200).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use workflow_rpc::{Attributes, Block, Network};

    use super::{ATTRIBUTES, Stranger, hardware};

    fn stranger(agent_id: &str, macs: &[&str]) -> Stranger {
        let network = |mac: &&str| Network { mac: Some((*mac).to_owned()), ..Network::default() };
        let disk = |name: &str, size: Option<&str>| Block {
            name: Some(name.to_owned()),
            size: size.map(str::to_owned),
            ..Block::default()
        };
        let attributes = Attributes {
            network: macs.iter().map(network).collect(),
            block: vec![disk("nvme0n1", Some("512GB")), disk("sr0", None)],
            ..Attributes::default()
        };
        Stranger { agent_id: agent_id.to_owned(), attributes }
    }

    #[test]
    fn what_an_agent_says_becomes_hardware() {
        let macs = ["00:00:00:00:00:00", "52:54:00:77:00:02", "52:54:00:77:00:01"];
        let object = hardware(&stranger("52:54:00:77:00:01", &macs)).unwrap();
        assert_eq!(object["metadata"]["name"], "discovery-52-54-00-77-00-01");
        assert_eq!(object["metadata"]["labels"]["tinkerbell.org/auto-discovered"], "true");
        assert_eq!(object["spec"]["agentID"], "52:54:00:77:00:01");
        let interfaces = object["spec"]["interfaces"].as_array().unwrap();
        let told: Vec<_> =
            interfaces.iter().map(|it| it["dhcp"]["mac"].as_str().unwrap()).collect();
        assert_eq!(told, ["52:54:00:77:00:01", "52:54:00:77:00:02"]);
        assert_eq!(interfaces[0]["netboot"]["allowPXE"], true);
        assert_eq!(object["spec"]["disks"], serde_json::json!([{ "device": "/dev/nvme0n1" }]));
        let said = object["metadata"]["annotations"][ATTRIBUTES].as_str().unwrap();
        assert!(said.contains("\"networkInterfaces\""), "{said}");
    }

    #[test]
    fn an_agent_without_interfaces_is_nobody() {
        assert!(hardware(&stranger("somebody", &[])).is_none());
        let named = hardware(&stranger("Rack 7/Nuc", &["52:54:00:77:00:01"])).unwrap();
        assert_eq!(named["metadata"]["name"], "discovery-rack-7-nuc");
    }
}
