mod hidden;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use apiserver::User;
use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use stdx::SystemClock;

use super::*;

/// Settings that every text in these tests needs. The tests ignore their lines.
const BASE: &str =
    "# The cellar's.\nname = \"cellar\" # by the door\n\n[boot]\nartifacts = \"/\"\n";
const ME: ChangeAuthor<'static> = ChangeAuthor { actor: "anna", note: "" };

/// Disk in memory whose power is cut after a number of writes.
struct Fake {
    kept: Mutex<Vec<StoredRevision>>,
    text: Mutex<Option<String>>,
    left: AtomicUsize,
    /// Number of revisions that fit on the simulated disk.
    room: AtomicUsize,
}

impl Fake {
    fn with(text: &str) -> Arc<Self> {
        Arc::new(Self {
            kept: Mutex::default(),
            text: Mutex::new(Some(text.to_owned())),
            left: AtomicUsize::new(usize::MAX),
            room: AtomicUsize::new(usize::MAX),
        })
    }

    fn write(&self) -> io::Result<()> {
        let spent = |left: usize| left.checked_sub(1);
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent);
        left.map(drop).map_err(|_| io::Error::other("no power"))
    }
}

impl Disk for Arc<Fake> {
    fn read(&self) -> Result<Option<String>, platform::Error> {
        Ok(self.text.lock().unwrap().clone())
    }
    fn replace(&self, text: &str, _: u32) -> Result<(), platform::Error> {
        let cut = |source| platform::Error::Io { doing: "write".to_owned(), source };
        self.write().map_err(cut)?;
        *self.text.lock().unwrap() = Some(text.to_owned());
        Ok(())
    }
    fn kept(&self) -> io::Result<Vec<StoredRevision>> {
        Ok(self.kept.lock().unwrap().clone())
    }
    fn keep(&self, revision: &StoredRevision) -> io::Result<()> {
        self.write()?;
        let mut kept = self.kept.lock().unwrap();
        if kept.len() >= self.room.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        kept.push(revision.clone());
        Ok(())
    }
    fn forget(&self, number: u32) -> io::Result<()> {
        self.write()?;
        self.kept.lock().unwrap().retain(|kept| kept.number != number);
        Ok(())
    }
}

fn open(disk: &Arc<Fake>) -> Settings {
    let clock = Arc::new(SystemClock);
    let text = disk.read().unwrap().unwrap_or_default();
    let config = Config::read(&text, SystemKind::Firmware).unwrap_or_else(|_| Config::untold());
    Settings::open(Box::new(Arc::clone(disk)), clock, SystemKind::Firmware, &config)
}

fn keys(pairs: &[(&str, &str)]) -> BTreeMap<String, Option<String>> {
    let value = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    pairs.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect()
}

#[test]
fn a_key_is_changed_and_all_else_stays() {
    let text = BASE.replace('\n', "\r\n");
    let settings = open(&Fake::with(&format!("\u{feff}{text}")));
    let report = settings
        .change(
            ME,
            &keys(&[("name", "attic"), ("time.zone", "Europe/Berlin"), ("bmc.poll_secs", "60")]),
        )
        .unwrap();
    let want = text.replace("\"cellar\" #", "\"attic\" #")
        + "\r\n[bmc]\r\npoll_secs = 60\r\n\r\n[time]\r\nzone = \"Europe/Berlin\"\r\n";
    assert_eq!(settings.text().unwrap(), format!("\u{feff}{want}"), "its mark and its ends stay");
    assert_eq!(report.text, want.replace("\r\n", "\n"));
    assert_eq!(report.live, ["time.zone"]);
    assert_eq!(report.restart, ["bmc.poll_secs", "name"]);
    assert_eq!(settings.live().borrow().zone.iana_name(), Some("Europe/Berlin"));

    let report = settings.change(ME, &keys(&[("time.zone", ""), ("nothing.here", "")])).unwrap();
    assert!(!report.text.contains("Berlin"), "{}", report.text);
    assert_eq!(settings.live().borrow().zone, TimeZone::UTC);
}

#[test]
fn a_section_keeps_the_older_name_that_it_has_in_the_text() {
    let older = format!("{BASE}[upgrade]\nrestart = \"ask\"\n");
    let settings = open(&Fake::with(&older));
    for key in ["update.hold", "upgrade.hold"] {
        let report = settings.change(ME, &keys(&[(key, "1.5.0")])).unwrap();
        assert_eq!(report.text, format!("{older}hold = \"1.5.0\"\n"));
        assert_eq!(report.live, ["update.hold"]);
        settings.change(ME, &keys(&[(key, "")])).unwrap();
        assert_eq!(settings.text().unwrap(), older);
    }
    let newer = older.replace("upgrade", "update");
    let report = settings.replace(&sum(&older), ME, &newer).unwrap();
    assert!(report.live.is_empty() && report.restart.is_empty(), "the values are the same");
    let report = settings.change(ME, &keys(&[("upgrade.hold", "1.5.0")])).unwrap();
    assert_eq!(report.text, format!("{newer}hold = \"1.5.0\"\n"));
    let refused = settings.replace(&report.sum, ME, &(newer + "[upgrade]\n")).unwrap_err();
    assert!(refused.to_string().contains("line 8: upgrade: the older name"), "{refused}");
}

#[test]
fn networks_are_counted() {
    let settings = open(&Fake::with(BASE));
    let pairs = [
        ("network[0].interface", "eth1"),
        ("network[0].address", "10.99.0.1/24"),
        ("network[0].mode", "reserved"),
        ("management[0].interface", "eth2"),
        ("management[0].unused", "true"),
    ];
    let report = settings.change(ME, &keys(&pairs)).unwrap();
    let want =
        "[[network]]\naddress = \"10.99.0.1/24\"\ninterface = \"eth1\"\nmode = \"reserved\"\n";
    assert!(report.text.contains(want), "{}", report.text);
    let report = settings.change(ME, &keys(&[("network.mode", "off")])).unwrap();
    assert!(report.text.contains("mode = \"off\""), "the only one needs no number");
    for (key, why) in [
        ("network[7].mode", "network[7] does not exist, only 1"),
        ("network", "is not a table"),
        ("name.first", "name is not a table"),
        ("a b", "is not a valid key"),
        ("", "is not a valid key"),
    ] {
        let refused = settings.change(ME, &keys(&[(key, "x")]));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(why) || key == "network", "{key}: {message}");
    }
    let report = settings.change(ME, &keys(&[("network[0]", "")])).unwrap();
    assert!(!report.text.contains("eth1"), "{}", report.text);
}

#[test]
fn all_mistakes_are_told_with_their_lines() {
    let settings = open(&Fake::with(BASE));
    let text = "name = \"the cellar\"\nspeed = 1\n[time]\nzone = \"Berlin\"\n[agents]\n\
        silence_secs = 1\nboot_secs = \"x\"\n[boot]\nartifacts = \"/\"\n\
        [[network]]\ninterface = \"eth0\"\naddress = \"10.0.0.1\"\n\
        [[network]]\ninterface = \"eth1\"\naddress = \"here\"\n[update]\nhours = \"late\"\n";
    for text in [text.to_owned(), format!("\u{feff}{}", text.replace('\n', "\r\n"))] {
        let refused = settings.replace(&sum(BASE), ME, &text).unwrap_err();
        let SettingsError::Mistakes(mistakes) = &refused else { panic!("{refused}") };
        let lines: Vec<_> = mistakes.iter().filter_map(|it| it.line).collect();
        assert_eq!(lines, [1, 2, 4, 6, 7, 15, 17], "{refused}");
        let message = refused.to_string();
        for part in ["line 2: unknown field `speed`", "line 15: network[1].address: \"here/24\""] {
            assert!(message.contains(part), "{message}");
        }
    }
    let refused = settings.replace(&sum(BASE), ME, "name = \n").unwrap_err().to_string();
    assert!(refused.contains("\n  line 1: "), "{refused}");
    assert_eq!(settings.text().unwrap(), BASE, "nothing was written");
    assert!(settings.history().unwrap().is_empty());
    let long = format!("#{}", "x".repeat(TEXT_BYTES_MAX));
    let refused = settings.replace(&sum(BASE), ME, &long).unwrap_err().to_string();
    assert!(refused.contains("the limit is"), "{refused}");
}

#[test]
fn of_two_changes_of_one_text_one_is_refused() {
    let settings = open(&Fake::with(BASE));
    let based = sum(BASE);
    settings.set(&based, ME, &keys(&[("name", "attic")])).unwrap();
    let late = settings.set(&based, ME, &keys(&[("name", "shed")])).unwrap_err();
    assert!(matches!(late, SettingsError::Changed { .. }), "{late}");
    assert!(settings.text().unwrap().contains("attic"));
}

#[test]
fn every_revision_can_be_seen_and_brought_back() {
    let disk = Fake::with(BASE);
    let settings = open(&disk);
    let by = ChangeAuthor { actor: "anna", note: "it moved\nupstairs" };
    settings.set(&sum(BASE), by, &keys(&[("name", "attic")])).unwrap();
    settings.change(ME, &keys(&[("name", "attic")])).unwrap();
    let history = settings.history().unwrap();
    let listed: Vec<_> = history
        .iter()
        .map(|it| (it.number, it.actor.as_str(), it.note.as_str(), it.current))
        .collect();
    assert_eq!(listed, [(1, OUTSIDE, "", false), (2, "anna", "it movedupstairs", true)]);
    assert!(history[0].at.is_none() && history[1].at.is_some());
    let shown = settings.diff(Some(1), None).unwrap();
    assert!(shown.contains("-name = \"cellar\" # by the door\n+name = \"attic\""), "{shown}");

    let now = settings.report(false).unwrap();
    let report = settings.revert(&now.sum, ME, 1).unwrap();
    assert_eq!((report.text.as_str(), report.restart.len()), (BASE, 0));
    let refused = settings.revert(&report.sum, ME, 9).unwrap_err().to_string();
    assert!(refused.contains("revision 9 does not exist"), "{refused}");
    let last = settings.history().unwrap().pop().unwrap();
    assert_eq!((last.number, last.note.as_str()), (3, "restored revision 1"));

    // The text on the volume is changed from outside.
    *disk.text.lock().unwrap() = Some(format!("{BASE}[bmc]\npoll_secs = 9\n"));
    let settings = open(&disk);
    settings.change(ME, &keys(&[("bmc.poll_secs", "10")])).unwrap();
    let actors: Vec<_> = settings.history().unwrap().into_iter().map(|it| it.actor).collect();
    assert_eq!(actors, [OUTSIDE, "anna", "anna", OUTSIDE, "anna"]);
}

#[test]
fn old_revisions_go() {
    let disk = Fake::with(BASE);
    let settings = open(&disk);
    for secs in 1..=u32::try_from(REVISIONS_MAX).unwrap() + 20 {
        settings.change(ME, &keys(&[("bmc.poll_secs", &secs.to_string())])).unwrap();
    }
    let history = settings.history().unwrap();
    assert_eq!(history.len(), REVISIONS_MAX);
    assert_eq!((history[0].number, history.last().unwrap().number), (22, 121));
}

#[test]
fn settings_are_changed_on_a_full_disk() {
    let disk = Fake::with(BASE);
    let settings = open(&disk);
    let change = |secs: &str| settings.change(ME, &keys(&[("bmc.poll_secs", secs)])).unwrap();
    change("5");
    change("6");
    // Room for the current number of revisions: a new one replaces the oldest.
    disk.room.store(3, Ordering::Relaxed);
    change("7");
    let numbers = || settings.history().unwrap().iter().map(|it| it.number).collect::<Vec<_>>();
    assert_eq!(numbers(), [2, 3, 4]);
    // Without room the change is made, but its revision is not kept.
    disk.room.store(0, Ordering::Relaxed);
    disk.kept.lock().unwrap().clear();
    change("8");
    assert!(settings.text().unwrap().contains("poll_secs = 8") && numbers().is_empty());
}

#[test]
fn a_cut_at_any_write_leaves_the_old_settings_or_the_new() {
    let new = BASE.replace("\"cellar\"", "\"attic\"");
    for cut in 0.. {
        let disk = Fake::with(BASE);
        let settings = open(&disk);
        disk.left.store(cut, Ordering::Relaxed);
        let done = settings.change(ME, &keys(&[("name", "attic")]));
        disk.left.store(usize::MAX, Ordering::Relaxed);
        let settings = open(&disk);
        let text = settings.text().unwrap();
        assert_eq!(text, if done.is_ok() { new.as_str() } else { BASE }, "cut {cut}");
        let history = settings.history().unwrap();
        let current: Vec<_> = history.iter().filter(|it| it.current).collect();
        assert!(current.len() <= 1 && current.iter().all(|it| it.sum == sum(&text)), "cut {cut}");
        // Every text that was in force has a revision afterwards, and no number is used twice.
        settings.change(ME, &keys(&[("name", "shed")])).unwrap();
        let history = settings.history().unwrap();
        assert!(history.iter().any(|it| it.sum == sum(BASE)), "cut {cut}: {history:?}");
        assert!(history.windows(2).all(|two| two[0].number < two[1].number), "{history:?}");
        assert!(history.last().unwrap().current, "cut {cut}: {history:?}");
        if done.is_ok() {
            return assert!(cut >= 3, "the found one, the new one, and the text");
        }
    }
}

#[test]
fn a_revision_is_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let volume = platform::slots::BootVolume::own();
    let disk = OnDisk { volume, folder: folder.path().join("settings") };
    assert!(disk.kept().unwrap().is_empty());
    let kept = |number| StoredRevision {
        number,
        at: None,
        actor: "a".to_owned(),
        note: String::new(),
        text: BASE.to_owned(),
    };
    for number in [10, 9, 2] {
        disk.keep(&kept(number)).unwrap();
    }
    std::fs::write(folder.path().join("settings/00000003.json"), "{").unwrap();
    disk.forget(9).unwrap();
    assert_eq!(disk.kept().unwrap(), [kept(2), kept(10)]);
}

async fn ask(settings: &Arc<Settings>, line: &str, tag: &str, body: &str) -> (StatusCode, Value) {
    let (method, path) = line.split_once(' ').unwrap();
    let user = User::known("anna", []);
    let router = router(Some(Arc::clone(settings))).layer(Extension(user));
    let uri = format!("/apis/box.tinbox.dev/v1alpha1/settings{path}");
    let mut request = Request::builder().method(method).uri(uri);
    if !tag.is_empty() {
        request = request.header("if-match", format!("\"{tag}\""));
    }
    let request = request.header("content-type", "application/json");
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let answer = tower_answer(router, request).await;
    let code = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (code, serde_json::from_slice(&body).unwrap())
}

async fn tower_answer(router: axum::Router, request: Request<Body>) -> axum::response::Response {
    use tower::ServiceExt as _;
    router.oneshot(request).await.unwrap()
}

#[tokio::test]
async fn a_process_on_a_host_names_its_own_configuration_once() {
    let request = Request::builder().uri("/apis/box.tinbox.dev/v1alpha1/settings");
    let answer = tower_answer(router(None), request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("edit its configuration, then restart tinboxd"), "{body}");
}

#[tokio::test]
async fn the_api_says_what_happened() {
    let settings = Arc::new(open(&Fake::with(BASE)));
    let (code, report) = ask(&settings, "GET ", "", "").await;
    assert_eq!((code, &report["text"]), (StatusCode::OK, &json!(BASE)));
    let first = report["sum"].as_str().unwrap().to_owned();
    let set = json!({ "set": { "name": "attic" }, "note": "moved" }).to_string();
    let (code, _) = ask(&settings, "PATCH ", "", &set).await;
    assert_eq!(code, StatusCode::PRECONDITION_REQUIRED);
    let (code, report) = ask(&settings, "PATCH ", &first, &set).await;
    assert_eq!((code, &report["restart"]), (StatusCode::OK, &json!(["name"])));
    let (code, status) = ask(&settings, "PUT ?note=late", &first, "name = 'x'\n").await;
    assert_eq!((code, &status["reason"]), (StatusCode::PRECONDITION_FAILED, &json!("Conflict")));
    let sum = report["sum"].as_str().unwrap();
    let (code, status) = ask(&settings, "PUT ", sum, "nam = 'x'\n").await;
    assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(status["message"].as_str().unwrap().contains("line 1: unknown field `nam`"));
    let (_, history) = ask(&settings, "GET /history", "", "").await;
    assert_eq!((&history[1]["actor"], &history[1]["note"]), (&json!("anna"), &json!("moved")));
    let (_, diff) = ask(&settings, "GET /diff?from=1&to=2", "", "").await;
    assert!(diff["text"].as_str().unwrap().contains("+name = \"attic\""), "{diff}");
    let (code, report) = ask(&settings, "POST /revert", sum, r#"{"revision":1}"#).await;
    assert_eq!((code, &report["text"]), (StatusCode::OK, &json!(BASE)));
    let (code, _) = ask(&settings, "POST /revert", &first, r#"{"revision":7}"#).await;
    assert_eq!(code, StatusCode::NOT_FOUND);
}
