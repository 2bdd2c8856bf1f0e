//! Tests of the number of writes that a machine can cause, over a real store.

use std::net::IpAddr;
use std::sync::Arc;

use dhcp::{DhcpEvent, DropReason};
use metadata::{Observer as _, PhoneHome};
use netboot::{FetchEvent, Observer as _, Outcome};
use objects::read;
use resources::{Engine, ListOptions, builtin};
use serde_json::{Value, json};
use stdx::{MacAddr, SystemClock};
use store::{Options, Store};
use tokio_util::sync::CancellationToken;

use super::Observers;
use crate::index::Index;
use crate::machines::learned_loaders::Loaders;
use crate::objects::recorder::{Writer, recorder};

const ADDRESS: [u8; 4] = [10, 77, 0, 11];
/// Number of requests of each kind.
const REQUESTS: usize = 2000;
/// Maximum number of writes that one machine may cause in a short time.
const WRITES_MAX: u64 = 200;

struct ObservedMachine {
    _folder: tempfile::TempDir,
    engine: Engine,
    observers: Observers,
    writer: Option<Writer>,
}

impl ObservedMachine {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("objects.redb"), Options::default()).unwrap();
        let engine = Engine::new(store, builtin::registry().unwrap(), Arc::new(SystemClock));
        engine.ensure_permanent().await.unwrap();
        let index = Index::default();
        let interface = json!({ "dhcp": {
            "mac": "52:54:00:77:00:01",
            "ip": { "address": "10.77.0.11", "netmask": "255.255.255.0" },
        } });
        let hardware = json!({
            "metadata": { "name": "nuc1", "namespace": "default", "uid": "1" },
            "spec": { "interfaces": [interface] },
        });
        index.put_hardware(read(hardware).unwrap());
        let (recorder, writer) = recorder();
        let loaders = Arc::new(Loaders::new().0);
        let observers = Observers::new(index, recorder, Arc::new(SystemClock), loaders);
        Self { _folder: folder, engine, observers, writer: Some(writer) }
    }

    /// Writes the waiting Events. Returns the number of writes since `before`.
    async fn written(&mut self, before: u64) -> u64 {
        let stopped = CancellationToken::new();
        stopped.cancel();
        self.writer.take().unwrap().run(self.engine.clone(), stopped).await;
        self.engine.revision() - before
    }

    async fn events(&self) -> Vec<Value> {
        let listed = self.engine.list("/events", Some("default"), ListOptions::default());
        listed.await.unwrap().items
    }

    fn not_found(&self, peer: IpAddr, number: usize) {
        self.observers.fetched(FetchEvent::Tftp {
            peer,
            file: format!("no-{number}.efi"),
            bytes: 0,
            millis: 1,
            outcome: Outcome::NotFound,
        });
        let path = format!("/no-{number}");
        self.observers.fetched(FetchEvent::Http { peer, path, bytes: 0, millis: 1, status: 404 });
    }

    fn phones_home(&self, number: usize) {
        let news = PhoneHome {
            peer: ADDRESS.into(),
            hardware: "default/nuc1".to_owned(),
            instance_id: None,
            hostname: Some(format!("evil-{number}")),
            fqdn: None,
            host_keys: Vec::new(),
        };
        self.observers.phoned_home(news);
    }
}

#[tokio::test]
async fn a_machine_that_asks_and_asks_wears_no_disk_and_all_of_it_is_counted() {
    let mut rack = ObservedMachine::start().await;
    let before = rack.engine.revision();
    for number in 0..REQUESTS {
        rack.not_found(ADDRESS.into(), number);
        rack.phones_home(number);
        let discover = DhcpEvent::Discover {
            mac: MacAddr([0x52, 0x54, 0, 0x77, 0, 1]),
            stage: dhcp::Stage::Pxe,
        };
        dhcp::Observer::observe(&rack.observers, discover);
    }
    let written = rack.written(before).await;
    assert!(written <= WRITES_MAX, "{written} writes for {REQUESTS} requests of each kind");
    let events = rack.events().await;
    let asked = events.iter().filter(|event| event["reason"] == "AskedForAddress");
    let counts: Vec<_> = asked.map(|event| event["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [REQUESTS as u64]);
}

#[tokio::test]
async fn nothing_is_written_of_the_files_that_an_unknown_machine_does_not_get() {
    let mut rack = ObservedMachine::start().await;
    let before = rack.engine.revision();
    for number in 0..REQUESTS {
        rack.not_found([10, 77, 0, 99].into(), number);
    }
    assert_eq!(rack.written(before).await, 0);
}

#[tokio::test]
async fn many_unknown_macs_are_few_writes() {
    let mut rack = ObservedMachine::start().await;
    let before = rack.engine.revision();
    for number in 0..REQUESTS {
        let [.., high, low] = number.to_be_bytes();
        let mac = MacAddr([2, 0, 0, 0, high, low]);
        let drop_reason = Some(DropReason::Unknown);
        let unknown = DhcpEvent::UnknownMac { mac, vendor_class: None, arch: None, drop_reason };
        dhcp::Observer::observe(&rack.observers, unknown);
    }
    let written = rack.written(before).await;
    assert!((1..=WRITES_MAX).contains(&written), "{written} writes for {REQUESTS} MACs");
}

#[test]
fn a_loader_that_no_artifact_is_says_that_the_architecture_has_none() {
    let tftp = FetchEvent::Tftp {
        peer: ADDRESS.into(),
        file: "ipxe/snp-arm64.efi".to_owned(),
        bytes: 0,
        millis: 1,
        outcome: Outcome::NotFound,
    };
    let path = "/ipxe/snp-arm64.efi".to_owned();
    let http = FetchEvent::Http { peer: ADDRESS.into(), path, bytes: 0, millis: 1, status: 404 };
    for fetched in [tftp, http] {
        let Some(super::BootEvent::FetchFailed { why, .. }) = super::fetch_moment(fetched) else {
            panic!("it did not fail");
        };
        assert!(why.contains("no boot loader for the machine's architecture"), "{why}");
    }
}
