use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::put;
use jiff::Timestamp;
use jiff::civil::time;
use jiff::tz::TimeZone;
use stdx::{Hint as _, Secret};

use super::{SENT_MAX, SentBackup, SentBackups, Target, TargetOptions, is_due};

type Requests = Arc<Mutex<Vec<String>>>;

/// Server that refuses each request with this status.
async fn server(status: StatusCode) -> (SocketAddr, Requests) {
    let requests = Requests::default();
    let record = move |method: &'static str| {
        move |State(all): State<Requests>,
              Path(name): Path<String>,
              headers: HeaderMap,
              _: Bytes| {
            let size = headers.get("content-length").map(|it| it.to_str().unwrap().to_owned());
            let line = format!("{method} {name} {}", size.unwrap_or_default());
            all.lock().unwrap().push(line);
            std::future::ready((status, [("location", "http://127.0.0.1:1/elsewhere")]))
        }
    };
    let routes = put(record("PUT")).delete(record("DELETE"));
    let router = Router::new().route("/dav/{name}", routes).with_state(Arc::clone(&requests));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, requests)
}

fn options(folder: &str) -> TargetOptions {
    TargetOptions { folder: folder.to_owned(), login: None, fingerprint: None }
}

fn file(text: &str) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

#[tokio::test]
async fn a_refusal_of_the_server_names_the_remedy() {
    for (status, words) in [
        (StatusCode::FORBIDDEN, "Check username and password"),
        (StatusCode::CONFLICT, "Create the folder"),
        (StatusCode::METHOD_NOT_ALLOWED, "switch WebDAV on"),
        (StatusCode::INSUFFICIENT_STORAGE, "Make space"),
        (StatusCode::MOVED_PERMANENTLY, "Use the URL to which"),
    ] {
        let (address, requests) = server(status).await;
        let target = Target::new(&options(&format!("http://{address}/dav/"))).unwrap();
        let refused = target.put("a.boxbak", file("1234")).await.unwrap_err();
        let text = stdx::sentences(&refused);
        assert!(text.contains(words) && text.contains(&address.to_string()), "{status}: {text}");
        assert_eq!(*requests.lock().unwrap(), ["PUT a.boxbak 4"], "a redirect is not followed");
        assert!(target.remove("a.boxbak").await.is_err(), "{status}");
    }
}

#[tokio::test]
async fn a_missing_file_is_removed_and_a_missing_server_is_named() {
    let (address, _) = server(StatusCode::NOT_FOUND).await;
    let target = Target::new(&options(&format!("http://{address}/dav"))).unwrap();
    target.remove("gone.boxbak").await.unwrap();
    let nowhere = Target::new(&options("http://127.0.0.1:1/dav")).unwrap();
    let error = nowhere.put("a.boxbak", file("")).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot reach 127.0.0.1:1: "), "{error}");
    assert!(error.hint().is_none());
}

#[test]
fn a_login_needs_tls_and_a_url_has_no_login() {
    let login = Some(("box".to_owned(), Secret::from("hunter2".to_owned())));
    let plain = TargetOptions { login: login.clone(), ..options("http://nas/dav") };
    let error = Target::new(&plain).err().unwrap().to_string();
    assert_eq!(error, "a login needs a URL with https://");
    for wrong in ["nas/dav", "ftp://nas/dav", "https://box:pw@nas/dav", "https://nas/?a=b", "x y"] {
        assert!(Target::new(&options(wrong)).is_err(), "{wrong}");
    }
    let print = Some("12".to_owned());
    assert!(Target::new(&TargetOptions { fingerprint: print, ..options("https://nas") }).is_err());
    let colon = Some(("a:b".to_owned(), Secret::from("x".to_owned())));
    assert!(Target::new(&TargetOptions { login: colon, ..options("https://nas") }).is_err());
    assert!(Target::new(&TargetOptions { login, ..options("https://nas/dav") }).is_ok());
}

#[test]
fn a_backup_is_due_once_a_day_at_its_time() {
    let zone = TimeZone::get("Europe/Berlin").unwrap_or(TimeZone::fixed(jiff::tz::offset(1)));
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let night = Some(time(2, 30, 0, 0));
    // 02:30 in Berlin is 01:30 UTC in winter.
    for (newest, now, due) in [
        (None, "2026-11-29T12:00:00Z", true),
        (Some("2026-11-28T01:31:00Z"), "2026-11-29T01:29:00Z", false),
        (Some("2026-11-28T01:31:00Z"), "2026-11-29T01:30:00Z", true),
        (Some("2026-11-29T01:30:00Z"), "2026-11-29T23:00:00Z", false),
        (Some("2026-11-27T12:00:00Z"), "2026-11-29T01:00:00Z", true),
        (Some("2026-12-29T12:00:00Z"), "2026-11-29T01:00:00Z", true),
    ] {
        assert_eq!(is_due(newest.map(at), at(now), night, &zone), due, "{newest:?} {now}");
    }
    let day = |newest: &str, now: &str| is_due(Some(at(newest)), at(now), None, &zone);
    assert!(!day("2026-11-28T12:00:00Z", "2026-11-29T11:59:00Z"));
    assert!(day("2026-11-28T12:00:00Z", "2026-11-29T12:00:00Z"));
}

#[test]
fn the_list_is_of_one_folder_and_names_what_is_too_much() {
    let backup = |number: usize| SentBackup {
        name: format!("{number}.boxbak"),
        at: Timestamp::from_second(i64::try_from(number).unwrap()).unwrap(),
        bytes: 1,
    };
    let mut list = SentBackups::read(b"damaged", "https://nas/dav");
    (0..5).for_each(|number| list.add(backup(number)));
    list.add(backup(4));
    assert_eq!(list.sent.len(), 5, "the same name is one file");
    assert_eq!(list.surplus(3), ["0.boxbak", "1.boxbak"]);
    assert_eq!(list.surplus(0).len(), 4, "the newest is never removed");
    list.forget("0.boxbak");
    assert_eq!(SentBackups::read(&list.bytes(), "https://nas/dav"), list);
    assert_eq!(SentBackups::read(&list.bytes(), "https://other/dav").sent, []);
    (10..10 + SENT_MAX).for_each(|number| list.add(backup(number)));
    assert_eq!(list.sent.len(), SENT_MAX);
}
