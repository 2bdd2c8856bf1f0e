//! A fresh box is claimed, on its page and from a shell.

use std::process::Command;

use firmware::owner::{Owner, address, told};
use firmware::steps::CLAIM;
use firmware::{PATIENCE, run};
use qemu::Mark;

use super::Lab;

/// Fields of the form that claims a box.
fn form(code: &str, passphrase: &str) -> [String; 3] {
    [format!("code={code}"), format!("passphrase={passphrase}"), format!("again={passphrase}")]
}

#[test]
fn a_fresh_box_is_claimed_on_its_page_once() {
    let lab = Lab::new("page");
    let place = lab.place("box", 0x51);
    let machine = place.start(&lab.disk("disk")).unwrap();
    let serial = machine.serial();
    let line = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let url = line.split_whitespace().find(|word| word.contains("/S/")).unwrap();
    let url = url.replace("HTTPS://", "https://");
    let (address, code) = (address(&line), told(serial, Mark::START, CLAIM));
    let pin = told(serial, Mark::START, "certificate pin ");
    let cookies = lab.folder().join("cookies");
    let browser = |url: &str| -> Command {
        let mut curl = lab.owner.command("curl");
        curl.args(["-ksS", "-b"]).arg(&cookies).arg("-c").arg(&cookies).arg(url);
        curl
    };
    let page = run(&mut browser(&url)).unwrap();
    assert!(page.contains(&pin) && page.contains(&format!("value=\"{code}\"")), "{page}");
    let claim = |code: &str, passphrase: &str| {
        let mut curl = browser(&format!("https://{address}/S"));
        for field in form(code, passphrase) {
            curl.args(["--data-urlencode", &field]);
        }
        run(&mut curl).unwrap()
    };
    let other = if code == "7KQ4M2" { "7KQ4M3" } else { "7KQ4M2" };
    let page = claim(other, "correct horse");
    assert!(page.contains("role=\"alert\""), "a wrong code is taken: {page}");
    let page = claim(&code, "short");
    assert!(page.contains("too short"), "{page}");
    claim(&code, "correct horse");
    let page = run(&mut browser(&format!("https://{address}/machines"))).unwrap();
    assert!(!page.contains("name=\"code\"") && page.contains("Machines"), "{page}");

    // The code is no longer valid.
    let cookies = lab.folder().join("other-cookies");
    let mut curl = lab.owner.command("curl");
    curl.args(["-ksS", "-b"]).arg(&cookies).arg(format!("https://{address}/S"));
    for field in form(&code, "another horse") {
        curl.args(["--data-urlencode", &field]);
    }
    let page = run(&mut curl).unwrap();
    assert!(page.contains("already has an owner"), "{page}");
    drop(machine);
    lab.succeed();
}

#[test]
fn a_claim_survives_a_power_cut_and_its_code_does_not_come_back() {
    let lab = Lab::new("claim");
    let (place, disk) = (lab.place("box", 0x52), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    let line = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), serial, lab.folder());
    machine.cut_power().unwrap();
    let machine = place.start(&disk).unwrap();
    // The owner's kubeconfig is valid, and the certificate is the same.
    let listed = || run(owner.tinbox().args(["hardware", "list"])).ok();
    qemu::poll("the box to answer", PATIENCE, listed).unwrap();
    let lines = machine.serial().lines();
    assert!(lines.iter().all(|line| !line.text.contains("claim this box")), "{lines:?}");
    drop(machine);
    lab.succeed();
}
