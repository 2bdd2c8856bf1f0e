//! Tests the agent OS's archive with a minimal program.

use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::elf::require_static;

/// Builds a static program of one instruction in `folder`; `ret` exists on both processors.
fn stub(folder: &Path) -> PathBuf {
    let line =
        "printf '.globl _start\n_start: ret\n' | as -g -o stub.o - && ld -static -o stub stub.o";
    let status = Command::new("sh").args(["-ec", line]).current_dir(folder).status().unwrap();
    assert!(status.success(), "this test needs as and ld (package binutils)");
    folder.join("stub")
}

fn names(initramfs: &[u8]) -> Vec<String> {
    let archive = zstd::stream::decode_all(initramfs).unwrap();
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let field = |n: usize| {
            let from = at + 6 + n * 8;
            let text = std::str::from_utf8(&archive[from..from + 8]).unwrap();
            usize::from_str_radix(text, 16).unwrap()
        };
        let (size, name_size) = (field(6), field(11));
        let name = at + 110;
        let text = String::from_utf8(archive[name..name + name_size - 1].to_vec()).unwrap();
        if text == "TRAILER!!!" {
            return found;
        }
        found.push(text);
        at = ((name + name_size).next_multiple_of(4) + size).next_multiple_of(4);
    }
}

#[test]
fn it_holds_the_agent_and_its_folders() {
    let folder = tempfile::tempdir().unwrap();
    let stub = stub(folder.path());
    let first = agent_initramfs(&stub, Arch::OWN, None, None).unwrap();
    let expected = ["dev", "dev/console", "etc", "init", "mnt", "proc", "run", "sys", "tmp"];
    assert_eq!(names(&first), expected);
    assert_eq!(first, agent_initramfs(&stub, Arch::OWN, None, None).unwrap(), "two builds differ");
}

#[test]
fn a_large_static_program_is_accepted() {
    // This test program is static, like the agent.
    let this = std::env::current_exe().unwrap();
    require_static(&this, &fs::read(&this).unwrap(), Arch::OWN).unwrap();
}

#[test]
fn a_stock_kernels_modules_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["010-ext4.ko", "002-virtio.ko", "notes.txt"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let mut archive = Cpio::default();
    add_modules(&mut archive, folder.path()).unwrap();
    assert_eq!(
        archive.names().collect::<Vec<_>>(),
        [
            "lib",
            "lib/modules-boot",
            "lib/modules-boot/002-virtio.ko",
            "lib/modules-boot/010-ext4.ko"
        ]
    );
}

#[test]
fn a_program_that_needs_a_loader_is_refused() {
    let shell = PathBuf::from("/bin/sh");
    let error = agent_initramfs(&shell, Arch::OWN, None, None).unwrap_err();
    assert!(error.to_string().contains("needs a dynamic loader"), "{error}");
}

#[test]
fn a_program_for_another_processor_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let stub = stub(folder.path());
    let other = if Arch::OWN == Arch::X86_64 { Arch::Aarch64 } else { Arch::X86_64 };
    let error = agent_initramfs(&stub, other, None, None).unwrap_err().to_string();
    let said = format!("is not a static ELF program for {other}: it is for another processor");
    assert!(error.ends_with(&said), "{error}");
}

#[test]
fn what_is_no_program_is_refused() {
    let path = PathBuf::from("x");
    for bytes in [b"".as_slice(), b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\x7fELF\x01\x01"] {
        assert!(require_static(&path, bytes, Arch::X86_64).is_err());
    }
    // Header whose table lies beyond the end of the file.
    let mut header = vec![0; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18] = 62;
    header[32..40].fill(0xff);
    header[54] = 56;
    header[56] = 9;
    assert!(require_static(&path, &header, Arch::X86_64).is_err());
}

#[test]
fn the_tools_image_is_named_by_its_sum() {
    let folder = tempfile::tempdir().unwrap();
    let stub = stub(folder.path());
    let tools = folder.path().join("tools-x86_64.squashfs");
    std::fs::write(&tools, "abc").unwrap();
    let initramfs = agent_initramfs(&stub, Arch::OWN, None, Some(&tools)).unwrap();
    assert!(names(&initramfs).contains(&TOOLS_SUM.to_owned()));
    // Example of FIPS 180-4.
    let line = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  \
                tools-x86_64.squashfs\n";
    let archive = zstd::stream::decode_all(initramfs.as_slice()).unwrap();
    assert!(archive.windows(line.len()).any(|bytes| bytes == line.as_bytes()));
    let missing = folder.path().join("none");
    assert!(agent_initramfs(&stub, Arch::OWN, None, Some(&missing)).is_err());
}
