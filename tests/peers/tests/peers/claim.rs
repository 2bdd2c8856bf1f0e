//! The claim of a box by its owner: in a real browser, which also opens every page, and from a
//! shell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use peers::{Printed, Tinboxd, built, find, run};
use serde_json::Value;

/// Starts a box that serves its web pages on its own address, and waits for them.
pub fn unclaimed() -> Tinboxd {
    let tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n").unwrap();
    first_page(&tinboxd);
    tinboxd
}

/// The page with the input for the code; the API may be ready a little before the pages.
fn first_page(tinboxd: &Tinboxd) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-ksSf", "--retry", "120", "--retry-delay", "1", "--retry-connrefused"]);
    let output = curl.arg(format!("https://{}:8443/S", tinboxd.address())).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The one-time code, from the box's state file.
pub fn code(tinboxd: &Tinboxd) -> String {
    let kept = fs::read(tinboxd.folder().join("state/claim.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    kept["code"].as_str().unwrap().to_owned()
}

/// Folder of the screenshots, for people.
pub fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../out/shots");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_browser_claims_the_box_and_sees_its_pages() {
    find("chromium", "chromium").unwrap();
    let tinboxd = unclaimed();
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("tootles/hardware.json");
    let machine = machine.display().to_string();
    let applied = tinboxd.kubectl().unwrap().run(&["apply", "-f", &machine], "").unwrap();
    assert!(applied.success, "{applied:?}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/claim.mjs");
    let library = built("browser", &[]).unwrap().remove(0);
    let mut node = Command::new(find("node", "nodejs").unwrap());
    node.arg(script).arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(library);
    let printed: Printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");
}

/// Path of a program of this workspace.
pub fn program(name: &str) -> PathBuf {
    programs::find(name).unwrap()
}

/// Runs `tinbox box claim` with the code on its standard input.
pub fn claim(tinboxd: &Tinboxd, kubeconfig: &Path, pin: &str, code: &str) -> Output {
    let mut tinbox = Command::new(program("tinbox"));
    tinbox.arg("--kubeconfig").arg(kubeconfig).args(["box", "claim"]);
    tinbox.arg(format!("{}:8443", tinboxd.address())).args(["--secrets-stdin", "--pin", pin]);
    let words = tinboxd.folder().join("words");
    fs::write(&words, format!("{code}\ncorrect horse\n")).unwrap();
    tinbox.stdin(Stdio::from(fs::File::open(&words).unwrap())).output().unwrap()
}

/// The pin, read from the page with the input for the code.
pub fn pin(tinboxd: &Tinboxd) -> String {
    let page = first_page(tinboxd);
    let is_pin = |word: &&str| {
        let parts: Vec<&str> = word.split('-').collect();
        let good = |part: &&str| part.len() == 4 && part.chars().all(|c| c.is_ascii_alphanumeric());
        parts.len() == 4 && parts.iter().all(good)
    };
    let mut words = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.find(is_pin).expect(&page).to_owned()
}

#[test]
fn a_shell_claims_the_box() {
    let tinboxd = unclaimed();
    let kubeconfig = tinboxd.folder().join("owner.kubeconfig");
    let (right, code) = (pin(&tinboxd), code(&tinboxd));
    let end = |output: &Output| output.status.code();

    // The right to read the state of the box does not include its claim code.
    let path = "/apis/tinbox.dev/v1alpha1/status";
    let view = tinboxd.kubectl().unwrap().run(&["get", "--raw", path], "").unwrap();
    assert!(view.success && view.out.contains("\"machines\":"), "{view:?}");
    assert!(!view.out.contains(&code) && view.out.contains("\"log\":[]"), "{view:?}");

    let other = claim(&tinboxd, &kubeconfig, "0000-0000-0000-0000", &code);
    assert_eq!(end(&other), Some(5), "another box: {other:?}");
    let wrong = if code == "000000" { "000001" } else { "000000" };
    let wrong = claim(&tinboxd, &kubeconfig, &right, wrong);
    assert_eq!(end(&wrong), Some(1), "a wrong code: {wrong:?}");
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("this address: 19"), "{wrong:?}");
    assert!(!kubeconfig.exists());

    let claimed = claim(&tinboxd, &kubeconfig, &right, &code);
    assert_eq!(end(&claimed), Some(0), "{claimed:?}");
    let mode = fs::metadata(&kubeconfig).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&kubeconfig).unwrap();
    assert!(text.contains(&tinboxd.url()), "it names the address that was asked: {text}");

    let late = tinboxd.folder().join("late.kubeconfig");
    let late = claim(&tinboxd, &late, &right, &code);
    assert_eq!(end(&late), Some(1), "it has an owner: {late:?}");
}

/// Requests a path of the pages with curl. Returns the decoded text, the status, the bytes on the
/// wire and the encoding.
fn requested(tinboxd: &Tinboxd, path: &str, options: &[&str]) -> (String, [String; 3]) {
    let mut curl = Command::new("curl");
    curl.args(["-ksS", "-w", "%{stderr}%{http_code} %{size_download} %header{content-encoding}"]);
    curl.args(options).arg(format!("https://{}:8443{path}", tinboxd.address()));
    let output = curl.current_dir(tinboxd.folder()).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    let mut figures = printed.splitn(3, ' ').map(str::to_owned);
    let figures = [(); 3].map(|()| figures.next().unwrap());
    (String::from_utf8(output.stdout).unwrap(), figures)
}

#[test]
fn curl_gets_pages_and_files_compressed_and_files_only_once() {
    let tinboxd = unclaimed();
    for path in ["/S", "/assets/style.css", "/assets/live.js"] {
        let (plain, [status, size, encoding]) = requested(&tinboxd, path, &[]);
        assert_eq!((status.as_str(), encoding.as_str()), ("200", ""), "{path}");
        assert_eq!(size, plain.len().to_string(), "{path}");
        let (text, [status, size, encoding]) = requested(&tinboxd, path, &["--compressed"]);
        assert_eq!((status.as_str(), encoding.as_str()), ("200", "gzip"), "{path}");
        assert_eq!(text, plain, "{path}");
        let size: usize = size.parse().unwrap();
        assert!(size * 4 < plain.len() * 3, "{path}: {size} of {}", plain.len());
    }
    let file = "/assets/live.js";
    requested(&tinboxd, file, &["--compressed", "--etag-save", "tag"]);
    let (text, [status, ..]) =
        requested(&tinboxd, file, &["--compressed", "--etag-compare", "tag"]);
    assert_eq!((status.as_str(), text.as_str()), ("304", ""));
}
