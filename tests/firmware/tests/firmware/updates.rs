//! Updates that work and updates that fail: the box ends on a working system, and reports the
//! reason.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use firmware::{FIRST_LINE, Image, PATIENCE, STARTING, Variant, flip, run};
use image::disk::Part;
use qemu::{Board, Bus, Drive, Mark, Nic, Rack, RackConfig, Segment};
use serde_json::{Value, json};
use stdx::MacAddr;
use tempfile::TempDir;

use super::{grubenv, made, set_grubenv, slot};
use firmware::boot_volume;
use firmware::owner::{self, Owner, program};

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x11, 0x22]);
const CLAIM: &str = "claim this box at HTTPS://[0-9.]+/S/";
/// Maximum time of an update, emulated and in parallel with other tests.
const END: &str = "40m";

/// Builds the bundle of a release whose program is `tinboxd`.
fn bundle(folder: &Path, release: &str, tinboxd: Option<&Path>) -> PathBuf {
    let variant = Variant { release: Some(release), tinboxd, ..Variant::default() };
    Image::variant(&folder.join("image"), &variant).unwrap().path.with_extension("update")
}

fn report(owner: &Owner<'_>) -> Value {
    let said = run(owner.tinbox().args(["-o", "json", "update", "status"])).unwrap();
    let mut said: Value = serde_json::from_str(&said).unwrap();
    said[0].take()
}

#[test]
fn updates_are_taken_refused_and_undone() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let rack = Rack::build(RackConfig::new("updated-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 9, 9, 9));
    let board =
        rack.add_board(&Drive::new(&disk, Bus::Nvme), (Segment::Near, Nic::E1000e, MAC)).unwrap();
    let told = board.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&host, &owner::address(&told), board.serial(), folder.path());
    let before = report(&owner);
    assert_eq!((&before["slots"][1]["good"], &before["update"]), (&json!(true), &Value::Null));

    // This program is the command line: as process 1 it prints its help and ends, which panics the
    // kernel.
    let panics = bundle(folder.path(), "9.1.0", Some(&program("tinbox")));
    refuses_what_is_damaged(&owner, &panics, folder.path());

    let panics = panics.to_string_lossy().into_owned();
    let said = owner.refused(&["update", "apply", &panics, "--wait", "--timeout", END]);
    assert!(said.contains("the update to 9.1.0 was rolled back: "), "{said}");
    let after = report(&owner);
    let undone = json!({ "version": "9.1.0", "state": "undone", "slot": "B" });
    for (key, value) in undone.as_object().unwrap() {
        assert_eq!(&after["update"][key], value, "{after}");
    }
    let reason = after["update"]["reason"].as_str().unwrap();
    assert!(reason.contains("Attempted to kill init"), "{reason}");
    let slots = &after["slots"];
    assert_eq!((&slots[0]["running"], &slots[1]["version"]), (&json!(true), &json!("")), "{after}");
    faces_say(&owner, reason);

    let good = bundle(folder.path(), "9.2.0", None).to_string_lossy().into_owned();
    by_page(&owner, &good);
    run(owner.tinbox().args(["update", "status", "--wait", "--timeout", END])).unwrap();
    let after = report(&owner);
    assert_eq!((&after["version"], &after["update"]["state"]), (&json!("9.2.0"), &json!("good")));
    let older = bundle(folder.path(), "9.1.9", None).to_string_lossy().into_owned();
    let said = owner.refused(&["update", "apply", &older]);
    assert!(said.contains("the release is 9.1.9, older than 9.2.0, which runs"), "{said}");
    drop(board);
    let variables = grubenv(&disk);
    let good = "ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n";
    assert!(variables.contains(good) && !variables.contains("TRIAL"), "{variables}");
    rack.succeed();
}

/// A bundle with a wrong signature changes nothing; an incomplete one changes only the other slot.
fn refuses_what_is_damaged(owner: &Owner<'_>, bundle: &Path, folder: &Path) {
    let damaged = folder.join("damaged.update");
    let bytes = fs::read(bundle).unwrap();
    fs::write(&damaged, &bytes).unwrap();
    flip(&damaged, 40).unwrap();
    let path = damaged.to_string_lossy().into_owned();
    let said = owner.refused(&["update", "apply", &path]);
    assert!(said.contains("the bundle's signature is not valid"), "{said}");
    assert_eq!(report(owner)["slots"][1]["good"], true);

    fs::write(&damaged, &bytes[..bytes.len() * 6 / 10]).unwrap();
    let said = owner.refused(&["update", "apply", &path]);
    assert!(said.contains("the bundle is truncated"), "{said}");
    let after = report(owner);
    assert_eq!((&after["slots"][1]["version"], &after["update"]), (&json!(""), &Value::Null));
}

/// Uploads a bundle by the form of the page of the box.
fn by_page(owner: &Owner<'_>, bundle: &str) {
    owner.log_in();
    let page = run(&mut owner.curl("/box")).unwrap();
    let form = page.split("action=\"/box/update\"").nth(1).expect(&page);
    let token = form.split("name=\"csrf\" value=\"").nth(1).and_then(|it| it.split('"').next());
    let mut upload = owner.curl("/box/update");
    upload.args(["-F", &format!("csrf={}", token.expect(form)), "-F", "restart=idle"]);
    run(upload.args(["-F", &format!("file=@{bundle}")])).unwrap();
}

/// Checks that the web page shows the reason, and saves the panel's picture for people.
fn faces_say(owner: &Owner<'_>, reason: &str) {
    owner.log_in();
    let page = run(&mut owner.curl("/")).unwrap();
    assert!(
        page.contains("9.1.0 was rolled back") && page.contains("kill init"),
        "{reason}: {page}"
    );
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("undone.png");
    run(owner.curl("/panel.png").arg("-o").arg(&picture)).unwrap();
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"), "not a picture");
}

/// A box that has returned to slot A.
struct RolledBackBox {
    /// Message about the update.
    said: String,
    board: Board,
    mark: Mark,
    disk: PathBuf,
    _folder: TempDir,
}

/// Starts a box whose slot B has a system that runs `tinboxd`, with `beside` as its second program
/// and `tries` starts left.
///
/// The box waits for no external event, so QEMU skips its waits: 60 s without a heartbeat, 120 s
/// without the first heartbeat, 120 s until its slot is good.
fn undone(tinboxd: &Path, beside: Option<&Path>, tries: usize) -> RolledBackBox {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let variant = Variant { release: Some("9.3.0"), tinboxd: Some(tinboxd), beside };
    let other = Image::variant(&folder.path().join("image"), &variant).unwrap().path;
    put_on_trial(&disk, &other, folder.path(), tries);
    let drive = Drive::new(&disk, Bus::Virtio);
    let board = Board::start_skipping_idle(folder.path(), &drive).unwrap();
    let serial = board.serial();
    let mut mark = Mark::START;
    for expected in std::iter::repeat_n('b', tries).chain(['a']) {
        let (line, next) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
        assert_eq!(slot(&line.text), Some(expected), "{line:?}");
        mark = next;
    }
    let (line, mark) = serial.wait_for_whole(mark, "the update was undone", PATIENCE).unwrap();
    let (_, mark) = serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    RolledBackBox { said: line.text, board, mark, disk, _folder: folder }
}

impl RolledBackBox {
    /// Cuts the power, and compares the boot loader's variables.
    fn leaves(self, variables: &str) {
        drop(self.board);
        let found = grubenv(&self.disk);
        assert!(found.contains(variables) && !found.contains("TRIAL"), "{found}");
    }
}

/// Fills slot B with `other`, as the box leaves its disk after an applied bundle.
fn put_on_trial(disk: &Path, other: &Path, folder: &Path, tries: usize) {
    let mut copy = Command::new("dd");
    copy.args([format!("if={}", other.display()), format!("of={}", disk.display())]);
    let (at, count) = (Part::RootB.offset() >> 20, Part::RootB.size() >> 20);
    copy.args(["bs=1M", "conv=notrunc,sparse", "status=none"]);
    run(copy.args([format!("skip={at}"), format!("seek={at}"), format!("count={count}")])).unwrap();
    let (from, to) = (boot_volume::of(other), boot_volume::of(disk));
    for name in ["vmlinuz", "boot.cfg"] {
        let (inside, outside) = (format!("::tinbox/b/{name}"), folder.join(name));
        run(Command::new("mcopy").args(["-o", "-i", &from, &inside]).arg(&outside)).unwrap();
        run(Command::new("mcopy").args(["-o", "-i", &to]).arg(&outside).arg(&inside)).unwrap();
    }
    let spent = 3 - tries;
    set_grubenv(disk, &format!("ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY={spent}\nTRIAL=B\n"));
}

/// The whole sequence: two starts, the former slot, and that slot good again.
#[test]
fn an_update_that_hangs_is_undone() {
    let undone = undone(Path::new(env!("CARGO_BIN_EXE_hanging-box")), None, 2);
    let said = &undone.said;
    assert!(said.contains("the supervisor hangs: the API stuck 8"), "{said}");
    undone.board.serial().wait_for_after(undone.mark, "its slot is good", PATIENCE).unwrap();
    undone.leaves("ORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=0\n");
}

/// Only one start of two, because the other start is as in the test above.
#[test]
fn an_update_whose_api_never_answers_is_undone() {
    let mute = Path::new(env!("CARGO_BIN_EXE_mute-box"));
    let undone = undone(mute, Some(&program("tinboxd")), 1);
    assert!(undone.said.contains("the supervisor hangs: the API stuck"), "{}", undone.said);
    undone.leaves("ORDER=A B\nA_OK=1\nA_TRY=1\nB_OK=0\n");
}
