//! Tests the server on a real socket with real clients: atftp (windows), curl, and handwritten
//! packets.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use netboot::tftp::{self, TftpConfig};
use netboot::{Boot, FetchEvent, Files, Observer, Outcome, Plan, Plans, Services};
use stdx::MacAddr;
use stdx::testing::{PATIENCE, Wait};
use tempfile::TempDir;
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

/// Plans of two machines: one boots from its disk, one may not netboot.
struct Two;

impl Plans for Two {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let boot = match mac.to_string().as_str() {
            "52:54:00:77:00:01" => Boot::LocalDisk,
            "52:54:00:77:00:02" => Boot::NotAllowed,
            _ => return None,
        };
        Some(Plan { mac, hardware: "default/nuc".to_owned(), addresses: Vec::new(), boot })
    }
    fn by_address(&self, _: IpAddr) -> Option<Plan> {
        None
    }
}

#[derive(Default)]
struct EventLog(Mutex<Vec<FetchEvent>>);

impl Observer for EventLog {
    fn fetched(&self, event: FetchEvent) {
        self.0.lock().unwrap().push(event);
    }
}

struct Server {
    address: SocketAddr,
    events: Arc<EventLog>,
    shutdown: CancellationToken,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Somewhat more than one megabyte in which every offset has different content.
fn loader() -> Vec<u8> {
    (0..300_001_u32).flat_map(u32::to_be_bytes).collect()
}

async fn server() -> Server {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("ipxe")).unwrap();
    std::fs::write(folder.path().join("ipxe/snponly.efi"), loader()).unwrap();
    std::fs::create_dir(folder.path().join("agent")).unwrap();
    std::fs::write(folder.path().join("agent/vmlinuz-aarch64"), b"kernel").unwrap();
    let events = Arc::new(EventLog::default());
    let services = Services {
        files: Files::new(folder.path()),
        plans: Arc::new(Two),
        observer: events.clone(),
    };
    let config = TftpConfig { script_base: "http://10.77.0.1:7080".to_owned() };
    let socket = tftp::bind("0.0.0.0:0".parse().unwrap(), None).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], socket.local_addr().unwrap().port()));
    let shutdown = CancellationToken::new();
    tokio::spawn(tftp::serve(socket, config, services, shutdown.clone()));
    Server { address, events, shutdown, folder }
}

/// Runs a program of Debian's. If it is missing, the panic names its package.
async fn client(program: &'static str, package: &str, args: Vec<String>) -> std::process::Output {
    let result =
        tokio::task::spawn_blocking(move || Command::new(program).args(args).output()).await;
    result.unwrap().unwrap_or_else(|error| panic!("{program} (package {package}): {error}"))
}

async fn atftp(server: &Server, remote: &str, local: &Path, options: &[&str]) -> String {
    let mut args: Vec<String> = Vec::new();
    for option in options {
        args.extend(["--option".to_owned(), (*option).to_owned()]);
    }
    let port = server.address.port().to_string();
    for arg in ["--get", "-r", remote, "-l", local.to_str().unwrap(), "127.0.0.1", &port] {
        args.push(arg.to_owned());
    }
    let output = client("atftp", "atftp", args).await;
    String::from_utf8_lossy(&output.stderr).into_owned()
}

impl Server {
    async fn outcome(&self, wanted: &str) -> (u64, Outcome) {
        let wait = Wait::new(wanted);
        loop {
            for event in self.events.0.lock().unwrap().iter() {
                if let FetchEvent::Tftp { file, bytes, outcome, .. } = event
                    && file == wanted
                {
                    return (*bytes, outcome.clone());
                }
            }
            tokio::time::sleep(wait.pause()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn atftp_gets_a_file_with_every_option() {
    let server = server().await;
    let sets: [(&str, &[&str]); 5] = [
        ("plain", &[]),
        ("blksize", &["blksize 1468"]),
        ("window4", &["blksize 1468", "windowsize 4"]),
        ("window64", &["blksize 1432", "windowsize 64", "tsize 0", "timeout 3"]),
        ("small", &["blksize 8", "windowsize 16"]),
    ];
    for (name, options) in sets {
        let remote = format!("52:54:00:77:00:01/{name}/snponly.efi");
        let local = server.folder.path().join(name);
        let errors = atftp(&server, &remote, &local, options).await;
        let got = std::fs::read(&local).unwrap_or_default();
        assert!(got == loader(), "{name}: {} bytes, {errors}", got.len());
        assert_eq!(server.outcome(&remote).await, (1_200_004, Outcome::Completed));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loader_without_http_finds_its_configuration_and_its_kernel() {
    let server = server().await;
    let local = server.folder.path().join("got");
    let config = "pxelinux.cfg/01-52-54-00-77-00-01";
    atftp(&server, config, &local, &[]).await;
    let text = std::fs::read_to_string(&local).unwrap();
    assert!(text.starts_with("# Tinbox: default/nuc (52:54:00:77:00:01)\n"), "{text}");
    assert_eq!(server.outcome(config).await.1, Outcome::Completed);
    atftp(&server, "/agent/vmlinuz-aarch64", &local, &["blksize 1468"]).await;
    assert_eq!(std::fs::read(&local).unwrap(), b"kernel");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_may_not_netboot_gets_no_loader() {
    let server = server().await;
    let local = server.folder.path().join("got");
    for remote in [
        "52:54:00:77:00:02/snponly.efi",
        "52-54-00-77-00-02/snponly.efi",
        "52:54:00:77:00:02/autoexec.ipxe",
        "pxelinux.cfg/01-52-54-00-77-00-02",
    ] {
        atftp(&server, remote, &local, &[]).await;
        assert_eq!(server.outcome(remote).await, (0, Outcome::NotFound), "{remote}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_gets_a_file_and_is_told_what_is_missing() {
    let server = server().await;
    let local = server.folder.path().join("curl");
    let url = |name: &str| format!("tftp://{}/{name}", server.address);
    let get = |name: &str| {
        let args = ["-sS", "--tftp-blksize", "1468", "-o", local.to_str().unwrap(), &url(name)];
        client("curl", "curl", args.map(str::to_owned).to_vec())
    };
    assert!(get("snponly.efi").await.status.success());
    assert!(std::fs::read(&local).unwrap() == loader());
    for name in ["none.efi", "netboot-not-allowed", "..%2fetc"] {
        // Exit code 68 of curl: TFTP, file not found.
        assert_eq!(get(name).await.status.code(), Some(68), "{name}");
    }
    assert!(get("autoexec.ipxe").await.status.success());
    let script = std::fs::read_to_string(&local).unwrap();
    assert_eq!(script, include_str!("../golden/autoexec.ipxe"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rack_gets_the_same_file_at_once() {
    let server = server().await;
    let mut clients = Vec::new();
    for index in 0..16 {
        let local = server.folder.path().join(format!("copy-{index}"));
        let port = server.address.port().to_string();
        let args = ["--option", "blksize 1468", "--option", "windowsize 8", "--get", "-r"];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        let rest = ["snponly.efi", "-l", local.to_str().unwrap(), "127.0.0.1", &port];
        args.extend(rest.map(str::to_owned));
        clients.push((local, tokio::spawn(client("atftp", "atftp", args))));
    }
    for (local, client) in clients {
        client.await.unwrap();
        assert!(std::fs::read(&local).unwrap() == loader());
    }
}

/// Environment variable that is set in the process inside the namespaces.
const INSIDE: &str = "TINBOX_TFTP_INSIDE";
/// Creates a veth link to a machine. The names of network namespaces are local: they end with this
/// namespace.
const NAMESPACE: &str = r#"
set -e
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
ip netns add far
ip link add near type veth peer name eth0 netns far
ip address add 10.213.77.1/24 dev near
ip link set near up
ip -n far address add 10.213.77.2/24 dev eth0
ip -n far link set eth0 up
"$0" --exact "$1" --nocapture
"#;

#[track_caller]
fn sh(line: &str) {
    let status = Command::new("sh").args(["-c", line]).status().unwrap();
    assert!(status.success(), "{line}");
}

/// Windows that the kernel splits arrive completely over a device without checksum offload. They
/// also arrive over a device whose packets are smaller than a block: there the kernel refuses to
/// split.
#[test]
fn a_window_arrives_over_devices_of_little_skill() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        return runtime.unwrap().block_on(windows_arrive());
    }
    // All processes end with this test, also when the test is killed.
    let mut unshare = Command::new("setpriv");
    unshare.args(["--pdeathsig", "KILL", "unshare", "--net", "--pid", "--fork", "--kill-child"]);
    unshare.args(["--mount-proc", "bash", "-c", NAMESPACE]);
    unshare.arg(std::env::current_exe().unwrap());
    unshare.arg("tftp::a_window_arrives_over_devices_of_little_skill").env(INSIDE, "1");
    let output = unshare.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}

async fn windows_arrive() {
    let server = server().await;
    let port = server.address.port();
    for (name, change) in [
        ("able", "true"),
        ("plain", "ethtool -K near tx off gso off >/dev/null"),
        ("narrow", "ip link set near mtu 1000 && ip -n far link set eth0 mtu 1000"),
    ] {
        sh(change);
        let local = server.folder.path().join(name);
        let mut args: Vec<String> =
            "netns exec far atftp --option".split(' ').map(str::to_owned).collect();
        args.extend(["blksize 1468", "--option", "windowsize 32"].map(str::to_owned));
        let rest = format!("--get -r snponly.efi -l {} 10.213.77.1 {port}", local.display());
        args.extend(rest.split(' ').map(str::to_owned));
        let output = client("ip", "iproute2", args).await;
        assert!(std::fs::read(&local).unwrap_or_default() == loader(), "{name}: {output:?}");
    }
}

/// A file that is replaced during a transfer is sent in the old version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transfer_keeps_the_file_it_began_with() {
    let server = server().await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.address).await.unwrap();
    let mut packet = [0; 2000];
    // A block that is not acknowledged in time is sent again.
    let mut receive = async |block: u8| loop {
        let received = tokio::time::timeout(PATIENCE, socket.recv(&mut packet));
        let length = received.await.expect("an answer in time").unwrap();
        if packet[..4] == [0, 3, 0, block] {
            return packet[4..length].to_vec();
        }
        assert_eq!(packet[..4], [0, 3, 0, 1]);
    };
    socket.send(b"\0\x01snponly.efi\0octet\0").await.unwrap();
    assert_eq!(receive(1).await, loader()[..512]);
    let path = server.folder.path().join("ipxe/snponly.efi");
    std::fs::write(server.folder.path().join("new"), b"new").unwrap();
    std::fs::rename(server.folder.path().join("new"), path).unwrap();
    socket.send(&[0, 4, 0, 1]).await.unwrap();
    assert_eq!(receive(2).await, loader()[512..1024]);
}
