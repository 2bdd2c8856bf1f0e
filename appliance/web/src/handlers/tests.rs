mod access;
mod backups;
mod encoding;
mod example_box;
mod live_stream;
mod machines;
mod os_images;
mod settings;
mod templates;
mod updates;
mod users;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use api::tinkerbell::WORKFLOW;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode};
use futures_util::stream::{self, StreamExt as _};
use http_body_util::BodyExt as _;
use machine_actions::MachineActions;
use status::access::{AccessToken, TokenRequest};
use status::backup::BackupSummary;
use status::image::ImageRequest;
use status::log::AuditLine;
use status::log::LogLine;
use status::reset::BoxAction;
use status::update::UpdateRequest;
use status::view::work::WorkDetails;
use status::view::{Machine, MachineState, StatusView, example};
use stdx::{Secret, SystemClock};
use tokio::sync::mpsc::Receiver;
use tower::ServiceExt as _;

use self::example_box::{Example, Memory};
use super::requested::host_of;
use super::{ConsoleStream, Download, PairRequest, Site, Source, SourceFuture, plain, router};
use crate::handlers::audit::PageRequest;
use box_owner::users::{Role, User};
use box_owner::{Owner, PrivateFiles};
use page_http::form_token::masked;
use web_pages::machine::tabs::{Section, SectionContent, Tab};
use web_pages::rights::Rights;

const OWNER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

/// Returns the rights of the default ClusterRole of a role. A test of `web_pages` compares them
/// with the ClusterRole.
fn rights(role: Role) -> Rights {
    Rights::of(|permission| match role {
        Role::Admin => true,
        Role::Operator => permission.is_for_viewers() || permission.is_for_operators(),
        Role::Viewer => permission.is_for_viewers(),
    })
}

fn site() -> (Arc<Owner>, Router) {
    let (owner, router, _) = site_that_leaves();
    (owner, router)
}

/// Routes of a box that cannot read the record of its owner.
fn site_without_state() -> Router {
    let owner = Owner::open(Arc::<Memory>::default(), Arc::new(SystemClock)).unwrap();
    router(Site::new(Arc::new(owner.out_of_reach()), Arc::new(Example::default())))
}

fn site_that_leaves() -> (Arc<Owner>, Router, Arc<Mutex<Vec<BoxAction>>>) {
    let keep = Arc::new(Memory::default());
    let owner = Arc::new(Owner::open(keep, Arc::new(SystemClock)).unwrap());
    let source = Example::default();
    let left = Arc::clone(&source.left);
    let source = Arc::new(source);
    (Arc::clone(&owner), router(Site::new(owner, source)), left)
}

async fn ask(router: &Router, line: &str, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path).header("host", "10.0.0.9:443");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let kind = headers.iter().any(|(name, _)| *name == "content-type");
    if method == "POST" && !kind {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap()
}

fn header<'a>(answer: &'a Response<Body>, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_box_without_an_owner_shows_nothing_but_its_claim() {
    let (_, router) = site();
    for path in ["/", "/machines", "/login", "/kubeconfig", "/events?page=/", "/panel.png"] {
        let answer = ask(&router, &format!("GET {path}"), &[], "").await;
        assert_eq!((answer.status(), header(&answer, "location")), (StatusCode::SEE_OTHER, "/S"));
    }
    for path in ["/assets/other", "/assets/../box", "/S/", "/S/7KQ4M2/more"] {
        let answer = ask(&router, &format!("GET {path}"), &[], "").await;
        assert_eq!(header(&answer, "location"), "/S", "{path} does not show the box's name");
    }
    for path in ["/S", "/S/7KQ4M2", "/ca.pem", "/assets/style.css", "/assets/live.js"] {
        let answer = ask(&router, &format!("GET {path}"), &[], "").await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        let policy = header(&answer, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("base-uri 'none'"));
    }
}

#[tokio::test]
async fn the_claim_of_a_process_names_its_log_and_no_screen() {
    let (_, router) = site();
    let answer = ask(&router, "GET /S", &[], "").await;
    let page = answer.into_body().collect().await.unwrap().to_bytes();
    let page = String::from_utf8_lossy(&page);
    assert!(page.contains("in the log of tinboxd") && !page.contains("box's screen"), "{page}");
}

#[tokio::test]
async fn a_box_that_cannot_read_whose_it_is_says_so_in_the_place_of_its_claim() {
    let router = site_without_state();
    let answer = ask(&router, "GET /machines", &[], "").await;
    assert_eq!((answer.status(), header(&answer, "location")), (StatusCode::SEE_OTHER, "/S"));
    let answer = ask(&router, "GET /S", &[], "").await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let page = answer.into_body().collect().await.unwrap().to_bytes();
    let page = String::from_utf8_lossy(&page);
    assert!(page.contains("so its owner is unknown") && !page.contains("name=\"code\""), "{page}");
    let form = "code=7KQ4M2&passphrase=long+enough&again=long+enough";
    assert_eq!(ask(&router, "POST /S", &[], form).await.status(), StatusCode::CONFLICT);
}

#[tokio::test]
async fn who_claims_comes_in_and_nobody_else() {
    let (owner, router) = site();
    let code = owner.code().unwrap().0;
    let form = format!("code={code}&passphrase=long+enough&again=long+enough");
    let foreign = [("sec-fetch-site", "cross-site")];
    assert_eq!(ask(&router, "POST /S", &foreign, &form).await.status(), StatusCode::FORBIDDEN);
    let other = [("origin", "https://evil.example")];
    assert_eq!(ask(&router, "POST /S", &other, &form).await.status(), StatusCode::FORBIDDEN);
    let large = format!("{form}&more={}", "x".repeat(super::BODY_BYTES_MAX));
    let refused = ask(&router, "POST /S", &[], &large).await.status();
    assert_eq!(refused, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(!owner.claimed());

    // A browser that hides where its user comes from still says whether it is from here.
    let wrong = form.replace(&code, if code == "000000" { "000001" } else { "000000" });
    let hidden = [("origin", "null"), ("sec-fetch-site", "same-origin"), ("accept", "text/html")];
    let answer = ask(&router, "POST /S", &hidden, &wrong).await;
    let page = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&page).contains("this address: 19"));

    let answer = ask(&router, "POST /S", &[("origin", "https://10.0.0.9:443")], &form).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let cookie = header(&answer, "set-cookie").to_owned();
    assert!(cookie.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let again = ask(&router, "POST /S", &[("accept", "text/plain")], &form).await;
    assert_eq!(again.status(), StatusCode::CONFLICT);

    let mine = [("cookie", cookie)];
    for path in ["/", "/machines", "/machines/nuc-07", "/network", "/box", "/help"] {
        assert_eq!(ask(&router, &format!("GET {path}"), &mine, "").await.status(), StatusCode::OK);
        let answer = ask(&router, &format!("GET {path}"), &[], "").await;
        assert_eq!(header(&answer, "location"), "/login", "{path}");
    }
    let missing = ask(&router, "GET /machines/nobody", &mine, "").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    let body = ask(&router, "GET /kubeconfig", &mine, "").await.into_body();
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(body, "server: https://10.0.0.9:6443");

    let unasked = ask(&router, "POST /logout", &mine, "csrf=guess").await;
    assert_eq!(unasked.status(), StatusCode::FORBIDDEN);
    assert_eq!(ask(&router, "GET /", &mine, "").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_stream_begins_with_every_part() {
    let (owner, router) = site();
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let cookie = format!("{}={token}", crate::response::COOKIE);
    let answer = ask(&router, "GET /events?page=/", &[("cookie", &cookie)], "").await;
    assert_eq!(header(&answer, "content-type"), "text/event-stream");
    let mut body = answer.into_body();
    let mut text = String::new();
    while !text.contains("nuc-07 needs you") {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text.push_str(&String::from_utf8_lossy(&frame));
    }
    assert!(text.contains("event: parts") && text.contains("id: 4711"), "{text}");
    owner.leave(&token);
    let rest = body.collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&rest).contains("event: out"));
}

#[tokio::test]
async fn only_the_owner_who_types_its_name_leaves_the_box() {
    let (owner, router, left) = site_that_leaves();
    let token = owner.claim(&owner.code().unwrap().0, "long enough", OWNER).unwrap().token;
    let csrf = masked(&owner.session(&token).unwrap().csrf);
    let cookie = format!("{}={token}", crate::response::COOKIE);
    let post = async |headers: &[(&str, &str)], form: &str| {
        let answer = ask(&router, "POST /box/leave", headers, form).await;
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    };
    let mine = [("cookie", cookie.as_str())];
    let form =
        |csrf: &str, level: &str, name: &str| format!("csrf={csrf}&level={level}&name={name}");
    let (status, _) = post(&[], &form(&csrf, "factory", "box-7f3a")).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "not logged in");
    for (csrf, level, name, wanted, message) in [
        ("guess", "factory", "box-7f3a", StatusCode::FORBIDDEN, "does not belong to your session"),
        (
            &csrf,
            "explode",
            "box-7f3a",
            StatusCode::UNPROCESSABLE_ENTITY,
            "This level does not exist",
        ),
        (&csrf, "factory", "box-7f3b", StatusCode::UNPROCESSABLE_ENTITY, "is called box-7f3a"),
        (&csrf, "factory", "", StatusCode::UNPROCESSABLE_ENTITY, "Nothing was done"),
        (&csrf, "powerOff", "box-7f3a", StatusCode::CONFLICT, "the disk is full"),
    ] {
        let (status, page) = post(&mine, &form(csrf, level, name)).await;
        assert_eq!(status, wanted, "{level} {name}");
        assert!(page.contains(message), "{page}");
    }
    assert_eq!(*left.lock().unwrap(), []);
    let (status, page) = post(&mine, &form(&csrf, "factory", "+box-7f3a")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("erases 12 machines, 3 keys, 3 images and all settings"), "{page}");
    assert_eq!(*left.lock().unwrap(), [BoxAction::Factory]);
}

#[tokio::test]
async fn plain_http_only_shows_the_way() {
    let keep = Arc::new(Memory::default());
    let owner = Arc::new(Owner::open(keep, Arc::new(SystemClock)).unwrap());
    let router = plain(Site::new(owner, Arc::new(Example::default())), 443);
    let answer = ask(&router, "GET /machines?x=1", &[], "").await;
    assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(header(&answer, "location"), "https://10.0.0.9/machines?x=1");
    assert_eq!(ask(&router, "GET /ca.pem", &[], "").await.status(), StatusCode::OK);
}

#[test]
fn a_host_is_a_host() {
    for (text, host) in [
        ("10.0.0.9:443", Some("10.0.0.9")),
        ("box-7f3a.local", Some("box-7f3a.local")),
        ("[fe80::1]:8443", Some("[fe80::1]")),
        ("a\"b", None),
        ("", None),
        ("[fe80", None),
    ] {
        assert_eq!(host_of(text).as_deref(), host, "{text:?}");
    }
}
