//! A box is paired by a kubeconfig that its owner pastes into the page.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use peers::{built, find, run};
use stdx::testing::until;

use super::{Site, good, install};
use crate::claim::{code, pictures, unclaimed};

#[test]
fn a_box_is_paired_by_its_page_and_does_not_keep_the_administrators_kubeconfig() {
    find("chromium", "chromium").unwrap();
    let site = Site::of(unclaimed());
    let administrator = fs::read_to_string(&site.administrator).unwrap();
    let pasted = site.tinboxd.folder().join("pasted.kubeconfig");
    fs::write(&pasted, administrator.replace(r#""other""#, r#""admin""#)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/pair-page.mjs");
    let mut node = Command::new(find("node", "nodejs").unwrap());
    node.arg(script).arg(format!("https://{}:8443", site.tinboxd.address()));
    node.arg(code(&site.tinboxd)).arg(pictures());
    node.arg(built("browser", &[]).unwrap().remove(0)).arg(&pasted);
    let printed = run(node, "").unwrap();
    assert!(printed.success, "{printed:?}");

    install(&site.kubectl);
    until("the connection", || {
        site.stored("fleet").status.connected().is_some_and(|it| it.reason == "Connected")
    });
    // The account of the box is the one that the command line creates and removes.
    let kubectl = site.tinboxd.kubectl().unwrap();
    let get = ["get", "secret", "fleet-management-kubeconfig", "-o", "jsonpath={.data.value}"];
    let stored = String::from_utf8(STANDARD.decode(good(&kubectl, &get, "")).unwrap()).unwrap();
    assert!(stored.contains("\"token\"") && !stored.contains("client-key"), "another credential");
    assert!(site.traces().contains("serviceaccount/tinbox-"), "{}", site.traces());
    let printed = site.paired(&["unpair", "fleet"]);
    assert!(printed.success, "{printed:?}");
    assert_eq!(site.traces(), "");
}
