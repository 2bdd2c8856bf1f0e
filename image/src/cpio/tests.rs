//! Tests the format byte by byte, and with GNU cpio.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

fn sample() -> Cpio {
    let mut archive = Cpio::default();
    archive.file("init", 0o755, b"hello".to_vec());
    archive.folder("dev", 0o755);
    archive.character("dev/console", 0o600, 5, 1);
    archive.link("bin", "usr/bin");
    archive
}

#[test]
fn an_entry_is_laid_out_as_the_kernel_documents() {
    let mut archive = Cpio::default();
    archive.file("init", 0o755, b"hello".to_vec());
    let bytes = archive.into_bytes().unwrap();
    let header = "070701\
        00000001000081ED0000000000000000000000010000000000000005\
        0000000000000000000000000000000000000005\
        00000000";
    assert_eq!(header.len(), 110);
    assert_eq!(std::str::from_utf8(&bytes[..110]).unwrap(), header);
    // 110 + "init\0" is 115: one byte of padding, then the data with its own padding.
    assert_eq!(&bytes[110..130], b"init\0\0hello\0\0\x00070701");
    assert_eq!(bytes.len() % 512, 0);
}

#[test]
fn the_order_of_additions_does_not_show() {
    let mut other = Cpio::default();
    other.link("bin", "usr/bin");
    other.character("dev/console", 0o600, 5, 1);
    other.folder("dev", 0o755);
    other.file("init", 0o755, b"hello".to_vec());
    assert_eq!(sample().into_bytes().unwrap(), other.into_bytes().unwrap());
}

#[test]
fn a_folder_comes_before_what_it_holds() {
    assert_eq!(sample().names().collect::<Vec<_>>(), ["bin", "dev", "dev/console", "init"]);
}

#[test]
fn gnu_cpio_reads_it() {
    let mut child = Command::new("cpio")
        .args(["--list", "--verbose", "--numeric-uid-gid", "--quiet"])
        .env("TZ", "UTC")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test needs the program cpio (package cpio)");
    child.stdin.take().unwrap().write_all(&sample().into_bytes().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let listing = String::from_utf8(output.stdout).unwrap();
    let squeezed: Vec<String> =
        listing.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        squeezed,
        [
            "lrwxrwxrwx 1 0 0 7 Jan 1 1970 bin -> usr/bin",
            "drwxr-xr-x 2 0 0 0 Jan 1 1970 dev",
            "crw------- 1 0 0 5, 1 Jan 1 1970 dev/console",
            "-rwxr-xr-x 1 0 0 5 Jan 1 1970 init",
        ]
    );
}
