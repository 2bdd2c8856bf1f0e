use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{KEPT, KEPT_MAX, Panic, TOGETHER, reason, record, take};

/// Records of efi_pstore from a kernel without a root file system: the last lines, and the lines
/// before.
const END: &str = include_str!("panic-part1.txt");
const BEFORE: &str = include_str!("panic-part2.txt");
const WHY: &str = "VFS: Unable to mount root fs on unknown-block(0,0)";

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_460_759 + seconds)
}

fn put(folder: &Path, name: &str, seconds: u64, text: &str) {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(at(seconds)).unwrap();
}

fn left(folder: &Path) -> usize {
    folder.read_dir().unwrap().count()
}

#[test]
fn the_kernels_reason_is_found_where_there_is_one() {
    let oops = "<1>[ 9.1] BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
        <4>[ 9.2] Oops: Oops: 0002 [#1] PREEMPT SMP NOPTI\n";
    let fatal = "<0>[ 9.9] Kernel panic - not syncing: Fatal exception in interrupt\n";
    let both = format!("{oops}{fatal}<0>[ 9.9] Kernel Offset: disabled\n");
    let table = [
        (END, WHY),
        (BEFORE, "no reason given"),
        (oops, "BUG: kernel NULL pointer dereference, address: 0000000000000008"),
        (both.as_str(), "Fatal exception in interrupt"),
        // Hostile input: control characters from a packet must not reach the terminal.
        ("Kernel panic - not syncing: \u{1b}[2Jx", "[2Jx"),
        ("", "no reason given"),
    ];
    for (text, why) in table {
        assert_eq!(reason(text), why, "{text}");
    }
    assert_eq!(reason(&format!("BUG: {}", "é".repeat(1000))).chars().count(), super::REASON_MAX);
}

#[test]
fn a_record_says_which_part_it_is() {
    for (text, head, part, rest) in [
        (END, "Panic#1", 1, END.split_once('\n').unwrap().1),
        ("Oops#12 Part3\nx\n", "Oops#12", 3, "x\n"),
        ("no head\nx", "", 1, "no head\nx"),
        ("", "", 1, ""),
    ] {
        let record = record(text, at(0));
        assert_eq!((record.head.as_str(), record.part, record.text.as_str()), (head, part, rest));
    }
}

#[test]
fn a_panic_is_taken_once_and_its_lines_are_kept_in_order() {
    let (pstore, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(pstore.path(), "dmesg-efi_pstore-179546075901001", 0, END);
    put(pstore.path(), "dmesg-efi_pstore-179546076002001", 1, BEFORE);
    let old = "Panic#1 Part1\n<0>[1] Kernel panic - not syncing: long ago\n";
    let long_ago = 1_795_460_759 - 2 * TOGETHER.as_secs();
    let path = pstore.path().join("dmesg-efi_pstore-17900000000");
    fs::write(&path, old).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(long_ago);
    File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    let found = take(pstore.path(), state.path());
    assert_eq!(found, Some(Panic { reason: WHY.to_owned(), at: at(1) }));
    let body = |part: &str| part.split_once('\n').unwrap().1.to_owned();
    let kept = fs::read_to_string(state.path().join(KEPT)).unwrap();
    assert_eq!(kept, body(BEFORE) + &body(END));
    assert_eq!(left(pstore.path()), 0);
    assert_eq!(take(pstore.path(), state.path()), None);
    assert!(state.path().join(KEPT).exists(), "it stays until the next one");
}

#[test]
fn a_fault_that_ended_in_a_panic_is_the_panic() {
    let (pstore, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(pstore.path(), "dmesg-a", 3, "Oops#1 Part1\n<1>[9] BUG: it fell over\n");
    put(pstore.path(), "dmesg-b", 2, "Panic#2 Part1\n<0>[9] Kernel panic - not syncing: it died\n");
    // A console log is not a panic record. Its file is removed all the same, because the space is
    // limited.
    put(pstore.path(), "console-ramoops-0", 4, "all is well\n");
    let found = take(pstore.path(), state.path()).unwrap();
    assert_eq!((found.reason.as_str(), left(pstore.path())), ("it died", 0));
}

#[test]
fn what_is_kept_has_an_end() {
    let (pstore, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for part in 1..=9 {
        let text = format!("Panic#1 Part{part}\n{}\n", "é".repeat(KEPT_MAX / 4));
        put(pstore.path(), &format!("dmesg-{part}"), 0, &text);
    }
    put(
        pstore.path(),
        "dmesg-0",
        0,
        &format!("Panic#1 Part0\n{}", END.split_once('\n').unwrap().1),
    );
    assert_eq!(take(pstore.path(), state.path()).unwrap().reason, WHY);
    let kept = fs::metadata(state.path().join(KEPT)).unwrap().len();
    assert!(kept <= KEPT_MAX as u64, "{kept}");
}

#[test]
fn nothing_there_is_nothing() {
    let state = tempfile::tempdir().unwrap();
    assert_eq!(take(&state.path().join("none"), state.path()), None);
}

#[test]
fn what_cannot_be_kept_stays_with_the_kernel() {
    let pstore = tempfile::tempdir().unwrap();
    put(pstore.path(), "dmesg-a", 0, END);
    let nowhere = pstore.path().join("nowhere");
    assert_eq!(take(pstore.path(), &nowhere).unwrap().reason, WHY);
    assert_eq!(left(pstore.path()), 1);
}
