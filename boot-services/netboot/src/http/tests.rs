//! Tests the router over a real connection: [`serve`](super::serve) on loopback, with handwritten
//! requests, so that the bytes on the wire are checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use stdx::MacAddr;
use stdx::testing::Wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{Downloads, HttpConfig, HttpService, router, serve};
use crate::{AgentBoot, Boot, FetchEvent, Files, Observer, Plan, Plans, Services};

mod limits;
mod requests;
mod tunnel;

const MAC: &str = "52:54:00:77:00:01";
/// Known machine that may not netboot.
const FORBIDDEN: &str = "52:54:00:77:00:02";
/// Machine that is being installed at the loopback address; another one has another address.
const INSTALLING: &str = "52:54:00:77:00:03";
const ELSEWHERE: &str = "52:54:00:77:00:04";

/// Plans of four machines, one of which has the loopback address.
struct Four;

impl Plans for Four {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let boot = match mac.to_string().as_str() {
            MAC => Boot::LocalDisk,
            FORBIDDEN => Boot::NotAllowed,
            INSTALLING | ELSEWHERE => Boot::Agent(AgentBoot::default()),
            _ => return None,
        };
        let here = mac.to_string() == INSTALLING;
        let addresses = vec![if here { [127, 0, 0, 1].into() } else { [10, 77, 0, 14].into() }];
        Some(Plan { mac, hardware: "default/nuc-1".to_owned(), addresses, boot })
    }
    fn by_address(&self, address: IpAddr) -> Option<Plan> {
        address.is_loopback().then(|| self.by_mac(MAC.parse().unwrap()).unwrap())
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
    service: HttpService,
    folder: tempfile::TempDir,
}

async fn server() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    write("ipxe/ipxe.efi", b"loader");
    write("agent/vmlinuz-x86_64", b"kernel");
    write("images/debian/12.raw", &numbers());
    write("secret", b"secret");
    let events = Arc::new(EventLog::default());
    let services = Services {
        files: Files::new(folder.path()),
        plans: Arc::new(Four),
        observer: events.clone(),
    };
    let config = HttpConfig {
        script_base: "http://10.77.0.1:7080".to_owned(),
        version: "v0.1.0".to_owned(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let routes = router(config, services.clone());
    let service = HttpService::with_downloads(routes, Downloads::boot(services));
    tokio::spawn(serve(listener, service.clone(), shutdown.clone()));
    Server { address, events, shutdown, service, folder }
}

/// One megabyte in which every offset has different content.
fn numbers() -> Vec<u8> {
    (0..1_u32 << 18).flat_map(u32::to_be_bytes).collect()
}

fn golden(name: &str) -> String {
    std::fs::read_to_string(golden::path(name)).unwrap()
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Server {
    async fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        ask(self.address, method, path, headers).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "").await
    }

    /// Waits until the observer has received a record that `found` accepts.
    async fn event<T>(&self, found: impl Fn(&FetchEvent) -> Option<T>) -> T {
        let wait = Wait::new("a report");
        loop {
            if let Some(value) = self.events.0.lock().unwrap().iter().find_map(&found) {
                return value;
            }
            tokio::time::sleep(wait.pause()).await;
        }
    }
}

async fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: box\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    Answer::read(&bytes)
}

#[tokio::test]
async fn an_agents_script_is_for_its_machine_alone() {
    let server = server().await;
    for (mac, status, word) in [(INSTALLING, 200, "agent"), (ELSEWHERE, 404, "withheld")] {
        let answer = server.get(&format!("/ipxe/script/{mac}/auto.ipxe")).await;
        assert_eq!(answer.status, status, "{mac}");
        server
            .event(|event| match event {
                FetchEvent::Script { boot, status, .. } if *boot == word => Some(*status),
                _ => None,
            })
            .await;
    }
    let config =
        server.get(&format!("/tftp/pxelinux.cfg/01-{}", ELSEWHERE.replace(':', "-"))).await;
    assert_eq!(config.status, 404);
}

#[tokio::test]
async fn files_lie_where_boot_scripts_look() {
    let server = server().await;
    for path in ["/ipxe/binary/ipxe.efi", "/ipxe/binary/52:54:00:77:00:01/ipxe.efi"] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"loader"[..]), "{path}");
        assert_eq!(answer.header("content-length"), Some("6"));
    }
    assert_eq!(server.get("/agent/vmlinuz-x86_64").await.body, b"kernel");
    let answer = server.get("/images/debian/12.raw").await;
    assert!(answer.body == numbers());
    let bytes = server
        .event(|event| match event {
            FetchEvent::Http { path, bytes, status: 200, .. } if path.starts_with("/images") => {
                Some(*bytes)
            }
            _ => None,
        })
        .await;
    assert_eq!(bytes, 1 << 20);
}

#[tokio::test]
async fn no_path_leads_out_of_the_artifacts() {
    let server = server().await;
    for path in [
        "/images/../secret",
        "/images/%2e%2e/secret",
        "/images/..%2fsecret",
        "/images/debian",
        "/images/debian/",
        "/images//secret",
        "/images/none",
        "/agent/%00",
        "/ipxe/binary/..%2f..%2fsecret",
        "/ipxe/binary/netboot-not-allowed",
        "/secret",
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.body.as_slice()), (404, &b""[..]), "{path}");
    }
    assert_eq!(server.ask("POST", "/images/debian/12.raw", "").await.status, 405);
}

#[tokio::test]
async fn a_part_of_a_file_is_that_part() {
    let server = server().await;
    let path = "/images/debian/12.raw";
    let whole = numbers();
    for (range, first, last) in [
        ("bytes=0-3", 0, 3),
        ("bytes=300001-300002", 300_001, 300_002),
        ("bytes=1048570-", 1_048_570, 1_048_575),
        ("bytes=-2", 1_048_574, 1_048_575),
    ] {
        let answer = server.ask("GET", path, &format!("range: {range}\r\n")).await;
        assert_eq!(answer.status, 206, "{range}");
        assert_eq!(answer.body, whole[first..=last], "{range}");
        let range = format!("bytes {first}-{last}/1048576");
        assert_eq!(answer.header("content-range"), Some(range.as_str()));
    }
    let answer = server.ask("GET", path, "range: bytes=1048576-\r\n").await;
    assert_eq!(answer.status, 416);
    assert_eq!(answer.header("content-range"), Some("bytes */1048576"));
}

#[tokio::test]
async fn a_file_that_did_not_change_is_not_sent_again() {
    let server = server().await;
    let path = "/images/debian/12.raw";
    let head = server.ask("HEAD", path, "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some("1048576"));
    assert_eq!(head.header("accept-ranges"), Some("bytes"));
    let tag = head.header("etag").unwrap();
    let known = format!("if-none-match: \"x\", W/{tag}\r\n");
    let answer = server.ask("GET", path, &known).await;
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    let same = format!("range: bytes=0-0\r\nif-range: {tag}\r\n");
    assert_eq!(server.ask("GET", path, &same).await.status, 206);
    let other = "range: bytes=0-0\r\nif-range: \"other\"\r\n";
    assert_eq!(server.ask("GET", path, other).await.status, 200);
}

#[tokio::test]
async fn each_machine_gets_its_script() {
    let server = server().await;
    let wanted = golden("local-disk.ipxe");
    for path in [
        "/ipxe/script/52:54:00:77:00:01/auto.ipxe",
        "/ipxe/script/52-54-00-77-00-01/auto.ipxe",
        "/ipxe/script/5254.0077.0001/auto.ipxe",
        "/ipxe/script/525400770001/auto.ipxe",
        "/ipxe/script/auto.ipxe",
        "/52:54:00:77:00:01/auto.ipxe",
        "/auto.ipxe",
    ] {
        let answer = server.get(path).await;
        assert_eq!(
            (answer.status, String::from_utf8(answer.body).unwrap().as_str()),
            (200, wanted.as_str())
        );
    }
    assert_eq!(server.get("/ipxe/script/52:54:00:77:00:99/auto.ipxe").await.status, 404);
    assert_eq!(server.get("/ipxe/script/nonsense/auto.ipxe").await.status, 400);
    let unknown = |event: &FetchEvent| {
        let FetchEvent::Script { mac, hardware: None, boot: "unknown", .. } = event else {
            return None;
        };
        *mac
    };
    assert_eq!(server.event(unknown).await.to_string(), "52:54:00:77:00:99");
    let autoexec = String::from_utf8(server.get("/ipxe/binary/autoexec.ipxe").await.body).unwrap();
    assert_eq!(autoexec, golden("autoexec-known.ipxe"));
}

#[tokio::test]
async fn a_machine_that_may_not_netboot_gets_nothing_to_boot() {
    let server = server().await;
    for path in [
        "/ipxe/script/52:54:00:77:00:02/auto.ipxe",
        "/52:54:00:77:00:02/auto.ipxe",
        "/ipxe/binary/52:54:00:77:00:02/ipxe.efi",
        "/ipxe/binary/52-54-00-77-00-02/autoexec.ipxe",
        "/tftp/52:54:00:77:00:02/ipxe.efi",
        "/tftp/pxelinux.cfg/01-52-54-00-77-00-02",
    ] {
        let answer = server.get(path).await;
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{path}");
    }
    // The path and the IP address name different machines: the path decides.
    assert_eq!(server.get("/ipxe/binary/52:54:00:77:00:01/ipxe.efi").await.status, 200);
}

#[tokio::test]
async fn what_tftp_has_is_here_for_loaders_that_boot_pxe_over_http() {
    let server = server().await;
    assert_eq!(server.get("/tftp/ipxe.efi").await.body, b"loader");
    assert_eq!(server.get("/tftp/agent/vmlinuz-x86_64").await.body, b"kernel");
    let config = server.get("/tftp/pxelinux.cfg/01-52-54-00-77-00-01").await;
    let text = String::from_utf8(config.body).unwrap();
    assert!(text.ends_with("LABEL disk\n  LOCALBOOT 0\n"), "{text}");
    assert_eq!(server.get("/tftp/pxelinux.cfg/01-52-54-00-77-00-99").await.status, 404);
    assert_eq!(server.get("/tftp/pxelinux.cfg/default").await.status, 404);
}

#[tokio::test]
async fn probes_are_answered() {
    let server = server().await;
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(server.get("/readyz").await.status, 200);
    let body = String::from_utf8(server.get("/healthcheck").await.body).unwrap();
    assert!(body.starts_with(r#"{"git_rev":"v0.1.0","uptime_seconds":"#), "{body}");
    std::fs::remove_file(server.folder.path().join("ipxe/ipxe.efi")).unwrap();
    assert_eq!(server.get("/readyz").await.status, 503);
}

#[tokio::test]
async fn a_client_that_leaves_is_recorded_with_what_it_took() {
    let server = server().await;
    let file = std::fs::File::create(server.folder.path().join("images/big")).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /images/big HTTP/1.1\r\nhost: box\r\n\r\n").await.unwrap();
    let mut taken = vec![0; 1 << 20];
    stream.read_exact(&mut taken).await.unwrap();
    drop(stream);
    let bytes = server
        .event(|event| match event {
            FetchEvent::Http { path, bytes, .. } if path == "/images/big" => Some(*bytes),
            _ => None,
        })
        .await;
    assert!((1 << 20..1 << 30).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn shutting_down_ends_the_listener() {
    let server = server().await;
    assert_eq!(server.get("/healthz").await.status, 200);
    server.shutdown.cancel();
    let wait = Wait::new("the listener to end");
    while TcpStream::connect(server.address).await.is_ok() {
        tokio::time::sleep(wait.pause()).await;
    }
}
