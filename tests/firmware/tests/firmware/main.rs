//! The box's image, flashed, booted, claimed, damaged and updated.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod backup;
mod flash;
mod late;
mod lost;
mod main_job;
mod panel;
mod power_cuts;
mod reset;
mod screen;
mod settings;
mod tpm;
mod updates;

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use firmware::boot_volume;
use firmware::owner::{self, Owner};
use firmware::{FIRST_LINE, Image, PATIENCE, STARTING, flip, run};
use image::disk::{Part, disk_size};
use qemu::{Board, Bus, Drive, Mark, Nic, Rack, RackConfig, Segment};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use stdx::MacAddr;

/// Kernel message of device-mapper about a changed block.
const CORRUPTED: &str = "verity.* block 0 is corrupted";
fn made(folder: &Path) -> Image {
    Image::made(&folder.join("image")).unwrap()
}

/// Variables of GRUB on the boot volume of `disk`.
fn grubenv(disk: &Path) -> String {
    let read = boot_volume::read(disk, "tinbox/grubenv").unwrap();
    read.trim_end_matches('#').to_owned()
}

fn set_grubenv(disk: &Path, variables: &str) {
    let mut block = format!("# GRUB Environment Block\n{variables}").into_bytes();
    block.resize(1024, b'#');
    boot_volume::put(disk, "tinbox/grubenv", &block).unwrap();
}

/// The slot in GRUB's message; GRUB prints it on two consoles, which may share one serial port.
fn slot(line: &str) -> Option<char> {
    line.split_once("starting slot ")?.1.chars().next()
}

/// State in the superblock of `part`: `clean` after an orderly unmount.
fn standing(disk: &Path, part: Part) -> String {
    let volume = format!("{}?offset={}", disk.display(), part.offset());
    let told = run(Command::new("dumpe2fs").args(["-h", &volume])).unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("Filesystem state:"));
    let journal = told.contains("needs_recovery");
    format!("{}{}", line.expect(&told).trim(), if journal { ", to be recovered" } else { "" })
}

#[test]
fn the_image_boots_to_its_first_process_and_ends_when_its_button_is_pressed() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let mut board = Board::start(folder.path(), &Drive::new(&disk, Bus::Nvme)).unwrap();
    let serial = board.serial();
    let (line, mark) = serial.wait_for_after(Mark::START, STARTING, PATIENCE).unwrap();
    assert_eq!(slot(&line.text), Some('a'), "{line:?}");
    serial.wait_for_after(mark, "watchdog[0-9] watches the machine, 60 s", PATIENCE).unwrap();
    let held = "the supervisor has capabilities NET_BIND_SERVICE, NET_ADMIN, NET_RAW, SYS_TIME; no \
                new privileges; seccomp; Landlock; no core dumps";
    serial.wait_for_after(mark, held, PATIENCE).unwrap();
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    board.press_power().unwrap();
    board.wait_off(PATIENCE).unwrap();
    assert_eq!([Part::State, Part::Cache].map(|part| standing(&disk, part)), ["clean", "clean"]);
    let variables = grubenv(&disk);
    assert!(variables.contains("\nA_OK=1\nA_TRY=1\nB_OK=1\nB_TRY=0\n"), "{variables}");
}

#[test]
fn a_slot_with_a_flipped_bit_is_given_up_for_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    // As after an update: the new system is in slot B.
    let updated = "ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n";
    set_grubenv(&disk, updated);
    flip(&disk, Part::RootB.offset() + 100).unwrap();
    let board = Board::start(folder.path(), &Drive::new(&disk, Bus::Virtio)).unwrap();
    let serial = board.serial();
    let mut mark = Mark::START;
    for attempt in 1..=3 {
        let (line, next) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
        assert_eq!(slot(&line.text), Some('b'), "attempt {attempt}: {line:?}");
        mark = serial.wait_for_after(next, CORRUPTED, PATIENCE).unwrap().1;
    }
    let (line, mark) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
    assert_eq!(slot(&line.text), Some('a'), "{line:?}");
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    drop(board);
    let variables = grubenv(&disk);
    assert!(variables.contains("\nA_OK=1\nA_TRY=1\nB_OK=1\nB_TRY=3\n"), "{variables}");
}

#[test]
fn two_builds_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("image");
    let files = |image: &Image| {
        ["img", "img.bmap", "update"].map(|ending| {
            let path = image.path.with_extension(ending);
            (ending, stdx::hex(&Sha256::digest(fs::read(path).unwrap())))
        })
    };
    let first = files(&Image::made(&place).unwrap());
    // Another folder with the same key.
    let other = folder.path().join("elsewhere");
    fs::create_dir(&other).unwrap();
    for name in ["dev.key", "dev.key.pub"] {
        fs::copy(place.join(name), other.join(name)).unwrap();
    }
    assert_eq!(files(&Image::made(&other).unwrap()), first);
}

/// The end of the NIC's address is the end of the box's name.
const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x7f, 0x3a]);
const NAME: &str = "box-7f3a";
/// Ports that a box without configuration may open (design, section 4): the web page, the API.
const FRESH: [u64; 3] = [80, 443, 6443];

/// Bytes by which the disk is larger than the image.
const MORE: u64 = 1 << 30;

/// A fresh box and an owner's machine on one cable, without a DHCP server. The box's certificate
/// contains the box's name, its pages have an input for the code, and its serial console prints the
/// code. Its cache uses the rest of the disk. (`updates` and `main_job` test that its slot becomes
/// good after two minutes.)
#[test]
fn a_fresh_box_is_found_and_serves_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let larger = fs::File::options().write(true).open(&disk).unwrap();
    larger.set_len(disk_size() + MORE).unwrap();
    let rack = Rack::build(RackConfig::new("fresh-box").capture("udp")).unwrap();
    let owner = owner::host(&rack, Ipv4Addr::new(10, 9, 9, 9));
    let cable = (Segment::Near, Nic::E1000, MAC);
    let mut board = rack.add_board(&Drive::new(&disk, Bus::Usb), cable).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/look_around.py");
    let mut look = owner.command("/usr/bin/python3");
    look.arg(script).args([NAME, &PATIENCE.as_secs().to_string()]);
    let seen = run(&mut look).unwrap();
    let seen: Value = serde_json::from_str(seen.trim()).unwrap();
    let tcp: Vec<u64> = seen["tcp"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert!(tcp.contains(&6443), "{seen}");
    assert!(tcp.iter().all(|port| FRESH.contains(port)), "{seen}");
    assert_eq!(seen["udp"], json!([]), "{seen}");
    assert_eq!(seen["services"]["_https._tcp.local."], 443, "{seen}");

    // The box requested an address, and sent nothing as a server.
    let said = rack.capture().unwrap().datagrams().unwrap();
    let from =
        |port: u16| said.iter().filter(|it| it.from == MAC && it.source.port() == port).count();
    assert!(from(68) > 0, "no DHCP client was heard");
    assert_eq!([67, 69, 4011].map(from), [0; 3]);

    let address = seen["address"].as_str().unwrap();
    let ca = folder.path().join("ca.pem");
    run(owner.command("curl").args(["-sf", "-o"]).arg(&ca).arg(format!("http://{address}/ca.pem")))
        .unwrap();
    let mut claim = owner.command("curl");
    claim.args(["-sfL", "--resolve", &format!("{NAME}.local:443:{address}"), "--cacert"]).arg(&ca);
    let page = run(claim.arg(format!("https://{NAME}.local/machines"))).unwrap();
    assert!(page.contains("name=\"code\""), "not the page that asks for the code: {page}");

    let claim = "claim this box at HTTPS://";
    let claim = board.serial().wait_for_whole(Mark::START, claim, PATIENCE).unwrap().0.text;
    screen::shows_code(&mut board, claim.split_whitespace().find(|it| it.contains("/S/")).unwrap());
    let owner = Owner::claims(&owner, address, board.serial(), folder.path());
    screen::shows_picture(&mut board, &owner, folder.path());
    drop(board);
    let table = run(Command::new("sgdisk").arg("--verify").arg(&disk)).unwrap();
    assert!(table.contains("No problems found"), "{table}");
    let cache = format!("{}?offset={}", disk.display(), Part::Cache.offset());
    let cache = run(Command::new("dumpe2fs").args(["-h", &cache])).unwrap();
    let blocks = cache.lines().find_map(|line| line.strip_prefix("Block count:")).expect(&cache);
    let blocks: u64 = blocks.trim().parse().unwrap();
    assert!(blocks * 4096 > MORE, "the cache did not grow: {blocks} blocks");
    rack.succeed();
}
