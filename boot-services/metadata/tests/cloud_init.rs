//! Debian's stock cloud-init, its own datasources, against the router on loopback.
//!
//! The package is fetched through the machine's own apt and unpacked beside the build's output; it
//! is never installed.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use metadata::{Instance, Instances, Network, Observer, PhoneHome, router};
use serde_json::{Value, json};

const USER_DATA: &str = "#cloud-config\n# \u{e9}\r\nruncmd: [ [ true ] ]\n";
const PYTHON: &str = "needs Debian's python3-yaml python3-requests python3-jinja2 \
                      python3-configobj python3-jsonpatch python3-jsonschema python3-oauthlib";

struct One;

impl Instances for One {
    fn by_address(&self, address: IpAddr) -> Option<Instance> {
        address.is_loopback().then(|| Instance {
            id: "i-nuc-1".to_owned(),
            hardware: "default/nuc-1".to_owned(),
            hostname: "nuc-1".to_owned(),
            public_keys: vec!["ssh-ed25519 AAAA one".to_owned(), "ssh-rsa BBBB two".to_owned()],
            user_data: Some(USER_DATA.into()),
            network: Some(Network {
                mac: "52:54:00:77:00:01".parse().unwrap(),
                address: "10.77.0.11".parse().unwrap(),
                prefix: 24,
                gateway: None,
                name_servers: Vec::new(),
            }),
            ..Instance::default()
        })
    }
}

#[derive(Default)]
struct Heard {
    failed: Mutex<Vec<(String, u16)>>,
    news: Mutex<Vec<PhoneHome>>,
}

impl Observer for Heard {
    fn asked(&self, _: IpAddr, path: &str, status: u16) {
        if status != 200 {
            self.failed.lock().unwrap().push((path.to_owned(), status));
        }
    }
    fn phoned_home(&self, news: PhoneHome) {
        self.news.lock().unwrap().push(news);
    }
}

/// Runs a command to its end and hands back what it printed.
fn run(command: &mut Command, hint: &str) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed; {hint}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The unpacked package, fetched when it is not there yet.
fn package() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cloud-init");
    if folder.join("usr").exists() {
        return folder;
    }
    let fetched = tempdir();
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

fn tempdir() -> PathBuf {
    let name = format!("cloud-init-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stock_cloud_init_learns_who_it_is() {
    let heard = Arc::new(Heard::default());
    let site = router(Arc::new(One), heard.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = site.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(axum::serve(listener, service).into_future());
    let printed = tokio::task::spawn_blocking(move || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cloud_init.py");
        run(Command::new("/usr/bin/python3").arg(script).arg(package()).arg(&url), PYTHON)
    });
    let learned: Value = serde_json::from_str(&printed.await.unwrap()).unwrap();
    let keys = json!(["ssh-ed25519 AAAA one", "ssh-rsa BBBB two"]);
    let interface = json!({
        "dhcp4": true,
        "dhcp6": false,
        "match": { "macaddress": "52:54:00:77:00:01" },
        "set-name": "enp1s0",
    });
    let meta = json!({
        "instance-id": "i-nuc-1",
        "local-hostname": "nuc-1",
        "public-keys": keys.clone(),
    });
    let wanted = json!({
        "found": true,
        "version": "2021-03-23",
        "instance_id": "i-nuc-1",
        "hostname": "nuc-1",
        "public_keys": keys,
        "user_data": USER_DATA,
        "network": { "version": 2, "ethernets": { "enp1s0": interface } },
        "seed": { "meta": meta, "user": USER_DATA, "vendor": "" },
    });
    assert_eq!(learned, wanted);
    assert_eq!(*heard.failed.lock().unwrap(), [], "cloud-init asked for what is not there");
    let news = heard.news.lock().unwrap();
    assert_eq!(news.len(), 1);
    assert_eq!(news[0].instance_id.as_deref(), Some("i-nuc-1"));
    assert_eq!(news[0].hostname.as_deref(), Some("nuc-1"));
}
