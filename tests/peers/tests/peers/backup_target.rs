//! Backups on another server: the stock WebDAV server wsgidav gets them, and the stock age opens
//! them.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use backup_target::{Target, TargetOptions};
use peers::{Process, Tinboxd, built, loopback_address, poll};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use stdx::testing::PATIENCE;

use super::backup::{Age, good, parts};

const USER: &str = "box";
const PASSWORD: &str = "hunter2";

/// The server, with a certificate of its own and one user.
struct WebDav {
    _process: Process,
    _folder: tempfile::TempDir,
    root: PathBuf,
    url: String,
    fingerprint: String,
}

impl WebDav {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let root = file("root");
        fs::create_dir_all(root.join("backups")).unwrap();
        let address = loopback_address().unwrap().to_string();
        let made = rcgen::generate_simple_self_signed([address.clone()]).unwrap();
        fs::write(file("cert.pem"), made.cert.pem()).unwrap();
        fs::write(file("key.pem"), made.signing_key.serialize_pem()).unwrap();
        let config = serde_json::json!({
            "host": address,
            "port": 8443,
            "provider_mapping": { "/": root },
            "ssl_certificate": file("cert.pem"),
            "ssl_private_key": file("key.pem"),
            "simple_dc": { "user_mapping": { "*": { USER: { "password": PASSWORD } } } },
            "http_authenticator": {
                "accept_basic": true, "accept_digest": false, "default_to_digest": false
            },
        });
        fs::write(file("wsgidav.json"), config.to_string()).unwrap();
        let program = built("webdav", &[]).unwrap().remove(0);
        let config = file("wsgidav.json").display().to_string();
        let arguments = ["-m", "wsgidav.server.server_cli", "--config", &config].map(str::to_owned);
        let mut process = Process::start(&program, &arguments, &file("log")).unwrap();
        let listens = || TcpStream::connect((address.as_str(), 8443)).is_ok();
        process.wait_until("wsgidav to listen", PATIENCE, listens).unwrap();
        let url = format!("https://{address}:8443");
        let fingerprint = stdx::hex(&Sha256::digest(made.cert.der()));
        Self { _process: process, _folder: folder, root, url, fingerprint }
    }

    /// Returns the section of `box.toml` for backups in the folder `backups`.
    fn section(&self, recipient: &str, password: &str) -> String {
        format!(
            "[backup]\ntarget = \"{}/backups\"\nrecipient = \"{recipient}\"\n\
             username = \"{USER}\"\npassword = \"{password}\"\nfingerprint = \"{}\"\n",
            self.url, self.fingerprint
        )
    }

    fn target(&self, folder: &str, fingerprint: &str) -> Target {
        let login = Some((USER.to_owned(), PASSWORD.into()));
        let (folder, fingerprint) =
            (format!("{}/{folder}", self.url), Some(fingerprint.to_owned()));
        Target::new(&TargetOptions { folder, login, fingerprint }).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.join("backups")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|it| it == "boxbak")).collect()
    }
}

fn status(tinboxd: &Tinboxd) -> Value {
    let kubectl = tinboxd.kubectl().unwrap();
    let raw = kubectl.run(&["get", "--raw", "/apis/tinbox.dev/v1alpha1/status"], "").unwrap();
    serde_json::from_str(&raw.out).unwrap()
}

#[test]
fn a_daily_backup_on_webdav_opens_with_the_key_of_its_owner() {
    let (age, dav) = (Age::built(), WebDav::start());
    let keys = good(Command::new(age.keygen()).output().unwrap());
    let public = keys.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    let tinboxd = Tinboxd::start_with(&dav.section(public, PASSWORD)).unwrap();
    let sent = || status(&tinboxd)["system"]["backupTarget"]["at"].is_string();
    poll("the first backup on the server", PATIENCE, sent).unwrap();
    let [backup] = &dav.files()[..] else { panic!("{:?}", dav.files()) };
    let target = &status(&tinboxd)["system"]["backupTarget"];
    assert_eq!(target["failure"], "", "{target}");
    assert_eq!(target["bytes"].as_u64().unwrap(), fs::metadata(backup).unwrap().len());

    let file = |name: &str| tinboxd.folder().join(name);
    fs::write(file("key.txt"), &keys).unwrap();
    fs::write(file("payload.age"), parts(backup).1).unwrap();
    let key = file("key.txt").display().to_string();
    let opened = age.run(&["-d", "-i", &key], (&file("payload.age"), &file("box.tar.gz")));
    assert!(opened.status.success(), "{opened:?}");
    let list = good(Command::new("tar").arg("-tzf").arg(file("box.tar.gz")).output().unwrap());
    assert!(list.contains("state/pki/ca.key") && list.contains("settings/box.toml"), "{list}");
}

#[test]
fn a_refused_login_is_a_problem_with_its_remedy_and_is_not_in_the_log() {
    let (age, dav) = (Age::built(), WebDav::start());
    let keys = good(Command::new(age.keygen()).output().unwrap());
    let public = keys.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    let tinboxd = Tinboxd::start_with(&dav.section(public, "wrong-password")).unwrap();
    let failed = || status(&tinboxd)["system"]["backupTarget"]["failure"] != "";
    poll("the refusal of the server", PATIENCE, failed).unwrap();
    let faults = &status(&tinboxd)["faults"];
    assert_eq!(faults[0]["title"], "BACKUP NOT SENT", "{faults}");
    let why = faults[0]["trouble"]["why"].as_str().unwrap();
    assert!(why.contains("401") && why.contains("Check username and password"), "{why}");
    assert!(dav.files().is_empty());
    let log = fs::read_to_string(tinboxd.folder().join("tinboxd.log")).unwrap();
    assert!(log.contains("the backup was not sent") && !log.contains("wrong-password"), "{log}");
}

#[tokio::test]
async fn files_are_replaced_and_deleted_and_a_missing_folder_is_named() {
    let dav = WebDav::start();
    let source = dav.root.join("source");
    let write = |text: &str| {
        fs::write(&source, text).unwrap();
        File::open(&source).unwrap()
    };
    let target = dav.target("backups/", &dav.fingerprint);
    let stored = |name: &str| fs::read_to_string(dav.root.join("backups").join(name));
    target.put("a.boxbak", write("first")).await.unwrap();
    target.put("a.boxbak", write("second")).await.unwrap();
    assert_eq!(stored("a.boxbak").unwrap(), "second");
    target.remove("a.boxbak").await.unwrap();
    target.remove("a.boxbak").await.unwrap();
    assert!(!Path::new(&dav.root.join("backups/a.boxbak")).exists());

    let none = dav.target("none", &dav.fingerprint);
    let missing = none.put("a.boxbak", write("x")).await.unwrap_err();
    let text = stdx::sentences(&missing);
    assert!(text.contains("Create the folder of the URL on the server."), "{text}");
    let other = dav.target("backups", &"00".repeat(32));
    let text = other.put("a.boxbak", write("x")).await.unwrap_err().to_string();
    assert!(text.contains("certificate"), "{text}");
}
