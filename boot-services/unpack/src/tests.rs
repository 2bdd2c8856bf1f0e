//! Tests of archives from GNU tar and other programs. No root needed: all entries have the owner of
//! the test process.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use tar::{Builder, EntryType, Header};

use super::reader::Archive;
use super::{UnpackSummary, unpack, unpack_layer};

/// Creates a file with holes at the beginning, in the middle and at the end; its data is not
/// block-aligned. Returns the content.
fn sparse_file(path: &Path) -> Vec<u8> {
    use std::os::unix::fs::FileExt as _;
    let file = File::create(path).unwrap();
    let parts: Vec<(u64, usize)> = (1..40).map(|at| (at << 17, 5000 + 300 * at as usize)).collect();
    for (at, length) in &parts {
        file.write_all_at(&vec![7; *length], *at).unwrap();
    }
    file.set_len((40 << 17) + 123).unwrap();
    fs::read(path).unwrap()
}

fn tar(folder: &Path, options: &[&str]) -> Vec<u8> {
    let mut command = Command::new("tar");
    command.arg("--create").arg("--file=-").arg("--directory").arg(folder).args(options).arg(".");
    let output = command.output().expect("this test needs the program tar");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn unpacked(archive: &[u8], root: &Path, is_layer: bool) -> Result<UnpackSummary, String> {
    let root = File::open(root).unwrap();
    let unpack = if is_layer { unpack_layer } else { unpack };
    let unpacked = unpack(&mut &archive[..], &root);
    unpacked.map_err(|refused| format!("{}: {}", refused.name, refused.source))
}

#[test]
fn sparse_files_of_every_format_arrive_with_their_holes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = sparse_file(&folder.path().join("store.img"));
    File::create(folder.path().join("hole")).unwrap().set_len(3 << 20).unwrap();
    fs::write(folder.path().join("zlast"), "after it").unwrap();
    for options in [
        &["--format=gnu", "--sparse"][..],
        &["--format=oldgnu", "--sparse"],
        &["--format=posix", "--sparse", "--sparse-version=0.0"],
        &["--format=posix", "--sparse", "--sparse-version=0.1"],
        &["--format=posix", "--sparse", "--sparse-version=1.0"],
        &["--format=posix", "--sparse", "--sparse-version=1.0", "--hole-detection=raw"],
    ] {
        let archive = tar(folder.path(), options);
        for is_layer in [false, true] {
            let root = tempfile::tempdir().unwrap();
            unpacked(&archive, root.path(), is_layer).unwrap();
            let mut names: Vec<_> = fs::read_dir(root.path()).unwrap().flatten().collect();
            names.sort_by_key(|entry| entry.file_name());
            assert_eq!(names.len(), 3, "{options:?}: {names:?}");
            let path = root.path().join("store.img");
            assert!(fs::read(&path).unwrap() == bytes, "{options:?}");
            let on_disk = path.metadata().unwrap().blocks() * 512;
            assert!(on_disk < 2 << 20, "{options:?}: {on_disk} bytes");
            assert!(fs::read(root.path().join("hole")).unwrap() == vec![0; 3 << 20]);
            assert_eq!(fs::read_to_string(root.path().join("zlast")).unwrap(), "after it");
        }
    }
}

/// Builds a header with the owner of the test process, in the format that pax programs write.
fn header(kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_uid(rustix::process::getuid().as_raw().into());
    header.set_gid(rustix::process::getgid().as_raw().into());
    header.set_mtime(0);
    header.set_size(size);
    header
}

fn add(tar: &mut Builder<Vec<u8>>, records: &[(&str, &str)], header: &mut Header, bytes: &[u8]) {
    let records = records.iter().map(|(key, value)| (*key, value.as_bytes()));
    tar.append_pax_extensions(records).unwrap();
    header.set_cksum();
    tar.append(header, bytes).unwrap();
    // The crate pads by the size in the header, which is not the true size here.
    let length = tar.get_ref().len();
    tar.get_mut().resize(length.next_multiple_of(512), 0);
}

#[test]
fn times_of_pax_records_are_kept_for_every_kind() {
    let mut tar = Builder::new(Vec::new());
    let records = &[("mtime", "1644317623.2803335"), ("atime", "-1.5")][..];
    for (kind, name, bytes) in [
        (EntryType::Directory, "etc/", &b""[..]),
        (EntryType::Regular, "etc/hostname", b"one\n"),
        (EntryType::Symlink, "etc/link", b""),
        (EntryType::Fifo, "etc/pipe", b""),
    ] {
        let mut header = header(kind, bytes.len() as u64);
        header.set_path(name).unwrap();
        if kind == EntryType::Symlink {
            header.set_link_name("nowhere").unwrap();
        }
        add(&mut tar, records, &mut header, bytes);
    }
    let archive = tar.into_inner().unwrap();
    for is_layer in [false, true] {
        let root = tempfile::tempdir().unwrap();
        unpacked(&archive, root.path(), is_layer).unwrap();
        for name in ["etc", "etc/hostname", "etc/link", "etc/pipe"] {
            let made = root.path().join(name).symlink_metadata().unwrap();
            assert_eq!((made.mtime(), made.mtime_nsec()), (1_644_317_623, 280_333_500), "{name}");
            if name != "etc" {
                assert_eq!((made.atime(), made.atime_nsec()), (-2, 500_000_000), "{name}");
            }
        }
    }
}

#[test]
fn records_exceed_the_header_and_the_last_one_counts() {
    let mut tar = Builder::new(Vec::new());
    let global = b"14 mtime=1234\n20 SCHILY.xattr.a=b\n";
    let mut first = header(EntryType::XGlobalHeader, global.len() as u64);
    first.set_path("global").unwrap();
    add(&mut tar, &[], &mut first, global);
    let long = "n".repeat(300);
    let records =
        [("path", &*long), ("uid", "3000000"), ("gid", "4000000"), ("size", "5"), ("mtime", "")];
    let mut second = header(EntryType::Regular, 0);
    second.set_path("short").unwrap();
    add(&mut tar, &records, &mut second, b"bytes");
    let records = [("linkpath", &*long), ("path", "other"), ("path", "a\nb")];
    let mut third = header(EntryType::Symlink, 0);
    third.set_path("link").unwrap();
    add(&mut tar, &records, &mut third, b"");
    let archive = tar.into_inner().unwrap();

    let mut input = &archive[..];
    let mut archive = Archive::new(&mut input);
    let file = archive.next_entry().unwrap().unwrap();
    assert_eq!((file.name, file.uid, file.gid), (long.clone().into(), 3_000_000, 4_000_000));
    assert_eq!((file.size, file.times.modified.seconds), (5, 0), "the record is taken back");
    assert!(file.attributes.is_empty(), "an attribute is of one entry");
    assert_eq!(std::io::read_to_string(&mut archive).unwrap(), "bytes");
    let link = archive.next_entry().unwrap().unwrap();
    assert_eq!((link.name, link.link), (b"a\nb".to_vec(), Some(long.into())));
    assert_eq!(link.times.modified.seconds, 1234, "a global record");
    assert!(archive.next_entry().unwrap().is_none());
}

#[test]
fn a_damaged_sparse_file_is_refused_with_words() {
    let sparse = |map: &str, more: &[(&str, &str)], bytes: &[u8]| {
        let mut tar = Builder::new(Vec::new());
        let mut records = vec![("GNU.sparse.name", "a"), ("GNU.sparse.size", "4096")];
        records.push(("GNU.sparse.map", map));
        records.extend(more);
        let mut header = header(EntryType::Regular, bytes.len() as u64);
        header.set_path("GNUSparseFile.1/a").unwrap();
        add(&mut tar, &records, &mut header, bytes);
        let root = tempfile::tempdir().unwrap();
        unpacked(&tar.into_inner().unwrap(), root.path(), false)
    };
    assert_eq!(sparse("0,2,9,1", &[], b"abc").map(|it| it.bytes), Ok(4096));
    let one = [("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0")];
    let map = |text: &str| [text.as_bytes(), &vec![0; 512 - text.len()], b"abc"].concat();
    assert!(sparse("", &one, &map("1\n4093\n3\n")).is_ok());
    for (result, words) in [
        (sparse("0,2,1,1", &[], b"abc"), "a: the parts of a sparse file overlap or leave it"),
        (sparse("4094,3", &[], b"abc"), "overlap or leave it"),
        (sparse("18446744073709551615,3", &[], b"abc"), "overlap or leave it"),
        (sparse("0,2", &[], b"abc"), "have 2 bytes, the archive 3"),
        (sparse("0,2,9", &[], b"abc"), "an offset without a length"),
        (sparse("0,x", &[], b"abc"), "its pax record GNU.sparse.map cannot be \"0,x\""),
        (sparse("", &[("GNU.sparse.major", "2")], b"abc"), "sparse format 2.0; known are"),
        (sparse("", &one, &map("1\n0\nx\n")), "the map of a sparse file is damaged"),
        (sparse("", &one, &map("99999999999\n0\n3\n")), "the map of a sparse file is damaged"),
        (sparse("", &one, b"1\n0\n"), "failed to fill whole buffer"),
    ] {
        let error = result.unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn records_without_end_are_refused() {
    let mut header = header(EntryType::XHeader, 9 << 20);
    header.set_path("x").unwrap();
    header.set_cksum();
    let root = tempfile::tempdir().unwrap();
    let archive = [header.as_bytes().as_slice(), &vec![b'1'; 9 << 20]].concat();
    let error = unpacked(&archive, root.path(), false).unwrap_err();
    assert_eq!(error, ": the records of an entry have more than 8.0 MiB");
}
