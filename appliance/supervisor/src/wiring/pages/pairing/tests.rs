use std::sync::Arc;

use api::core::SECRET;
use api::management_cluster::MANAGEMENT_CLUSTER;
use api::meta::ObjectKey;
use objects::Objects as _;
use objects::fake::Memory;
use serde_json::json;
use tokio::sync::Mutex;
use web::PairRequest;

use super::{PagePairing, is_loopback};

/// PEM of three bytes in base64, which is read as a certificate and never used.
const AUTHORITY: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VS\
     VElGSUNBVEUtLS0tLQo=";

fn pairing() -> (Arc<Memory>, PagePairing) {
    let memory = Arc::new(Memory::default());
    let (authority, turn) = (String::new(), Mutex::default());
    let objects = Arc::clone(&memory) as _;
    (memory, PagePairing { objects, authority, of_its_own: true, turn })
}

fn request(server: &str) -> PairRequest {
    let kubeconfig = json!({
        "current-context": "c",
        "clusters": [{ "name": "m", "cluster": {
            "server": server, "certificate-authority-data": AUTHORITY,
        } }],
        "users": [{ "name": "u", "user": { "token": "secret-token" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "m", "user": "u" } }],
    });
    PairRequest {
        name: "fleet".to_owned(),
        kubeconfig: kubeconfig.to_string().into(),
        is_credential: true,
        namespace: None,
        watch_filter: Some("rack-1".to_owned()),
        host: "box".to_owned(),
    }
}

#[tokio::test]
async fn a_credential_is_stored_and_replaced_and_other_settings_stay() {
    let (memory, pairing) = pairing();
    pairing.pair(request("https://10.0.0.1:6443")).await.unwrap();
    let key = ObjectKey::new("default", "fleet");
    let mut cluster = memory.get(MANAGEMENT_CLUSTER, &key).await.unwrap();
    assert_eq!(cluster["spec"]["watchFilter"], "rack-1");
    cluster["spec"]["suspend"] = true.into();
    memory.update(MANAGEMENT_CLUSTER, cluster).await.unwrap();
    let secret = ObjectKey::new("default", "fleet-management-kubeconfig");
    let before = memory.get(SECRET, &secret).await.unwrap();
    let again = PairRequest { watch_filter: None, ..request("https://10.0.0.2:6443") };
    pairing.pair(again).await.unwrap();
    let cluster = memory.get(MANAGEMENT_CLUSTER, &key).await.unwrap();
    let spec = json!({
        "suspend": true, "kubeconfigSecretRef": { "name": "fleet-management-kubeconfig" },
    });
    assert_eq!(cluster["spec"], spec);
    assert_ne!(memory.get(SECRET, &secret).await.unwrap()["data"], before["data"]);
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_work_stores_nothing_and_shows_no_secret() {
    let (memory, pairing) = pairing();
    let broken = PairRequest { kubeconfig: "secret-token: [".into(), ..request("") };
    let wrong = [broken, request("http://10.0.0.1:8080"), request("https://127.0.0.1:6443")];
    for request in wrong {
        let why = pairing.pair(request).await.unwrap_err();
        assert!(!why.contains("secret-token") && why.ends_with('.'), "{why}");
    }
    assert!(memory.list(MANAGEMENT_CLUSTER, None).await.unwrap().is_empty());
    assert!(memory.list(SECRET, None).await.unwrap().is_empty());
}

#[test]
fn loopback_is_known_by_address_and_name() {
    for own in ["https://127.0.0.1:6443", "https://[::1]:6443/a", "https://LOCALHOST"] {
        assert!(is_loopback(own), "{own}");
    }
    for other in ["https://10.0.0.1:6443", "https://[fd00::1]", "https://fleet.example:1"] {
        assert!(!is_loopback(other), "{other}");
    }
}
