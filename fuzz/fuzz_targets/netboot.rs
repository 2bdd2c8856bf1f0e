//! HTTP service of the boot files: any path and range, and any bytes as a request's head.

#![no_main]

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::{Method, StatusCode};
use fuzz::{Input, KNOWN, ask, block_on, request};
use libfuzzer_sys::fuzz_target;
use netboot::http::head::{MAX_HEAD, Parsed, parse};
use netboot::http::{HttpConfig, router};
use netboot::{Boot, FetchEvent, Files, Observer, Plan, Plans, Services};
use stdx::MacAddr;
use tempfile::TempDir;

const SECRET: &[u8] = b"what lies beside the folders that are served";
const IMAGE: &[u8] = b"0123456789";

struct One;

impl Plans for One {
    fn by_mac(&self, mac: MacAddr) -> Option<Plan> {
        let hardware = "default/nuc-1".to_owned();
        Some(Plan { mac, hardware, addresses: Vec::new(), boot: Boot::LocalDisk })
    }

    fn by_address(&self, _: IpAddr) -> Option<Plan> {
        None
    }
}

impl Observer for One {
    fn fetched(&self, event: FetchEvent) {
        assert!(format!("{event:?}").len() < 4 << 10);
    }
}

struct Site {
    router: Router,
    _folder: TempDir,
}

static SITE: LazyLock<Site> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        ("ipxe/ipxe.efi", IMAGE),
        ("agent/vmlinuz", IMAGE),
        ("images/a/b", IMAGE),
        ("secret", SECRET),
    ];
    for (path, content) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("its folder")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }
    let config =
        HttpConfig { script_base: "http://10.77.0.1:7080".to_owned(), version: "0".to_owned() };
    let services = Services {
        files: Files::new(folder.path()),
        plans: Arc::new(One),
        observer: Arc::new(One),
    };
    Site { router: router(config, services), _folder: folder }
});

/// Checks the parser of request heads for plain downloads: a parsed head is complete and has no
/// body.
fn head(bytes: &[u8]) {
    match parse(bytes) {
        Parsed::Partial => assert!(bytes.len() < MAX_HEAD),
        Parsed::Request(head) => {
            assert!(head.path.starts_with('/') && head.length <= bytes.len());
            let said = bytes[..head.length].to_ascii_lowercase();
            for body in [&b"\ncontent-length:"[..], b"\ntransfer-encoding:"] {
                assert!(!said.windows(body.len()).any(|part| part == body), "it has a body");
            }
            // More bytes after a head do not change the parsed head.
            assert_eq!(parse(&bytes[..head.length]), Parsed::Request(head));
        }
        Parsed::Other => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    head(bytes);
    let mut input = Input(bytes);
    let method = if input.byte() % 2 == 0 { Method::GET } else { Method::HEAD };
    let (target, range, tag) = (input.line(), input.line(), input.line());
    let headers = [("range", range), ("if-range", tag)];
    let headers = if tag.is_empty() { &headers[..1] } else { &headers[..] };
    let Some(request) = request(method, target, headers, &[], KNOWN) else { return };
    let (status, body) = block_on(ask(&SITE.router, request));
    assert!(!status.is_server_error(), "{status}");
    assert!(!body.windows(SECRET.len()).any(|part| part == SECRET), "a path left its folder");
    if status == StatusCode::PARTIAL_CONTENT {
        assert!(IMAGE.windows(body.len().max(1)).any(|part| part.starts_with(&body)));
    }
});
