//! Images that the box can or cannot reach.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use api::infrastructure::cluster_api::MACHINE_V1BETA2;
use api::infrastructure::{TINKERBELL_MACHINE, TINKERBELL_MACHINE_TEMPLATE};
use api::os_image::OS_IMAGE;
use api::tinkerbell::HARDWARE;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::super::{ImageServers, Reaching};
use super::boxes::second;
use super::{VIP, World, cluster, condition, endpoint, host, ready, world};
use controllers::runtime::Reconciler as _;

const TOKEN: &str = "?token=s3cret";

/// Servers whose errors the test sets. The requested URLs are recorded.
#[derive(Default)]
struct Servers {
    errors: Mutex<BTreeMap<String, String>>,
    asked: Mutex<Vec<String>>,
}

impl ImageServers for Servers {
    fn reach<'a>(&'a self, urls: &'a [String]) -> Reaching<'a> {
        self.asked.lock().unwrap().extend_from_slice(urls);
        let errors = self.errors.lock().unwrap();
        let result = |url: &String| Some(errors.get(url).cloned().map_or(Ok(()), Err));
        let results = urls.iter().map(result).collect();
        Box::pin(async { results })
    }
}

impl Servers {
    fn fail(&self, url: &str, error: &str) {
        self.errors.lock().unwrap().insert(url.to_owned(), error.to_owned());
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// Returns a box with an OSImage, and a cluster whose template names it.
fn with_image() -> (World, Arc<Servers>) {
    let mut world = world(cluster(endpoint(VIP)));
    let servers = Arc::new(Servers::default());
    world.reconciler.image_servers = Some(servers.clone());
    world.hardware.put(HARDWARE, host("nuc-1", "10.77.0.11", None));
    put_image(&world, &format!("http://images.test/debian.img{TOKEN}"));
    put_template(&world, json!({ "osImage": "debian-13" }));
    (world, servers)
}

fn put_image(world: &World, url: &str) {
    let metadata = json!({ "name": "debian-13", "namespace": "default" });
    let spec = json!({ "url": url, "os": { "distro": "debian", "version": "13" } });
    world.hardware.put(OS_IMAGE, json!({ "metadata": metadata, "spec": spec }));
}

fn put_template(world: &World, spec: Value) {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "c" });
    let metadata = json!({ "name": "t", "namespace": "default", "labels": labels });
    let template = json!({ "metadata": metadata, "spec": { "template": { "spec": spec } } });
    world.remote.put(TINKERBELL_MACHINE_TEMPLATE, template);
}

#[tokio::test]
async fn an_image_that_cannot_be_reached_is_told_and_blocks_nothing() {
    let (world, servers) = with_image();
    let url = format!("http://images.test/debian.img{TOKEN}");
    servers.fail(&url, "the server responded with 404 Not Found");
    let object = world.run().await;
    let found = condition(&object, "ImagesReachable");
    assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!("ImageUnreachable")));
    assert_eq!(
        found["message"],
        "images cannot be reached: http://images.test/debian.img: the server responded with 404 \
         Not Found; check the URLs and the servers (box box-1)"
    );
    assert_eq!(ready(&object), ("True", "Provisioned"));
    let events = world.events();
    assert!(events.contains(&"ImageUnreachable!".to_owned()), "{events:?}");
    assert_eq!(servers.asked(), std::slice::from_ref(&url));

    // The image is checked again some minutes later, and not with each signal.
    servers.errors.lock().unwrap().clear();
    world.clock.advance(SignedDuration::from_mins(3));
    assert_eq!(world.run().await, object);
    assert_eq!(servers.asked(), [""; 0]);
    world.clock.advance(SignedDuration::from_mins(2));
    let object = world.run().await;
    assert_eq!(condition(&object, "ImagesReachable")["reason"], "ImagesReachable");
    assert_eq!((servers.asked().len(), world.events().len()), (1, 1));
    world.clock.advance(SignedDuration::from_mins(5));
    assert_eq!(world.run().await, object);
    assert_eq!(world.events(), [""; 0]);
}

#[tokio::test]
async fn a_lookup_is_checked_as_soon_as_a_machine_has_a_version() {
    let (world, servers) = with_image();
    world.edit(|it| it["spec"]["imageLookupBaseRegistry"] = json!("images.test/nodes"));
    put_template(&world, json!({}));
    let object = world.run().await;
    assert_eq!(condition(&object, "ImagesReachable"), &Value::Null);
    assert_eq!(servers.asked(), [""; 0]);
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "c" });
    let mut metadata = json!({ "name": "m", "namespace": "default", "labels": labels });
    let machine = json!({ "metadata": metadata, "spec": { "version": "v1.35.3" } });
    world.remote.put(MACHINE_V1BETA2, machine);
    metadata["ownerReferences"] = json!([{ "kind": "Machine", "name": "m", "uid": "u",
        "apiVersion": "cluster.x-k8s.io/v1beta2" }]);
    let mut own = json!({ "metadata": metadata, "spec": {} });
    world.remote.put(TINKERBELL_MACHINE, own.clone());
    let object = world.run().await;
    assert_eq!(servers.asked(), ["oci://images.test/nodes/ubuntu-2004:v1.35.3.gz"]);
    assert_eq!(condition(&object, "ImagesReachable")["status"], "True");
    // A machine that runs, and one with its own template, need no image of the cluster.
    let rest = [
        json!({ "spec": {}, "status": { "ready": true } }),
        json!({ "spec": { "templateOverride": "tasks: []" } }),
    ];
    for part in rest {
        own["spec"] = part["spec"].clone();
        own["status"] = part["status"].clone();
        world.remote.put(TINKERBELL_MACHINE, own.clone());
        world.clock.advance(SignedDuration::from_mins(5));
        world.run().await;
        assert_eq!(servers.asked(), [""; 0]);
    }
}

#[tokio::test]
async fn two_boxes_do_not_overwrite_the_results_of_each_other() {
    let (world, servers) = with_image();
    let (hardware, mut other) = second(&world);
    let servers_of_other = Arc::new(Servers::default());
    other.image_servers = Some(servers_of_other.clone());
    hardware.put(HARDWARE, host("nuc-9", "10.77.0.19", None));
    let image = world.hardware.peek(OS_IMAGE, "debian-13").unwrap();
    hardware.put(OS_IMAGE, image);
    servers.fail(&format!("http://images.test/debian.img{TOKEN}"), "no route to host");
    let object = world.run().await;
    for _ in 0..3 {
        other.reconcile(&world.key).await.unwrap();
    }
    assert_eq!(servers_of_other.asked().len(), 1);
    let found = |object: &Value| condition(object, "ImagesReachable").clone();
    assert_eq!(found(&world.object()), found(&object));
    assert_eq!(world.run().await, world.object());
}
