//! The router over a real connection: [`serve`](super::serve) on loopback, requests by hand, so
//! that what is checked is what is on the wire.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stdx::MacAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::{HttpConfig, router, serve};
use crate::{Boot, Fetched, Files, Observer, Plan, Plans, Services};

const MAC: &str = "52:54:00:77:00:01";

/// One machine, which holds the loopback address.
struct One;

impl Plans for One {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let boot = Boot::LocalDisk;
        let plan = Plan { mac, hardware: "default/nuc-1".to_owned(), address: None, boot };
        (mac.to_string() == MAC).then_some(plan)
    }
    fn by_address(&self, address: IpAddr) -> Option<Plan> {
        address.is_loopback().then(|| self.by_mac(MAC.parse().unwrap()).unwrap())
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<Fetched>>);

impl Observer for Heard {
    fn fetched(&self, fetched: Fetched) {
        self.0.lock().unwrap().push(fetched);
    }
}

struct Server {
    address: SocketAddr,
    heard: Arc<Heard>,
    shutdown: CancellationToken,
    _folder: tempfile::TempDir,
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
    let heard = Arc::new(Heard::default());
    let services = Services {
        files: Files::new(folder.path()),
        plans: Arc::new(One),
        observer: heard.clone(),
    };
    let config = HttpConfig {
        script_base: "http://10.77.0.1:7080".to_owned(),
        version: "v0.1.0".to_owned(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    tokio::spawn(serve(listener, router(config, services), shutdown.clone()));
    Server { address, heard, shutdown, _folder: folder }
}

/// A megabyte in which every place has its own content.
fn numbers() -> Vec<u8> {
    (0..1_u32 << 18).flat_map(u32::to_be_bytes).collect()
}

fn golden(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Server {
    async fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request =
            format!("{method} {path} HTTP/1.1\r\nhost: box\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: bytes[end + 4..].to_vec() }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "").await
    }

    /// Waits until the observer was told something that `found` knows.
    async fn heard<T>(&self, found: impl Fn(&Fetched) -> Option<T>) -> T {
        for _ in 0..500 {
            if let Some(value) = self.heard.0.lock().unwrap().iter().find_map(&found) {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not heard within 5 s: {:?}", self.heard.0.lock().unwrap());
    }
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
        .heard(|fetched| match fetched {
            Fetched::Http { path, bytes, status: 200, .. } if path.starts_with("/images") => {
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
        let told = format!("bytes {first}-{last}/1048576");
        assert_eq!(answer.header("content-range"), Some(told.as_str()));
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
        "/ipxe/script/auto.ipxe",
    ] {
        let answer = server.get(path).await;
        assert_eq!(
            (answer.status, String::from_utf8(answer.body).unwrap().as_str()),
            (200, wanted.as_str())
        );
    }
    assert_eq!(server.get("/ipxe/script/52:54:00:77:00:99/auto.ipxe").await.status, 404);
    assert_eq!(server.get("/ipxe/script/nonsense/auto.ipxe").await.status, 400);
    let unknown = |fetched: &Fetched| {
        let Fetched::Script { mac, hardware: None, boot: "unknown", .. } = fetched else {
            return None;
        };
        *mac
    };
    assert_eq!(server.heard(unknown).await.to_string(), "52:54:00:77:00:99");
    let autoexec = String::from_utf8(server.get("/ipxe/binary/autoexec.ipxe").await.body).unwrap();
    assert_eq!(autoexec, golden("autoexec-known.ipxe"));
}

#[tokio::test]
async fn probes_are_answered() {
    let server = server().await;
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(server.get("/readyz").await.status, 200);
    let body = String::from_utf8(server.get("/healthcheck").await.body).unwrap();
    assert!(body.starts_with(r#"{"git_rev":"v0.1.0","uptime_seconds":"#), "{body}");
    std::fs::remove_file(server._folder.path().join("ipxe/ipxe.efi")).unwrap();
    assert_eq!(server.get("/readyz").await.status, 503);
}

#[tokio::test]
async fn a_client_that_leaves_is_recorded_with_what_it_took() {
    let server = server().await;
    let file = std::fs::File::create(server._folder.path().join("images/big")).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /images/big HTTP/1.1\r\nhost: box\r\n\r\n").await.unwrap();
    let mut taken = vec![0; 1 << 20];
    stream.read_exact(&mut taken).await.unwrap();
    drop(stream);
    let bytes = server
        .heard(|fetched| match fetched {
            Fetched::Http { path, bytes, .. } if path == "/images/big" => Some(*bytes),
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
    for _ in 0..500 {
        if TcpStream::connect(server.address).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still listening after 5 s");
}
