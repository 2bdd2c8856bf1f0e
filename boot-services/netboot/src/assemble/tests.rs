//! Checks the media with other programs: mtools and fsck the file system, xorriso the CD.

use std::process::Command;

use super::{AgentOs, CD, Pieces, STUB, UNIFIED, cd, refresh, unified};
use crate::iso::{MAGIC, places};
use crate::{Error, Files};

/// Minimal PE32+ image that takes sections: a header, and one section of one block.
fn stub() -> Vec<u8> {
    let mut stub = vec![0; 0x600];
    let mut put = |at: usize, bytes: &[u8]| stub[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x80_u32.to_le_bytes());
    put(0x80, b"PE\0\0");
    put(0x86, &1_u16.to_le_bytes());
    put(0x94, &240_u16.to_le_bytes());
    put(0x98, &0x20b_u16.to_le_bytes());
    put(0x98 + 32, &0x1000_u32.to_le_bytes());
    put(0x98 + 36, &0x200_u32.to_le_bytes());
    let table = 0x98 + 240;
    put(table, b".text");
    put(table + 8, &0x10_u32.to_le_bytes());
    put(table + 12, &0x1000_u32.to_le_bytes());
    put(table + 16, &0x200_u32.to_le_bytes());
    put(table + 20, &0x400_u32.to_le_bytes());
    stub
}

fn bytes(pieces: &Pieces<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    pieces.write_to(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, pieces.len());
    bytes
}

fn number(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

#[test]
fn a_unified_image_has_its_parts_where_its_header_says() {
    let stub = stub();
    let (kernel, initramfs) = (vec![b'k'; 70_000], vec![b'i'; 5000]);
    let os = AgentOs { stub: &stub, kernel: &kernel, initramfs: &initramfs };
    let image = bytes(&unified(&os).unwrap());
    assert_eq!(u16::from_le_bytes([image[0x86], image[0x87]]), 5);
    let (mut end, mut found) = (0x1010, Vec::new());
    for index in 1..5 {
        let header = &image[0x98 + 240 + index * 40..][..40];
        let (size, address) = (number(header, 8), number(header, 12));
        let (raw, at) = (number(header, 16), number(header, 20));
        assert!(address >= end && address % 0x1000 == 0, "{address:x} after {end:x}");
        assert!(at % 0x200 == 0 && raw % 0x200 == 0 && raw >= size);
        end = address + size;
        let name = header[..8].iter().map_while(|c| (*c > 0).then_some(char::from(*c)));
        found.push((name.collect::<String>(), &image[at..at + size]));
    }
    assert_eq!(number(&image, 0x98 + 56), end.next_multiple_of(0x1000));
    assert!(found[1] == (".cmdline".to_owned(), MAGIC.as_bytes()));
    assert!(found[2] == (".initrd".to_owned(), &initramfs[..]));
    assert!(found[3] == (".linux".to_owned(), &kernel[..]));
    assert_eq!(places(&image[..], 4096).unwrap().len(), 1);
}

#[test]
fn a_file_that_is_no_stub_is_refused() {
    let good = stub();
    let refused = |stub: &[u8]| {
        let os = AgentOs { stub, kernel: b"k", initramfs: b"i" };
        assert!(matches!(unified(&os), Err(Error::Stub { .. })));
    };
    for length in 0..0x5ff {
        refused(&good[..length]);
    }
    let mut full = good.clone();
    full[0x98 + 240 + 20..][..4].copy_from_slice(&0x200_u32.to_le_bytes());
    refused(&full);
}

#[test]
fn media_are_made_anew_when_their_parts_change() {
    let folder = tempfile::tempdir().unwrap();
    let agent = folder.path().join("agent");
    std::fs::create_dir(&agent).unwrap();
    let files = Files::new(folder.path());
    let error = refresh(&files, "vmlinuz", "initramfs").unwrap_err();
    assert!(error.to_string().ends_with(STUB), "{error}");
    for (name, bytes) in [(STUB, &stub()[..]), ("vmlinuz", b"k"), ("initramfs", b"i")] {
        std::fs::write(agent.join(name), bytes).unwrap();
    }
    assert!(refresh(&files, "vmlinuz", "initramfs").unwrap());
    let iso = folder.path().join("iso").join(CD);
    assert_eq!(places(&std::fs::read(&iso).unwrap()[..], 4096).unwrap().len(), 1);
    assert!(!refresh(&files, "vmlinuz", "initramfs").unwrap());
    // A rollback: the media of the undone release are newer than the restored inputs.
    let kernel = |bytes: &[u8], seconds| {
        std::fs::write(agent.join("vmlinuz"), bytes).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let file = std::fs::File::options().write(true).open(agent.join("vmlinuz")).unwrap();
        file.set_modified(time).unwrap();
    };
    let first = std::fs::read(agent.join(UNIFIED)).unwrap();
    kernel(b"new", 2_000_000_000);
    assert!(refresh(&files, "vmlinuz", "initramfs").unwrap());
    assert!(std::fs::read(agent.join(UNIFIED)).unwrap() != first);
    kernel(b"k", 1_000_000_000);
    assert!(refresh(&files, "vmlinuz", "initramfs").unwrap());
    assert!(std::fs::read(agent.join(UNIFIED)).unwrap() == first, "of the release before");
    // Incomplete media are built again.
    std::fs::remove_file(folder.path().join("iso/agent-x86_64.sums")).unwrap();
    assert!(refresh(&files, "vmlinuz", "initramfs").unwrap());
}

fn run(program: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
    output.stdout
}

#[test]
fn others_find_the_loader_on_the_cd() {
    let stub = stub();
    // The smallest FAT16, more than 32 MiB, and clusters of more than one sector.
    for length in [1000, 33 << 20, 40 << 20] {
        let kernel: Vec<u8> = (0..length / 4_u32).flat_map(u32::to_be_bytes).collect();
        let os = AgentOs { stub: &stub, kernel: &kernel, initramfs: b"initramfs" };
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let image = bytes(&cd(&os).unwrap());
        assert_eq!(places(&image[..], 1 << 20).unwrap().len(), 1);
        std::fs::write(path("cd.iso"), &image).unwrap();
        let script = ["-indev", &path("cd.iso"), "-osirrox", "on", "-extract", "/EFI.IMG"];
        run("xorriso", &[&script[..], &[&path("efi.img"), "-report_el_torito", "plain"]].concat());
        let (partition, extracted) = (&image[23 * 2048..], std::fs::read(path("efi.img")).unwrap());
        assert!(partition.starts_with(&extracted), "the file is the partition");
        run("fsck.vfat", &["-n", "-v", &path("efi.img")]);
        let loader = run("mtype", &["-i", &path("efi.img"), "::EFI/BOOT/BOOTX64.EFI"]);
        assert!(loader == bytes(&unified(&os).unwrap()));
        // As on a USB stick: the partition table leads to the same file system.
        let start = number(&image, 446 + 8) * 512;
        let at = format!("{}@@{start}", path("cd.iso"));
        assert!(run("mtype", &["-i", &at, "::EFI/BOOT/BOOTX64.EFI"]) == loader);
    }
}
