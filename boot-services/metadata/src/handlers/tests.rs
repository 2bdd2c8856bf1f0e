//! Tests requests to the router, as machines send them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use http_body_util::BodyExt;
use stdx::MacAddr;
use tower::ServiceExt;

use super::router;
use crate::ec2::tests::instance;
use crate::fake::{Events, Machines};
use crate::{Config, Imdsv2, Instance, PowerHooks, Provisioning, Unmatched};

/// MAC address of a NIC that uses the address of a third machine.
const OTHER: MacAddr = MacAddr([2, 0xee, 0, 0, 0, 1]);

/// Returns two machines, each with its own user data.
fn two() -> Machines {
    let two = Instance {
        id: "i-2".to_owned(),
        user_data: Some("two\r\n\u{e9}\t%s\0 ".into()),
        provisioning: Provisioning::Underway,
        ..Instance::default()
    };
    let taken = Unmatched::OtherNic { hardware: "default/nuc-3".to_owned(), mac: OTHER };
    let machines = Machines::default().with([10, 77, 0, 11], instance());
    machines.with([10, 77, 0, 12], two).without([10, 77, 0, 13], taken)
}

fn routes(config: Config, machines: Machines, events: Arc<Events>) -> Router {
    router(config, Arc::new(machines), events, Arc::new(PowerHooks::new(&[0; 32])))
}

fn site(config: Config) -> Router {
    routes(config, two(), Arc::new(Events::default()))
}

async fn ask(router: &Router, peer: &str, request: Request<Body>) -> (StatusCode, String) {
    let mut request = request;
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn fetch(router: &Router, peer: &str, path: &str) -> (u16, String) {
    let (status, body) = ask(router, peer, Request::get(path).body(Body::empty()).unwrap()).await;
    (status.as_u16(), body)
}

const ONE: &str = "10.77.0.11:1000";
const TWO: &str = "10.77.0.12:1000";
const TAKEN: &str = "10.77.0.13:1000";
const UNKNOWN: &str = "10.77.0.99:1000";

#[tokio::test]
async fn each_machine_gets_its_own_data_and_strangers_none() {
    let events = Arc::new(Events::default());
    let site = routes(Config::default(), two(), events.clone());
    let two = "two\r\n\u{e9}\t%s\0 ".to_owned();
    assert_eq!(fetch(&site, ONE, "/2009-04-04/user-data").await.1, "#cloud-config\n{}\n");
    assert_eq!(fetch(&site, TWO, "/2009-04-04/user-data/").await, (200, two.clone()));
    assert_eq!(fetch(&site, "[::ffff:10.77.0.12]:9", "/latest/user-data").await, (200, two));
    for path in [
        "/2009-04-04/user-data",
        "/2009-04-04",
        "/latest/meta-data/",
        "/metadata",
        "/nocloud/user-data",
        "/nocloud/meta-data",
        "/nocloud/v1/network-config",
        "/ignition",
        "/config.ign",
        "/talos?u=c0ffee&m=52:54:00:77:00:01",
    ] {
        assert_eq!(fetch(&site, UNKNOWN, path).await, (404, String::new()), "{path}");
        assert_eq!(fetch(&site, ONE, path).await.0, 200, "{path}");
    }
    let asked = events.requests();
    assert_eq!(asked[0], ("/2009-04-04/user-data".to_owned(), 200));
    assert!(asked.contains(&("/metadata".to_owned(), 404)));
}

#[tokio::test]
async fn a_nic_that_takes_a_machines_address_reads_nothing_of_it() {
    let events = Arc::new(Events::default());
    let site = routes(Config::default(), two(), events.clone());
    let paths = [
        "/2009-04-04/user-data",
        "/latest/meta-data/",
        "/nocloud/user-data",
        "/ignition",
        "/talos",
        "/metadata",
    ];
    for path in paths {
        assert_eq!(fetch(&site, TAKEN, path).await, (404, String::new()), "{path}");
    }
    for request in [Request::post("/phone-home"), Request::put("/latest/api/token")] {
        let request = request.body(Body::empty()).unwrap();
        assert_eq!(ask(&site, TAKEN, request).await.0, StatusCode::NOT_FOUND);
    }
    let refused = events.refused();
    assert_eq!(refused, vec![("default/nuc-3".to_owned(), OTHER); paths.len() + 2]);
    assert!(events.phoned_home().is_empty());
}

#[tokio::test]
async fn the_tree_answers_with_and_without_a_slash() {
    let site = site(Config::default());
    for path in ["/2009-04-04", "/2009-04-04/", "/2016-09-02", "/latest/"] {
        assert_eq!(fetch(&site, ONE, path).await, (200, "meta-data/\nuser-data".to_owned()));
    }
    assert_eq!(fetch(&site, ONE, "/2021-03-23/meta-data/instance-id").await.1, "i-1");
    for path in ["/1.0/meta-data/", "/x", "/x/y/z", "/latest/dynamic/instance-identity/document"] {
        assert_eq!(fetch(&site, ONE, path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn tokens_are_given_and_accepted_and_not_needed() {
    let site = site(Config::default());
    let put = |life: &str| {
        let header = "X-aws-ec2-metadata-token-ttl-seconds";
        let request = Request::put("/latest/api/token").header(header, life);
        request.body(Body::empty()).unwrap()
    };
    let (status, token) = ask(&site, ONE, put("21600")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ask(&site, ONE, put("0")).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(ask(&site, UNKNOWN, put("60")).await.0, StatusCode::NOT_FOUND);
    let with = |token: &str| {
        let request = Request::get("/latest/meta-data/instance-id");
        request.header("X-aws-ec2-metadata-token", token).body(Body::empty()).unwrap()
    };
    assert_eq!(ask(&site, ONE, with(&token)).await, (StatusCode::OK, "i-1".to_owned()));
    assert_eq!(ask(&site, ONE, with("stale")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(ask(&site, TWO, with(&token)).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(fetch(&site, ONE, "/latest/meta-data/instance-id").await.0, 200);
    assert_eq!(fetch(&site, ONE, "/latest/api/token").await.0, 405);
}

#[tokio::test]
async fn phoning_home_is_recorded_within_limits() {
    let events = Arc::new(Events::default());
    let site = routes(Config::default(), two(), events.clone());
    let post = |path: &str, body: Vec<u8>| Request::post(path).body(Body::from(body)).unwrap();
    let form = b"instance_id=i-1&hostname=nuc-1".to_vec();
    for (path, more) in [("/phone-home", ""), ("/phone-home/", "&a=b"), ("/phone-home/i-1", "&=")] {
        let form = [&form, more.as_bytes()].concat();
        assert_eq!(ask(&site, ONE, post(path, form)).await.0, StatusCode::OK);
    }
    assert_eq!(ask(&site, UNKNOWN, post("/phone-home", form)).await.0, StatusCode::NOT_FOUND);
    let flood = vec![b'x'; 1 << 20];
    let (status, _) = ask(&site, ONE, post("/phone-home", flood)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let phone_homes = events.phoned_home();
    assert_eq!(phone_homes.len(), 1, "a repetition is reported once");
    assert_eq!(phone_homes[0].hardware, "default/nuc-1");
    assert_eq!(phone_homes[0].instance_id.as_deref(), Some("i-1"));
}

#[tokio::test]
async fn no_form_is_read_from_an_address_that_no_machine_holds() {
    let site = site(Config::default());
    for (peer, status, is_read) in
        [(UNKNOWN, StatusCode::NOT_FOUND, false), (ONE, StatusCode::OK, true)]
    {
        let read = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&read);
        let form = Body::from("instance_id=i-1").map_frame(move |frame| {
            seen.store(true, Ordering::Relaxed);
            frame
        });
        let request = Request::post("/phone-home").body(Body::new(form)).unwrap();
        assert_eq!(ask(&site, peer, request).await.0, status);
        assert_eq!(read.load(Ordering::Relaxed), is_read, "{peer}");
    }
}

#[tokio::test]
async fn storage_is_what_rootio_reads() {
    let site = site(Config::default());
    let expected = r#"{"metadata":{"instance":{"storage":{"disks":null,"filesystems":null}}}}"#;
    assert_eq!(fetch(&site, ONE, "/metadata").await, (200, expected.to_owned()));
}

#[tokio::test]
async fn it_shares_a_port_with_the_boot_files() {
    let files = Router::new()
        .route("/ipxe/script/{mac}/auto.ipxe", get(async || "script"))
        .route("/images/{*path}", get(async || "image"))
        .route("/healthz", get(async || "ok"));
    let site = files.merge(site(Config::default()));
    assert_eq!(fetch(&site, ONE, "/ipxe/script/a/auto.ipxe").await.1, "script");
    assert_eq!(fetch(&site, ONE, "/images/a/b").await.1, "image");
    assert_eq!(fetch(&site, ONE, "/healthz").await.1, "ok");
    assert_eq!(fetch(&site, ONE, "/latest/meta-data/instance-id").await.1, "i-1");
    assert_eq!(fetch(&site, ONE, "/ipxe/other").await.0, 404);
}

#[tokio::test]
async fn a_required_token_is_required() {
    let site =
        site(Config { imdsv2: Imdsv2::Required, instance_endpoint: true, ..Config::default() });
    let by_id = "/tootles/instanceID/i-1/2009-04-04/user-data";
    for path in ["/latest/meta-data/", "/2009-04-04/meta-data/instance-id", by_id] {
        assert_eq!(fetch(&site, ONE, path).await, (401, String::new()), "{path}");
    }
    let life = "X-aws-ec2-metadata-token-ttl-seconds";
    let put = Request::put("/latest/api/token").header(life, "60").body(Body::empty()).unwrap();
    let (_, token) = ask(&site, ONE, put).await;
    for method in ["GET", "HEAD"] {
        let request = Request::builder().method(method).uri("/2009-04-04/meta-data/instance-id");
        let request = request.header("X-aws-ec2-metadata-token", &token);
        let (status, body) = ask(&site, ONE, request.body(Body::empty()).unwrap()).await;
        assert_eq!((status, body.is_empty()), (StatusCode::OK, method == "HEAD"));
    }
    // These clients know no tokens.
    for path in ["/nocloud/user-data", "/ignition", "/talos", "/metadata"] {
        assert_eq!(fetch(&site, ONE, path).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn tokens_are_for_who_asks_directly_and_for_a_life_that_ec2_gives() {
    let proxied = |life: &str, client: &str| {
        let request = Request::put("/latest/api/token").header("X-Forwarded-For", client);
        let life = ("X-aws-ec2-metadata-token-ttl-seconds", life);
        request.header(life.0, life.1).body(Body::empty()).unwrap()
    };
    let direct = site(Config::default());
    let (status, _) = ask(&direct, ONE, proxied("60", "10.77.0.12")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let trusting =
        site(Config { trusted_proxies: vec!["10.9.9.9/32".parse().unwrap()], ..Config::default() });
    for (peer, expected) in [("10.9.9.9:1", StatusCode::OK), (ONE, StatusCode::FORBIDDEN)] {
        let (status, _) = ask(&trusting, peer, proxied("60", "10.77.0.12")).await;
        assert_eq!(status, expected, "{peer}");
    }
    for life in ["", "-1", "+5x", "21601", "1.5", "99999999999999999999"] {
        let (status, _) = ask(&trusting, "10.9.9.9:1", proxied(life, "10.77.0.12")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{life}");
    }
    let none = Request::put("/latest/api/token").body(Body::empty()).unwrap();
    assert_eq!(ask(&direct, ONE, none).await.0, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn nothing_but_get_and_head_is_allowed() {
    let site = site(Config { instance_endpoint: true, ..Config::default() });
    for path in [
        "/2009-04-04/user-data",
        "/latest",
        "/tootles/instanceID/i-1/2009-04-04",
        "/nocloud/user-data",
        "/ignition",
        "/metadata",
    ] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let (status, _) = ask(&site, ONE, request).await;
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_trusted_proxy_speaks_for_a_machine() {
    let proxies = vec!["10.9.9.0/24".parse().unwrap()];
    let site = site(Config { trusted_proxies: proxies, ..Config::default() });
    let through = |list: &'static [u8]| {
        let request = Request::get("/latest/meta-data/instance-id");
        request.header("X-Forwarded-For", list).body(Body::empty()).unwrap()
    };
    let proxy = "10.9.9.9:1";
    let ok = |id: &str| (StatusCode::OK, id.to_owned());
    assert_eq!(ask(&site, proxy, through(b"10.77.0.12, 10.77.0.11")).await, ok("i-1"));
    assert_eq!(ask(&site, proxy, through(b"::ffff:10.77.0.12,10.9.9.8")).await, ok("i-2"));
    assert_eq!(ask(&site, TWO, through(b"10.77.0.11")).await, ok("i-2"));
    assert_eq!(ask(&site, proxy, through(b"who?")).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(fetch(&site, proxy, "/latest/meta-data/instance-id").await.0, 404);
}

#[tokio::test]
async fn the_tree_of_any_machine_is_there_when_asked_for() {
    let path = "/tootles/instanceID/i-1/2009-04-04/user-data";
    let closed = site(Config::default());
    assert_eq!(fetch(&closed, ONE, path).await.0, 404);
    let open = site(Config { instance_endpoint: true, ..Config::default() });
    for peer in [TWO, UNKNOWN] {
        assert_eq!(fetch(&open, peer, path).await, (200, "#cloud-config\n{}\n".to_owned()));
        let list = (200, "meta-data/\nuser-data".to_owned());
        assert_eq!(fetch(&open, peer, "/tootles/instanceID/i-1/2009-04-04").await, list);
        assert_eq!(fetch(&open, peer, "/tootles/instanceID/i-1/2009-04-04/").await, list);
        assert_eq!(fetch(&open, peer, &path.replace("i-1", "i-3")).await.0, 404);
        assert_eq!(fetch(&open, peer, &path.replace("2009-04-04", "latest")).await.0, 404);
    }
}

#[tokio::test]
async fn configurations_are_user_data_byte_for_byte() {
    let site = site(Config::default());
    let two = "two\r\n\u{e9}\t%s\0 ".to_owned();
    for (path, kind) in [
        ("/ignition", "application/vnd.coreos.ignition+json"),
        ("/config.ign", "application/vnd.coreos.ignition+json"),
        // The query is another machine's: the address counts.
        ("/talos?u=c0ffee&m=52:54:00:77:00:01&h=nuc-1", "application/yaml"),
    ] {
        assert_eq!(fetch(&site, TWO, path).await, (200, two.clone()), "{path}");
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        request.extensions_mut().insert(ConnectInfo(TWO.parse::<SocketAddr>().unwrap()));
        let response = site.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], kind);
    }
}

/// Returns one machine that was installed `ago` seconds ago.
fn installed(ago: u64) -> Machines {
    let ago = std::time::Duration::from_secs(ago);
    let vendor_data = Some("vendor".into());
    let provisioning = Provisioning::Ended { ago };
    let instance = Instance { vendor_data, provisioning, ..instance() };
    Machines::default().with([10, 77, 0, 11], instance)
}

#[tokio::test]
async fn outside_its_window_a_machine_has_no_user_data() {
    let config = Config { instance_endpoint: true, ..Config::default() };
    let by_id = "/tootles/instanceID/i-1/2009-04-04/user-data";
    let seed = ["/latest/user-data", "/2009-04-04/user-data/", "/nocloud/user-data", by_id];
    for (ago, open) in [(10, true), (4000, false)] {
        let events = Arc::new(Events::default());
        let site = routes(config.clone(), installed(ago), events.clone());
        for path in seed.into_iter().chain(["/nocloud/vendor-data"]) {
            let (status, text) = fetch(&site, ONE, path).await;
            assert_eq!((status, !text.is_empty()), (200, open), "{path}");
        }
        for path in ["/ignition", "/talos"] {
            assert_eq!(fetch(&site, ONE, path).await.0, if open { 200 } else { 404 }, "{path}");
        }
        assert_eq!(fetch(&site, ONE, "/nocloud/meta-data").await.0, 200);
        assert_eq!(events.withheld(), vec!["default/nuc-1"; if open { 0 } else { 7 }]);
    }
}
