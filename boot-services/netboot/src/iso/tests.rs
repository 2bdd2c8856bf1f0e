//! Tests the routes without a socket.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use proptest::prelude::{any, proptest};
use stdx::MacAddr;
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::{MAGIC, Replacement, arguments, handlers, is_unified, load_unified};
use crate::plan::{Medium, Owner};
use crate::{AgentBoot, FetchEvent, Files, Observer, Plan, Plans, Services};

const BMC: [u8; 4] = [10, 77, 0, 201];

/// Plans of two machines. The arguments of the second are too long; the first may have its own ISO.
#[derive(Default)]
struct Two {
    iso: Option<PathBuf>,
}

impl Plans for Two {
    fn by_mac(&self, _: MacAddr) -> Option<Plan> {
        None
    }
    fn by_address(&self, _: IpAddr) -> Option<Plan> {
        None
    }
    fn medium(&self, owner: Owner<'_>) -> Option<Medium> {
        let text = match owner {
            Owner::Mac(mac) => mac.to_string(),
            Owner::Instance("3f2c-id") => "52:54:00:77:00:01".to_owned(),
            Owner::Instance(_) => return None,
            Owner::Address(address) => {
                let known = address == IpAddr::from([10, 77, 0, 11]);
                known.then(|| "52:54:00:77:00:01".to_owned())?
            }
        };
        let number = text.strip_prefix("52:54:00:77:00:0")?.parse::<usize>().ok()?;
        let mut medium = Medium::new(text.parse().ok()?, format!("default/nuc-{number}"));
        medium.boot = AgentBoot {
            grpc_authority: "10.77.0.1:42113".to_owned(),
            worker_id: "agent-7".to_owned(),
            args: vec!["x".repeat(number * 500)],
            ..AgentBoot::default()
        };
        medium.iso = self.iso.clone();
        medium.addresses = vec![IpAddr::from([10, 77, 0, 11])];
        medium.controller = Some(IpAddr::from(BMC));
        (number < 3).then_some(medium)
    }
}

#[derive(Default)]
struct EventLog(Mutex<Vec<FetchEvent>>);

impl Observer for EventLog {
    fn fetched(&self, event: FetchEvent) {
        self.0.lock().unwrap().push(event);
    }
}

struct Box {
    router: Router,
    events: Arc<EventLog>,
    original: Vec<u8>,
    _folder: TempDir,
}

/// Content with two placeholders, one of which lies across the border of two chunks.
fn original() -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..100_000_u32).flat_map(u32::to_be_bytes).collect();
    for at in [5, (128 << 10) - 100] {
        bytes[at..at + 1024].copy_from_slice(MAGIC.as_bytes());
    }
    bytes
}

fn router(services: Services) -> Router {
    handlers::routes(Arc::new(handlers::MediaRoutes::new(services)))
}

fn machine() -> Box {
    let folder = tempfile::tempdir().unwrap();
    let original = original();
    for (path, bytes) in [
        ("iso/hook.iso", &original[..]),
        ("iso/a/b/hook.iso", &original),
        ("iso/plain.iso", b"an ISO of another project"),
        ("agent/agent-x86_64.efi", &original),
        ("agent/vmlinuz-x86_64", &original),
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let events = Arc::new(EventLog::default());
    let services = Services {
        files: Files::new(folder.path()),
        plans: Arc::new(Two::default()),
        observer: events.clone(),
    };
    Box { router: router(services), events, original, _folder: folder }
}

impl Box {
    async fn ask(&self, path: &str, headers: &[(header::HeaderName, &str)]) -> Response {
        self.ask_from(BMC, "GET", path, headers).await
    }

    async fn ask_from(
        &self,
        peer: [u8; 4],
        method: &str,
        path: &str,
        headers: &[(header::HeaderName, &str)],
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 9999))));
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str) -> (StatusCode, Vec<u8>) {
        let response = self.ask(path, &[]).await;
        (response.status(), body(response).await)
    }

    /// Returns the expected content for the first machine.
    fn wanted(&self) -> Vec<u8> {
        let medium = Two::default().medium(Owner::Instance("3f2c-id")).unwrap();
        let line = arguments(&medium).join(" ");
        assert!(line.contains("worker_id=agent-7"), "{line}");
        assert!(line.contains("tinkerbell_insecure_tls=false"), "{line}");
        Replacement::new(&[&line]).unwrap();
        let mut wanted = self.original.clone();
        for at in [5, (128 << 10) - 100] {
            wanted[at..at + 1024].copy_from_slice(format!("{line:1024}").as_bytes());
        }
        wanted
    }
}

async fn body(response: Response) -> Vec<u8> {
    response.into_body().collect().await.unwrap().to_bytes().to_vec()
}

fn header(response: &Response, name: header::HeaderName) -> String {
    response.headers().get(name).unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_spelling_of_a_machine_gets_its_medium() {
    let site = machine();
    for path in [
        "/iso/52:54:00:77:00:01/hook.iso",
        "/iso/52-54-00-77-00-01/hook.iso",
        "/iso/5254.0077.0001/hook.iso",
        "/iso/525400770001/hook.iso",
        "/iso/3f2c-id/hook.iso",
        "/iso/a/b/52-54-00-77-00-01/hook.iso",
        "/uki/52:54:00:77:00:01/agent-x86_64.efi",
    ] {
        let (status, body) = site.get(path).await;
        assert_eq!(status, 200, "{path}");
        assert!(body == site.wanted(), "{path}");
    }
    let response = site.ask_from([10, 77, 0, 11], "GET", "/uki/agent-x86_64.efi", &[]).await;
    assert!(body(response).await == site.wanted(), "by the address that asks");
}

#[tokio::test]
async fn a_machines_own_iso_has_any_name() {
    let mut site = machine();
    let iso = site._folder.path().join("iso/hook.iso");
    let services = Services {
        files: Files::new(site._folder.path()),
        plans: Arc::new(Two { iso: Some(iso) }),
        observer: site.events.clone(),
    };
    site.router = router(services);
    let (status, body) = site.get("/iso/52:54:00:77:00:01/whatever.iso").await;
    assert_eq!(status, 200);
    assert!(body == site.wanted());
    // A unified image always comes from the box's own folder.
    assert_eq!(site.get("/uki/52:54:00:77:00:01/other.efi").await.0, 404);
}

#[tokio::test]
async fn tftp_gets_the_same_bytes() {
    let site = machine();
    let services = Services {
        files: Files::new(site._folder.path()),
        plans: Arc::new(Two::default()),
        observer: site.events.clone(),
    };
    let load = async |path: &str, peer: [u8; 4]| {
        let read = async |name: &str| {
            let file = site._folder.path().join("agent").join(name);
            tokio::fs::read(file).await.map(Into::into)
        };
        let loaded = load_unified(&services, path, IpAddr::from(peer), read).await;
        let (file, patch) = loaded.map_err(|error| error.kind())?;
        let mut bytes = file.to_vec();
        patch.apply(0, &mut bytes);
        Ok(bytes)
    };
    let own = [10, 77, 0, 11];
    for path in ["agent-x86_64.efi", "52-54-00-77-00-01/agent-x86_64.efi"] {
        assert!(is_unified(path));
        assert!(load(path, own).await.unwrap() == site.wanted(), "{path}");
    }
    for (path, peer) in [
        ("agent-x86_64.efi", [10, 77, 0, 99]),
        ("52-54-00-77-00-01/agent-x86_64.efi", [10, 77, 0, 99]),
        ("agent-arm64.efi", own),
        ("52:54:00:77:00:02/agent-x86_64.efi", own),
    ] {
        assert_eq!(load(path, peer).await, Err(std::io::ErrorKind::NotFound), "{path}");
    }
    assert!(!is_unified("52:54:00:77:00:01/ipxe.efi"));
}

#[tokio::test]
async fn nobody_else_gets_it() {
    let site = machine();
    for path in [
        "/iso/52:54:00:77:00:09/hook.iso",
        "/iso/unknown/hook.iso",
        "/iso/hook.iso",
        "/iso/52:54:00:77:00:01/hook.img",
        "/iso/52:54:00:77:00:01/none.iso",
        "/iso/52:54:00:77:00:01/..%2fhook.iso",
        "/iso/../52:54:00:77:00:01/hook.iso",
        "/uki/52:54:00:77:00:01/vmlinuz-x86_64",
        "/uki/agent-x86_64.efi",
    ] {
        assert_eq!(site.get(path).await.0, 404, "{path}");
    }
    let (unknown, path) = ([10, 77, 0, 99], "/iso/52:54:00:77:00:01/hook.iso");
    assert_eq!(site.ask_from(unknown, "GET", path, &[]).await.status(), 404);
}

#[tokio::test]
async fn says_what_cannot_be_patched() {
    let site = machine();
    let (status, text) = site.get("/iso/52:54:00:77:00:02/hook.iso").await;
    let text = String::from_utf8(text).unwrap();
    assert_eq!(status, 500);
    assert!(text.starts_with("default/nuc-2: the kernel arguments have 11"), "{text}");
    let (status, text) = site.get("/iso/52:54:00:77:00:01/plain.iso").await;
    let text = String::from_utf8(text).unwrap();
    assert_eq!(status, 500);
    assert!(text.contains("plain.iso has no space"), "{text}");
}

#[tokio::test]
async fn conditions_are_about_the_patched_bytes() {
    let site = machine();
    let path = "/iso/52:54:00:77:00:01/hook.iso";
    let head = site.ask_from(BMC, "HEAD", path, &[]).await;
    assert_eq!(head.status(), 200);
    assert_eq!(header(&head, header::CONTENT_LENGTH), site.original.len().to_string());
    assert_eq!(header(&head, header::ACCEPT_RANGES), "bytes");
    let tag = header(&head, header::ETAG);
    assert!(body(head).await.is_empty());
    let again = site.ask(path, &[(header::IF_NONE_MATCH, &tag)]).await;
    assert_eq!(again.status(), 304);
    let range = [(header::RANGE, "bytes=0-9"), (header::IF_RANGE, &tag)];
    let response = site.ask(path, &range).await;
    assert_eq!(response.status(), 206);
    assert_eq!(header(&response, header::CONTENT_RANGE), "bytes 0-9/400000");
    assert!(body(response).await == site.wanted()[..10]);
    let range = [(header::RANGE, "bytes=0-9"), (header::IF_RANGE, "\"another\"")];
    assert_eq!(site.ask(path, &range).await.status(), 200);
    let response = site.ask(path, &[(header::RANGE, "bytes=400000-")]).await;
    assert_eq!(response.status(), 416);
    assert_eq!(header(&response, header::CONTENT_RANGE), "bytes */400000");
}

#[tokio::test]
async fn a_file_that_was_replaced_is_searched_again() {
    let site = machine();
    let path = "/iso/52:54:00:77:00:01/plain.iso";
    assert_eq!(site.get(path).await.0, 500);
    std::fs::write(site._folder.path().join("iso/plain.iso"), &site.original).unwrap();
    let (status, body) = site.get(path).await;
    assert_eq!(status, 200);
    assert!(body == site.wanted());
}

#[tokio::test]
async fn a_mount_of_many_pieces_is_told_of_rarely() {
    let site = machine();
    for first in 0..300 {
        let range = format!("bytes={}-{}", first * 1000, first * 1000 + 999);
        let path = "/iso/52:54:00:77:00:01/hook.iso";
        assert_eq!(site.ask(path, &[(header::RANGE, &range)]).await.status(), 206);
    }
    assert_eq!(site.events.0.lock().unwrap().len(), 1);
    assert_eq!(site.get("/iso/unknown/hook.iso").await.0, 404);
    assert_eq!(site.events.0.lock().unwrap().len(), 2);
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn every_range_is_a_part_of_the_patched_file(first in 0_u64..400_000, length in any::<u16>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let site = machine();
            // Ranges around the placeholders.
            let first = if length % 2 == 0 { first } else { (128 << 10) - 2000 + first % 4000 };
            let last = (first + u64::from(length)).min(399_999);
            let range = format!("bytes={first}-{last}");
            let path = "/iso/52:54:00:77:00:01/hook.iso";
            let response = site.ask(path, &[(header::RANGE, &range)]).await;
            assert_eq!(response.status(), 206, "{range}");
            let wanted = &site.wanted()[first as usize..=last as usize];
            assert!(body(response).await == wanted, "{range}");
        });
    }
}
