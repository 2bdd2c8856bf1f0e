//! Tests Debian's stock cloud-init, with its own datasources, against the router on loopback.
//!
//! The test machine's apt downloads the package, which is unpacked beside the build's output and
//! never installed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use metadata::fake::{Events, Machines};
use metadata::{Config, Instance, Interface, PowerHooks, Provisioning, Route, router};
use serde_json::{Value, json};

/// User data: a MIME archive of a gzipped Jinja template and a plain part, which JSON cannot
/// contain unescaped.
const USER_DATA: &str = include_str!("../user_data.mime");
const VENDOR_DATA: &str = "#cloud-config\n# \u{e9}\r\n{}\n";
const PYTHON: &str = "needs Debian's python3-yaml python3-requests python3-jinja2 \
                      python3-configobj python3-jsonpatch python3-jsonschema python3-oauthlib";

fn machine() -> Instance {
    Instance {
        id: "i-nuc-1".to_owned(),
        hardware: "default/nuc-1".to_owned(),
        name: "nuc-1-hardware".to_owned(),
        uuid: "c0ffee00-0000-4000-8000-000000000001".to_owned(),
        provider_id: "tinkerbell://default/nuc-1-hardware".to_owned(),
        hostname: "nuc-1".to_owned(),
        public_keys: vec!["ssh-ed25519 AAAA one".to_owned(), "ssh-rsa BBBB two".to_owned()],
        user_data: Some(USER_DATA.into()),
        vendor_data: Some(VENDOR_DATA.into()),
        interfaces: interfaces(),
        // Read by YAML 1.1 as a number, were it not quoted.
        tags: vec!["10:20:30".to_owned(), "no".to_owned()],
        extra: [("role".to_owned(), "storage".to_owned())].into(),
        provisioning: Provisioning::Underway,
        ..Instance::default()
    }
}

/// Returns interfaces with DHCP, with a static address, and in a VLAN.
fn interfaces() -> Vec<Interface> {
    let interface = |mac: &str| Interface::new(mac.parse().unwrap());
    let first = Interface {
        address: Some("10.77.0.11/24".parse().unwrap()),
        ..interface("52:54:00:77:00:01")
    };
    let second = Interface {
        name: "store0".to_owned(),
        address: Some("10.78.0.11/22".parse().unwrap()),
        gateway: Some("10.78.0.1".parse().unwrap()),
        name_servers: vec!["10.78.0.1".parse().unwrap(), "10.78.0.2".parse().unwrap()],
        domain: "lab.example".to_owned(),
        routes: vec![Route {
            to: "10.0.0.0/8".parse().unwrap(),
            via: "10.78.0.2".parse().unwrap(),
        }],
        dhcp: false,
        ..interface("52:54:00:77:00:02")
    };
    let third = Interface { vlan: Some(7), ..interface("52:54:00:77:00:03") };
    vec![first, second, third]
}

/// Runs a command to its end and returns its standard output.
fn run(command: &mut Command, hint: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed; {hint}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the folder of the unpacked package, which is downloaded if missing.
fn package() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cloud-init");
    if folder.join("usr").exists() {
        return folder;
    }
    let fetched = tempdir("fetched");
    let hint = "needs Debian's apt and its package lists (apt-get update)";
    run(Command::new("apt-get").args(["download", "cloud-init"]).current_dir(&fetched), hint);
    let entry = std::fs::read_dir(&fetched).unwrap().next().unwrap().unwrap();
    let unpacked = fetched.join("unpacked");
    run(Command::new("dpkg").arg("-x").args([&entry.path(), &unpacked]), hint);
    // Whole or not at all; another run of this test may have been first.
    let renamed = std::fs::rename(&unpacked, &folder);
    assert!(renamed.is_ok() || folder.join("usr").exists(), "{renamed:?}");
    std::fs::remove_dir_all(&fetched).unwrap();
    folder
}

fn tempdir(what: &str) -> PathBuf {
    let name = format!("cloud-init-{what}-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the data that cloud-init reads from a router with one machine, and the router's events.
async fn learn() -> (Value, Arc<Events>) {
    let events = Arc::new(Events::default());
    let machines = Machines::default().with([127, 0, 0, 1], machine());
    let site = router(
        Config::default(),
        Arc::new(machines),
        events.clone(),
        Arc::new(PowerHooks::new(&[0; 32])),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = site.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    let printed = tokio::task::spawn_blocking(move || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cloud_init.py");
        let folder = tempdir("learned");
        let mut python = Command::new("/usr/bin/python3");
        let printed = run(python.arg(script).arg(package()).arg(&url).arg(&folder), PYTHON);
        std::fs::remove_dir_all(&folder).unwrap();
        printed
    });
    (serde_json::from_str(&printed.await.unwrap()).unwrap(), events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stock_cloud_init_learns_who_it_is() {
    let (learned, events) = learn().await;
    let keys = json!(["ssh-ed25519 AAAA one", "ssh-rsa BBBB two"]);
    let kubeadm = "#cloud-config
write_files:
  - path: /run/kubeadm/kubeadm.yaml
    content: |
      nodeRegistration:
        name: 'nuc-1-hardware'
        kubeletExtraArgs:
          node-labels: 'metal3.io/uuid=c0ffee00-0000-4000-8000-000000000001,role=storage'
          provider-id: 'tinkerbell://default/nuc-1-hardware tinkerbell://default/nuc-1-hardware'
  - path: /run/who
    content: 'i-nuc-1 nuc-1 nuc-1'
";
    let plain = "#cloud-config\n# 100 %s\nruncmd: [ [ true ] ]";
    let wanted = json!({
        "found": true,
        "instance_id": "i-nuc-1",
        "hostname": "nuc-1",
        "public_keys": keys,
        "user_data": USER_DATA,
        "rendered": { "kubeadm.cfg": kubeadm, "plain.cfg": plain },
    });
    assert_eq!(learned["ec2"], wanted);
    assert_eq!(learned["nocloud"], wanted);
    assert_eq!(learned["version"], "2021-03-23");
    assert_eq!(learned["vendor_data"], VENDOR_DATA);
    let interface = json!({
        "dhcp4": true,
        "dhcp6": false,
        "match": { "macaddress": "52:54:00:77:00:01" },
        "set-name": "enp1s0",
    });
    let network = json!({ "version": 2, "ethernets": { "enp1s0": interface } });
    assert_eq!(learned["ec2_network"], network);
    let mut failed = events.requests();
    failed.retain(|(_, status)| *status != 200);
    assert_eq!(failed, [], "cloud-init asked for what is not there");
    let phone_homes = events.phoned_home();
    assert_eq!(phone_homes.len(), 1);
    assert_eq!(phone_homes[0].instance_id.as_deref(), Some("i-nuc-1"));
    assert_eq!(phone_homes[0].hostname.as_deref(), Some("nuc-1"));
    networks(&learned["network"]);
}

/// Checks that both versions give the same configuration, for each of Debian's network tools.
fn networks(rendered: &Value) {
    let [v1, v2] = ["v1", "v2"].map(|version| &rendered[version]);
    assert_eq!(v1["networkd"], v2["networkd"]);
    let asks = "[Match]\nMACAddress=52:54:00:77:00:01\nName=nic0\n\n[Network]\nDHCP=ipv4\n\n";
    assert_eq!(v2["networkd"]["10-cloud-init-nic0.network"], asks);
    let written = "[Address]\nAddress=10.78.0.11/22\n\n[Match]\nMACAddress=52:54:00:77:00:02\n\
        Name=store0\n\n[Network]\nDHCP=no\nDNS=10.78.0.1 10.78.0.2\nDomains=lab.example\n\n\
        [Route]\nDestination=10.0.0.0/8\n\nGateway=10.78.0.2\n\n\
        [Route]\nDestination=0.0.0.0/0\n\nGateway=10.78.0.1\n\n";
    assert_eq!(v2["networkd"]["10-cloud-init-store0.network"], written);

    let [one, two] = [&v1["netplan"], &v2["netplan"]];
    assert_eq!(two["ethernets"]["nic0"]["dhcp4"], true);
    assert_eq!(one["ethernets"]["nic0"]["dhcp4"], true);
    let (by_name, by_id) = (&one["ethernets"]["store0"], &two["ethernets"]["nic1"]);
    let routes = json!([
        { "to": "10.0.0.0/8", "via": "10.78.0.2" },
        { "to": "0.0.0.0/0", "via": "10.78.0.1" },
    ]);
    let servers = json!({ "addresses": ["10.78.0.1", "10.78.0.2"], "search": ["lab.example"] });
    for (key, value) in [
        ("match", json!({ "macaddress": "52:54:00:77:00:02" })),
        ("set-name", "store0".into()),
        ("addresses", json!(["10.78.0.11/22"])),
        ("routes", routes),
        ("nameservers", servers),
    ] {
        assert_eq!((&by_name[key], &by_id[key]), (&value, &value), "{key}");
    }
    for vlan in [&one["vlans"]["nic2.7"], &two["vlans"]["nic2.7"]] {
        let said = (&vlan["id"], &vlan["link"], &vlan["dhcp4"]);
        assert_eq!(said, (&json!(7), &json!("nic2"), &json!(true)));
    }

    let eni = v1["eni"]["50-cloud-init"].as_str().unwrap();
    for stanza in [
        "auto nic0\niface nic0 inet dhcp\n",
        "auto store0\niface store0 inet static\n    address 10.78.0.11/22\n",
        "auto nic2.7\niface nic2.7 inet dhcp\n    vlan-raw-device nic2\n    vlan_id 7\n",
    ] {
        assert!(eni.contains(stanza), "{eni}");
    }
}
