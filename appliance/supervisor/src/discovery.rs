//! Discovery of management controllers on the networks of the box, as a request of the API.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use api::bmc::{MACHINE, Machine};
use api::network::NetworkPlan;
use api::tinkerbell::Hardware;
use apiserver::failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bmc_discovery::{KnownMachine, Proposal, Segment, neighbors, scan};
use config::Config;
use controllers::enrollment::INVENTORY;
use serde_json::Value;
use tokio::sync::Mutex;

use objects::{Objects, read};
use provisioning::index::Index;

/// Neighbors of the kernel by ARP.
const NEIGHBORS: &str = "/proc/net/arp";

/// Data of the discovery.
pub struct Discovery {
    index: Index,
    objects: Arc<dyn Objects>,
    segments: Vec<Segment>,
    /// Held during a scan: a second scan would send the same requests again.
    running: Mutex<()>,
}

impl Discovery {
    /// Creates the discovery for the networks of the configuration.
    pub fn new(index: Index, objects: Arc<dyn Objects>, config: &Config) -> Arc<Self> {
        let segment = |network: &NetworkPlan| {
            let subnet = network.subnets.first()?;
            Segment::new(network.address, subnet.network, subnet.length)
        };
        let segments = config.networks.iter().filter_map(segment).collect();
        Arc::new(Self { index, objects, segments, running: Mutex::default() })
    }

    async fn proposals(&self) -> Result<Vec<Proposal>, String> {
        let macs = |address| {
            let table = std::fs::read_to_string(NEIGHBORS).unwrap_or_default();
            neighbors(&table).remove(&address).unwrap_or_default()
        };
        let bmcs = scan(&self.segments, macs)
            .await
            .map_err(|error| format!("cannot search the networks for BMCs: {error}"))?;
        let accepted = self.accepted().await?;
        let machines: Vec<_> = self.index.machines().iter().map(|it| known(it)).collect();
        Ok(Proposal::all(bmcs, &machines, |address| accepted.get(&address).cloned()))
    }

    /// Returns the Machines by the address of their BMC.
    async fn accepted(&self) -> Result<HashMap<Ipv4Addr, String>, String> {
        let objects = self.objects.list(MACHINE, None).await;
        let objects = objects.map_err(|error| format!("cannot list the Machines: {error}"))?;
        let machines = objects.into_iter().filter_map(|it| read::<Machine>(it).ok());
        Ok(machines
            .filter_map(|machine| {
                let address = machine.spec.connection.host.parse().ok()?;
                Some((address, machine.key().to_string()))
            })
            .collect())
    }
}

/// Returns the route that starts a discovery. The response comes after the scan, in 4 s to 10 s for
/// each network.
pub fn router(discovery: Arc<Discovery>) -> Router {
    Router::new()
        .route("/apis/tinbox.dev/v1alpha1/bmc-discovery", post(discover))
        .with_state(discovery)
}

async fn discover(State(discovery): State<Arc<Discovery>>) -> Response {
    let Ok(_turn) = discovery.running.try_lock() else {
        let why = "a search for BMCs is running; repeat the request when it has ended";
        return failure(StatusCode::CONFLICT, "Conflict", why);
    };
    match discovery.proposals().await {
        Ok(proposals) => Json(proposals).into_response(),
        Err(why) => failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &why),
    }
}

fn known(hardware: &Hardware) -> KnownMachine {
    let inventory = hardware.metadata.annotations.get(INVENTORY);
    let inventory: Value =
        inventory.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let interfaces = hardware.spec.interfaces.iter().filter_map(|it| it.dhcp.as_ref());
    KnownMachine {
        namespace: hardware.metadata.namespace.clone(),
        name: hardware.metadata.name.clone(),
        uuid: inventory["uuid"].as_str().unwrap_or_default().to_ascii_lowercase(),
        macs: interfaces.filter_map(|dhcp| Some(dhcp.mac?.to_string())).collect(),
        has_bmc: hardware.spec.bmc_ref.is_some(),
    }
}
