//! The router, asked as a machine would ask it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::{Observer, router};
use crate::ec2::tests::instance;
use crate::{Instance, Instances, PhoneHome};

/// Two machines, each with its own user data.
struct Two;

impl Instances for Two {
    fn by_address(&self, address: IpAddr) -> Option<Instance> {
        match address.to_string().as_str() {
            "10.77.0.11" => Some(instance()),
            "10.77.0.12" => Some(Instance {
                id: "i-2".to_owned(),
                user_data: Some("two\r\n\u{e9}\t%s\0 ".into()),
                ..Instance::default()
            }),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Heard {
    asked: Mutex<Vec<(String, u16)>>,
    news: Mutex<Vec<PhoneHome>>,
}

impl Observer for Heard {
    fn asked(&self, _: IpAddr, path: &str, status: u16) {
        self.asked.lock().unwrap().push((path.to_owned(), status));
    }
    fn phoned_home(&self, news: PhoneHome) {
        self.news.lock().unwrap().push(news);
    }
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
const NOBODY: &str = "10.77.0.99:1000";

#[tokio::test]
async fn each_machine_gets_its_own_data_and_strangers_none() {
    let heard = Arc::new(Heard::default());
    let site = router(Arc::new(Two), heard.clone());
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
    ] {
        assert_eq!(fetch(&site, NOBODY, path).await, (404, String::new()), "{path}");
        assert_eq!(fetch(&site, ONE, path).await.0, 200, "{path}");
    }
    let asked = heard.asked.lock().unwrap();
    assert_eq!(asked[0], ("/2009-04-04/user-data".to_owned(), 200));
    assert!(asked.contains(&("/metadata".to_owned(), 404)));
}

#[tokio::test]
async fn the_tree_answers_with_and_without_a_slash() {
    let site = router(Arc::new(Two), Arc::new(Heard::default()));
    for path in ["/2009-04-04", "/2009-04-04/", "/2016-09-02", "/latest/"] {
        assert_eq!(fetch(&site, ONE, path).await, (200, "meta-data/\nuser-data".to_owned()));
    }
    assert_eq!(fetch(&site, ONE, "/2021-03-23/meta-data/instance-id").await.1, "i-1");
    for path in ["/1.0/meta-data/", "/x", "/x/y/z", "/latest/dynamic/instance-identity/document"] {
        assert_eq!(fetch(&site, ONE, path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn tokens_are_given_and_honoured_and_not_needed() {
    let site = router(Arc::new(Two), Arc::new(Heard::default()));
    let put = |life: &str| {
        let header = "X-aws-ec2-metadata-token-ttl-seconds";
        let request = Request::put("/latest/api/token").header(header, life);
        request.body(Body::empty()).unwrap()
    };
    let (status, token) = ask(&site, ONE, put("21600")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(ask(&site, ONE, put("0")).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(ask(&site, NOBODY, put("60")).await.0, StatusCode::NOT_FOUND);
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
    let heard = Arc::new(Heard::default());
    let site = router(Arc::new(Two), heard.clone());
    let post = |path: &str, body: Vec<u8>| Request::post(path).body(Body::from(body)).unwrap();
    let form = b"instance_id=i-1&hostname=nuc-1".to_vec();
    for path in ["/phone-home", "/phone-home/", "/phone-home/i-1"] {
        assert_eq!(ask(&site, ONE, post(path, form.clone())).await.0, StatusCode::OK);
    }
    assert_eq!(ask(&site, NOBODY, post("/phone-home", form)).await.0, StatusCode::NOT_FOUND);
    let flood = vec![b'x'; 1 << 20];
    let (status, _) = ask(&site, ONE, post("/phone-home", flood)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let news = heard.news.lock().unwrap();
    assert_eq!(news.len(), 3);
    assert_eq!(news[0].hardware, "default/nuc-1");
    assert_eq!(news[0].instance_id.as_deref(), Some("i-1"));
}

#[tokio::test]
async fn storage_is_what_rootio_reads() {
    let site = router(Arc::new(Two), Arc::new(Heard::default()));
    let wanted = r#"{"metadata":{"instance":{"storage":{}}}}"#;
    assert_eq!(fetch(&site, ONE, "/metadata").await, (200, wanted.to_owned()));
}

#[tokio::test]
async fn it_shares_a_port_with_the_boot_files() {
    let files = Router::new()
        .route("/ipxe/script/{mac}/auto.ipxe", get(async || "script"))
        .route("/images/{*path}", get(async || "image"))
        .route("/healthz", get(async || "ok"));
    let site = files.merge(router(Arc::new(Two), Arc::new(Heard::default())));
    assert_eq!(fetch(&site, ONE, "/ipxe/script/a/auto.ipxe").await.1, "script");
    assert_eq!(fetch(&site, ONE, "/images/a/b").await.1, "image");
    assert_eq!(fetch(&site, ONE, "/healthz").await.1, "ok");
    assert_eq!(fetch(&site, ONE, "/latest/meta-data/instance-id").await.1, "i-1");
    assert_eq!(fetch(&site, ONE, "/ipxe/other").await.0, 404);
}
