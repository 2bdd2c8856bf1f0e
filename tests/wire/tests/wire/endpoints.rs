//! Control-plane endpoints on a real link, with TLS servers of OpenSSL as the machines of a control
//! plane, and curl as the client.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use api::meta::ObjectKey;
use api::network::NETWORK;
use api::network::control_plane_endpoint::CONTROL_PLANE_ENDPOINT;
use endpoints::{Endpoints, KernelAddresses};
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::{Value, json};
use stdx::testing::Wait;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Environment variable with the folder of the servers; set inside the namespace.
const SITE: &str = "TINBOX_ENDPOINTS_SITE";
/// Free address, and the address of another machine.
const FREE: &str = "10.7.0.200";
const TAKEN: &str = "10.7.0.201";
/// Script that creates the box's interface, and a rack at the other end of its cable. In the rack
/// are two servers and a machine with the address 10.7.0.201.
const NAMESPACE: &str = r#"
set -e
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip netns add rack
mount -t sysfs sysfs /sys
ip link set lo up
ip link add eth1 address 52:54:00:77:00:01 type veth peer \
  address 52:54:00:00:00:01 name port netns rack
ip link set eth1 up
ip addr add 10.7.0.1/24 dev eth1
ip -n rack link set lo up
ip -n rack link set port up
for host in 5 11 12 201; do ip -n rack addr add 10.7.0.$host/24 dev port; done
export TINBOX_ENDPOINTS_SITE=$(mktemp -d)
trap 'rm -r "$TINBOX_ENDPOINTS_SITE"' EXIT
cd "$TINBOX_ENDPOINTS_SITE"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=kubernetes \
  -keyout key.pem -out cert.pem 2>/dev/null
for host in 11 12; do
  mkdir $host
  printf ok >$host/readyz
  printf $host >$host/name
  (cd $host && exec ip netns exec rack openssl s_server -quiet -WWW -cert ../cert.pem \
    -key ../key.pem -accept 10.7.0.$host:6443 </dev/null >/dev/null 2>&1) &
  echo $! >$host/pid
done
"$0" --exact "$1" --nocapture
"#;

struct Service {
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

fn start(objects: &Arc<Memory>) -> Service {
    let shutdown = CancellationToken::new();
    let endpoints = Endpoints { objects: objects.clone(), host: Arc::new(KernelAddresses) };
    let running = endpoints.run(shutdown.clone());
    let task = tokio::spawn(async move { running.await.expect("TLS") });
    Service { shutdown, task }
}

fn endpoint(address: &str) -> Value {
    json!({
        "kind": "ControlPlaneEndpoint",
        "metadata": { "name": address },
        "spec": { "address": address, "port": 6443,
            "backends": [{ "address": "10.7.0.11" }, { "address": "10.7.0.12" }],
            "clusterRef": { "namespace": "default", "name": "c" } },
    })
}

async fn until(objects: &Memory, address: &str, is_so: impl Fn(&Value) -> bool) {
    let wait = Wait::new("a status");
    let key = ObjectKey::new("", address);
    while !is_so(&objects.get(CONTROL_PLANE_ENDPOINT, &key).await.expect("it exists")["status"]) {
        tokio::time::sleep(wait.pause()).await;
    }
}

fn output(command: &str) -> String {
    let output = Command::new("bash").args(["-c", command]).output().expect("bash runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {text}{output:?}");
    text
}

/// Returns the name of the server that answers a client in the rack.
fn asked() -> String {
    output(&format!("ip netns exec rack curl -sSk --max-time 30 https://{FREE}:6443/name"))
}

fn has(address: &str) -> bool {
    output("ip -o -4 addr show dev eth1").contains(&format!("inet {address}/32"))
}

/// Checks that the box gives back the address, and takes it again.
async fn lost_and_taken_again(objects: &Memory) {
    // Another machine, with the lower MAC, takes the address, and then gives it back.
    output(&format!("ip -n rack addr add {FREE}/32 dev port"));
    until(objects, FREE, |it| it["reason"] == "AddressInUse").await;
    assert!(!has(FREE));
    output(&format!("ip -n rack addr del {FREE}/32 dev port"));
    until(objects, FREE, |it| it["held"] == true).await;

    // The cable is out, and in again.
    output("ip -n rack link set port down");
    until(objects, FREE, |it| it["reason"] == "AddressFailed").await;
    assert!(!has(FREE));
    output("ip -n rack link set port up");
    until(objects, FREE, |it| it["held"] == true).await;
}

#[test]
fn a_virtual_address_forwards_to_the_machines_that_live() {
    let Some(site) = std::env::var_os(SITE).map(PathBuf::from) else {
        let test = "endpoints::a_virtual_address_forwards_to_the_machines_that_live";
        wire::rerun(NAMESPACE, test, &[]);
        return;
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let objects = Arc::new(Memory::default());
        let network = json!({ "metadata": { "name": "eth1" },
            "spec": { "interface": "eth1", "address": "10.7.0.1/24" } });
        objects.put(NETWORK, network);
        objects.put(CONTROL_PLANE_ENDPOINT, endpoint(FREE));
        objects.put(CONTROL_PLANE_ENDPOINT, endpoint(TAKEN));
        let service = start(&objects);
        until(&objects, FREE, |it| it["reason"] == "Forwarding" && it["healthy"] == 2).await;
        until(&objects, TAKEN, |it| it["reason"] == "AddressInUse").await;
        assert!(has(FREE) && !has(TAKEN));
        let mut names = [asked(), asked(), asked(), asked()];
        names.sort_unstable();
        assert!(names.iter().all(|it| it == "11" || it == "12"), "{names:?}");

        // One machine dies. No connection fails.
        output(&format!("kill -KILL $(cat {}/11/pid)", site.display()));
        for _ in 0..5 {
            assert_eq!(asked(), "12");
        }
        until(&objects, FREE, |it| it["healthy"] == 1 && it["total"] == 2).await;

        // A process that was killed leaves the address; the next one uses it without probes.
        service.task.abort();
        let _ = service.task.await;
        assert!(has(FREE));
        let service = start(&objects);
        let wait = Wait::new("the listener after a restart");
        let curl = format!("ip netns exec rack curl -sk https://{FREE}:6443/name || true");
        while output(&curl) != "12" {
            tokio::time::sleep(wait.pause()).await;
        }

        // Addresses without an object are removed, at the start and later.
        service.task.abort();
        let _ = service.task.await;
        let key = ObjectKey::new("", FREE);
        objects.delete(CONTROL_PLANE_ENDPOINT, &key).await.expect("deleted");
        let service = start(&objects);
        let wait = Wait::new("the removal of the address");
        while has(FREE) {
            tokio::time::sleep(wait.pause()).await;
        }
        objects.put(CONTROL_PLANE_ENDPOINT, endpoint(FREE));
        until(&objects, FREE, |it| it["held"] == true).await;
        lost_and_taken_again(&objects).await;
        service.shutdown.cancel();
        service.task.await.expect("it stops");
        assert!(!has(FREE));
        assert!(output("ip -o -4 addr show dev eth1").contains("10.7.0.1/24"));
    });
}
