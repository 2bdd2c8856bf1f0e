//! Tests of requests that need the passphrase again, and of requests in the audit log.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stdx::TestClock;
use stdx::testing::Wait;

use super::*;

const PASSPHRASE: &str = "correct+horse";

/// A box whose owner is logged in, and a clock.
struct Claimed {
    router: Router,
    clock: TestClock,
    records: Arc<Mutex<Vec<PageRequest>>>,
    left: Arc<Mutex<Vec<BoxAction>>>,
}

impl Claimed {
    /// Returns a claimed box, the cookie of its session, and the CSRF token of the session.
    async fn new() -> (Self, String, String) {
        let clock = TestClock::at(Timestamp::UNIX_EPOCH);
        let owner = Owner::open(Arc::<Memory>::default(), Arc::new(clock.clone())).unwrap();
        let owner = Arc::new(owner);
        let source = Example::default();
        let (left, records) = (Arc::clone(&source.left), Arc::clone(&source.requests));
        let router = router(Site::new(Arc::clone(&owner), Arc::new(source)));
        let (code, _) = owner.code().unwrap();
        let form = format!("code={code}&passphrase={PASSPHRASE}&again={PASSPHRASE}");
        let answer = ask(&router, "POST /S", &[], &form).await;
        let cookie = header(&answer, "set-cookie").split(';').next().unwrap().to_owned();
        let csrf = masked(&owner.session(cookie.split_once('=').unwrap().1).unwrap().csrf);
        (Self { router, clock, records, left }, cookie, csrf)
    }

    async fn post(&self, cookie: &str, path: &str, form: &str) -> StatusCode {
        ask(&self.router, &format!("POST {path}"), &[("cookie", cookie)], form).await.status()
    }
}

#[tokio::test]
async fn keys_leave_the_box_and_it_is_erased_only_with_the_passphrase_of_now() {
    let (claimed, cookie, csrf) = Claimed::new().await;
    let mine = [("cookie", cookie.as_str())];
    let get = async || ask(&claimed.router, "GET /kubeconfig", &mine, "").await.status();
    assert_eq!(get().await, StatusCode::OK, "it was given a moment ago");
    claimed.clock.advance(SignedDuration::from_mins(5));
    assert_eq!(get().await, StatusCode::FORBIDDEN);
    let name = example::working().name;
    let forms = [
        ("/kubeconfig", String::new()),
        ("/kubeconfig/rotate", String::new()),
        ("/backup", "&passphrase=of+the+file&again=of+the+file".to_owned()),
        ("/box/leave", format!("&level=factory&name={name}")),
        ("/cluster-api/pair", "&name=fleet&kubeconfig=k&rights=admin".to_owned()),
        ("/backup/kept", "&agreed=yes&name=2026-11-25T02-30-00Z.boxbak".to_owned()),
        ("/account/ssh-keys", "&keys=".to_owned()),
    ];
    for (path, rest) in &forms {
        let form = format!("csrf={csrf}{rest}");
        assert_eq!(claimed.post(&cookie, path, &form).await, StatusCode::FORBIDDEN, "{path}");
        let form = format!("{form}&owner=wrong+horse");
        assert_eq!(claimed.post(&cookie, path, &form).await, StatusCode::FORBIDDEN, "{path}");
    }
    assert!(claimed.left.lock().unwrap().is_empty());
    for (path, rest) in &forms {
        claimed.clock.advance(SignedDuration::from_mins(5));
        let form = format!("csrf={csrf}{rest}&owner={PASSPHRASE}");
        let done = claimed.post(&cookie, path, &form).await;
        assert!([StatusCode::OK, StatusCode::SEE_OTHER].contains(&done), "{path}");
    }
    assert_eq!(*claimed.left.lock().unwrap(), [BoxAction::Factory]);
}

#[tokio::test]
async fn another_passphrase_ends_every_other_session() {
    let (claimed, cookie, csrf) = Claimed::new().await;
    let login = async |passphrase: &str| {
        let form = format!("passphrase={passphrase}");
        let answer = ask(&claimed.router, "POST /login", &[], &form).await;
        header(&answer, "set-cookie").split(';').next().unwrap_or_default().to_owned()
    };
    let comes_in = async |cookie: &str| {
        ask(&claimed.router, "GET /", &[("cookie", cookie)], "").await.status() == StatusCode::OK
    };
    let other = login(PASSPHRASE).await;
    assert!(comes_in(&other).await);
    let form = |old: &str| format!("csrf={csrf}&owner={old}&passphrase=new+horse&again=new+horse");
    let path = "/account/passphrase";
    assert_eq!(claimed.post(&cookie, path, &form("wrong+one")).await, StatusCode::FORBIDDEN);
    assert!(comes_in(&other).await);
    assert_eq!(claimed.post(&cookie, path, &form(PASSPHRASE)).await, StatusCode::OK);
    assert!(comes_in(&cookie).await && !comes_in(&other).await);
    assert_eq!(login(PASSPHRASE).await, "", "the old one is not taken any more");
    assert!(comes_in(&login("new+horse").await).await);
}

#[tokio::test]
async fn every_form_and_every_download_of_keys_leaves_a_line_in_the_audit_log() {
    let (claimed, cookie, csrf) = Claimed::new().await;
    let mine = [("cookie", cookie.as_str())];
    ask(&claimed.router, "POST /login", &[], "passphrase=wrong+horse").await;
    ask(&claimed.router, "POST /login", &[], &format!("passphrase={PASSPHRASE}")).await;
    ask(&claimed.router, "GET /kubeconfig", &mine, "").await;
    ask(&claimed.router, "GET /kubeconfig", &[], "").await;
    ask(&claimed.router, "GET /machines", &mine, "").await;
    let form = format!("csrf={csrf}&passphrase=of+the+file&again=of+the+file");
    claimed.post(&cookie, "/backup", &form).await;
    claimed.post(&cookie, "/backup/kept", &format!("csrf={csrf}")).await;
    claimed.post(&cookie, "/box/leave", &format!("csrf={csrf}&level=safe&name=other")).await;
    claimed.post(&cookie, "/not/there/yet", "").await;
    claimed.post(&cookie, "/logout", &format!("csrf={csrf}")).await;
    let records = claimed.records.lock().unwrap();
    let entries: Vec<_> =
        records.iter().map(|it| (it.path.as_str(), it.accepted, it.code)).collect();
    assert_eq!(
        entries,
        [
            ("/S", true, 303),
            ("/login", false, 403),
            ("/login", true, 303),
            ("/kubeconfig", true, 200),
            ("/kubeconfig", false, 303),
            ("/backup", true, 200),
            ("/backup/kept", true, 422),
            ("/box/leave", true, 422),
            ("/not/there/yet", true, 405),
            ("/logout", true, 303),
        ]
    );
}

#[tokio::test]
async fn a_record_names_the_user_and_does_not_need_the_client() {
    let (claimed, cookie, csrf) = Claimed::new().await;
    let form = format!("csrf={csrf}&name=jane&role=viewer&passphrase=first+words");
    let sent = claimed.post(&cookie, "/users", &form);
    // The client goes as soon as the request has begun.
    assert!(tokio::time::timeout(Duration::ZERO, sent).await.is_err());
    let named = || {
        let records = claimed.records.lock().unwrap();
        records.iter().find(|it| it.path == "/users").map(|it| (it.code, it.detail.clone()))
    };
    let wait = Wait::new("the record");
    let record = loop {
        if let Some(record) = named() {
            break record;
        }
        tokio::time::sleep(wait.pause()).await;
    };
    assert_eq!(record, (303, "user jane, role viewer".to_owned()));
    for (name, detail) in [("jane", "login of jane"), ("my passphrase", "")] {
        let form = format!("name={name}&passphrase=wrong+words").replace(' ', "+");
        ask(&claimed.router, "POST /login", &[], &form).await;
        assert_eq!(claimed.records.lock().unwrap().last().unwrap().detail, detail);
    }
}

#[tokio::test(start_paused = true)]
async fn a_console_is_shown_to_its_session_only_and_ends_with_it() {
    let (claimed, cookie, csrf) = Claimed::new().await;
    let mine = [("cookie", cookie.as_str())];
    let path = "GET /machines/nuc-07/console/output";
    let answer = ask(&claimed.router, path, &[], "").await;
    assert_eq!(header(&answer, "location"), "/login");
    let missing = ask(&claimed.router, "GET /machines/nuc-08/console/output", &mine, "").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    let page = ask(&claimed.router, "GET /machines/nuc-07/console", &mine, "").await;
    assert_eq!(page.status(), StatusCode::OK);
    let page = ask(&claimed.router, "GET /machines/nuc-07/yaml", &mine, "").await;
    let text = page.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&text).contains("Yaml of nuc-07"));
    let page = ask(&claimed.router, "GET /machines/nuc-99/yaml", &mine, "").await;
    assert_eq!(page.status(), StatusCode::NOT_FOUND);

    let answer = ask(&claimed.router, path, &mine, "").await;
    assert_eq!(answer.status(), StatusCode::OK);
    let mut body = answer.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first, "Booting\r\n");
    let left = claimed.post(&cookie, "/logout", &format!("csrf={csrf}")).await;
    assert_eq!(left, StatusCode::SEE_OTHER);
    assert!(body.frame().await.is_none(), "the output went on after the logout");
}
