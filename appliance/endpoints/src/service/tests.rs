//! The service over objects in memory and a host without a kernel.

use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectKey;
use api::network::NETWORK;
use api::network::control_plane_endpoint::{CONTROL_PLANE_ENDPOINT, ControlPlaneEndpointStatus};
use objects::Objects as _;
use objects::fake::Memory;
use platform::net::VirtualAddress;
use serde_json::{Value, json};
use stdx::testing::Wait;
use tokio_util::sync::CancellationToken;

use super::{Endpoints, give_back_all, is_due};
use crate::endpoint::tests::FakeHost;

const ADDRESS: &str = "127.78.0.200";

fn key() -> ObjectKey {
    ObjectKey::new("", ADDRESS)
}

fn endpoint(port: u16) -> Value {
    json!({
        "kind": "ControlPlaneEndpoint",
        "metadata": { "name": ADDRESS },
        "spec": { "address": ADDRESS, "port": port,
            "clusterRef": { "namespace": "default", "name": "c" } },
    })
}

struct World {
    objects: Arc<Memory>,
    host: Arc<FakeHost>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<Result<(), rustls::Error>>,
}

fn world(held: &[&str]) -> World {
    let (objects, host) = (Arc::new(Memory::default()), Arc::new(FakeHost::default()));
    let held = held.iter().map(|it| it.parse().unwrap());
    let held = held.map(|address| VirtualAddress { interface: "eth1".to_owned(), address });
    *host.held.lock().unwrap() = held.collect();
    let network = json!({ "metadata": { "name": "eth1" },
        "spec": { "interface": "eth1", "address": "127.78.0.1/24" } });
    objects.put(NETWORK, network);
    objects.put(CONTROL_PLANE_ENDPOINT, endpoint(46443));
    let endpoints = Endpoints { objects: objects.clone(), host: host.clone() };
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(endpoints.run(shutdown.clone()));
    World { objects, host, shutdown, task }
}

impl World {
    async fn until(&self, what: &str, is_so: impl Fn(&Value, &[VirtualAddress]) -> bool) {
        let wait = Wait::new(what);
        loop {
            let object = self.objects.get(CONTROL_PLANE_ENDPOINT, &key()).await;
            if is_so(&object.unwrap_or_default(), &self.host.held.lock().unwrap()) {
                return;
            }
            tokio::time::sleep(wait.pause()).await;
        }
    }
}

#[tokio::test]
async fn the_addresses_of_the_host_follow_the_objects() {
    let world = world(&["127.78.0.99"]);
    world.until("the endpoint", |it, _| it["status"]["held"] == true).await;
    world
        .until("the address", |it, held| {
            let held: Vec<_> = held.iter().map(|it| it.address.to_string()).collect();
            it["status"]["interface"] == "eth1" && held == [ADDRESS]
        })
        .await;
    let object = world.objects.get(CONTROL_PLANE_ENDPOINT, &key()).await.unwrap();
    assert_eq!(object["status"]["reason"], "NoMachine");
    // A new port starts the endpoint again, and the address stays in the end.
    world.objects.put(CONTROL_PLANE_ENDPOINT, endpoint(46444));
    let wait = Wait::new("the new port");
    while tokio::net::TcpStream::connect((ADDRESS, 46444)).await.is_err() {
        tokio::time::sleep(wait.pause()).await;
    }
    assert_eq!(world.host.held.lock().unwrap().len(), 1);
    world.objects.delete(CONTROL_PLANE_ENDPOINT, &key()).await.unwrap();
    world.until("the removal", |_, held| held.is_empty()).await;
    world.objects.put(CONTROL_PLANE_ENDPOINT, endpoint(46443));
    world.until("the address again", |_, held| !held.is_empty()).await;
    world.shutdown.cancel();
    world.task.await.unwrap().unwrap();
    assert!(world.host.held.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_unreadable_object_keeps_its_address_and_does_not_stop_others() {
    let (unreadable, other) = ("127.78.0.198", "127.78.0.199");
    let world = world(&[unreadable, other]);
    let mut object = endpoint(46443);
    object["metadata"]["name"] = json!(unreadable);
    object["spec"]["port"] = json!("x");
    world.objects.put(CONTROL_PLANE_ENDPOINT, object);
    world
        .until("the other endpoint", |it, held| {
            let mut held: Vec<_> = held.iter().map(|it| it.address.to_string()).collect();
            held.sort();
            it["status"]["held"] == true && held == [unreadable, ADDRESS]
        })
        .await;
    world.shutdown.cancel();
    world.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_box_without_the_service_gives_back_all_addresses() {
    let host = FakeHost::default();
    let at = VirtualAddress { interface: "eth1".to_owned(), address: ADDRESS.parse().unwrap() };
    host.held.lock().unwrap().push(at);
    give_back_all(&host).await;
    assert!(host.held.lock().unwrap().is_empty());
}

#[test]
fn numbers_alone_are_written_seldom() {
    let status = |held, healthy| ControlPlaneEndpointStatus {
        held,
        healthy,
        ..ControlPlaneEndpointStatus::default()
    };
    let (soon, late) = (Some(Duration::from_secs(1)), Some(Duration::from_secs(10)));
    for (old, new, since, expected) in [
        (status(true, 1), status(true, 1), None, false),
        (status(true, 1), status(true, 2), soon, false),
        (status(true, 1), status(true, 2), late, true),
        (status(true, 1), status(true, 2), None, true),
        (status(true, 1), status(false, 0), soon, true),
    ] {
        assert_eq!(is_due(&old, &new, since), expected, "{old:?} {new:?} {since:?}");
    }
}
