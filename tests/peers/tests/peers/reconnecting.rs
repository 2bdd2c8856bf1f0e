//! A real browser with an open page while the box restarts.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use peers::{Tinboxd, built, find};

use crate::claim::{code, pictures};

#[test]
fn an_open_page_comes_back_after_a_restart() {
    find("chromium", "chromium").unwrap();
    let mut tinboxd = Tinboxd::start_with("[web]\nlisten = \"ADDRESS:8443\"\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/restart.mjs");
    // The program ends together with this test.
    let mut node = Command::new("setpriv");
    node.args(["--pdeathsig", "KILL"]).arg(find("node", "nodejs").unwrap()).arg(script);
    node.arg(format!("https://{}:8443", tinboxd.address()));
    node.arg(code(&tinboxd)).arg(pictures()).arg(built("browser", &[]).unwrap().remove(0));
    let mut node = node.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "open");
    tinboxd.restart().unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(node.wait().unwrap().success(), "{rest:?}");
}
