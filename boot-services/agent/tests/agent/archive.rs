//! Tests `archive2disk` with archives of the real tar, and with handmade invalid ones.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::loops::{Loop, act, file_environment, inspect, run};
use crate::tinbox::Files;

/// Creates an archive of a tree with one entry of each type, by tar with `options`.
fn packed(options: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir_all(root.join("usr/lib/deep")).unwrap();
    symlink("usr/lib", root.join("lib")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    std::fs::write(root.join("usr/lib/file"), vec![7; 300_000]).unwrap();
    std::fs::write(root.join("usr/lib/empty"), "").unwrap();
    std::fs::hard_link(root.join("usr/lib/file"), root.join("same")).unwrap();
    let long = root.join("l".repeat(120)).join("n".repeat(150));
    std::fs::create_dir(long.parent().unwrap()).unwrap();
    std::fs::write(&long, "long").unwrap();
    let program = root.join("program");
    std::fs::write(&program, "#!").unwrap();
    std::os::unix::fs::chown(&program, Some(12), Some(34)).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4751)).unwrap();
    run("mknod", &[root.join("node").to_str().unwrap(), "c", "1", "3"]);
    run("mkfifo", &[root.join("pipe").to_str().unwrap()]);
    let name = c"user.colour";
    rustix::fs::setxattr(&program, name, b"green", rustix::fs::XattrFlags::empty()).unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.set_len(5_000_000).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for path in ["usr/lib/deep", "usr/lib/file"] {
        File::open(root.join(path)).unwrap().set_modified(time).unwrap();
    }
    tar(options, root)
}

fn tar(options: &[&str], root: &Path) -> Vec<u8> {
    let output = Command::new("tar")
        .args(["--create", "--file=-", "--directory"])
        .arg(root)
        .args(options)
        .arg(".")
        .stderr(Stdio::inherit())
        .output()
        .expect("this test needs the program tar");
    assert!(output.status.success());
    output.stdout
}

async fn unpack(disk: &Loop, archive: Vec<u8>, more: &[&str]) -> Result<String, String> {
    let files = Files::start(archive).await;
    let (url, sum) = (format!("ARCHIVE_URL={}", files.url()), files.sha256());
    let mut environment = file_environment(disk, "ext4", &[&url]);
    if !more.iter().any(|entry| entry.contains("CHECKSUM")) {
        environment.push(format!("TARFILE_CHECKSUM=sha256:{sum}"));
    }
    environment.extend(more.iter().map(|entry| (*entry).to_owned()));
    act("quay.io/tinkerbell/actions/archive2disk:v1", &environment).await
}

fn formatted() -> Loop {
    let disk = Loop::new(64 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    disk
}

fn check(root: &Path) {
    assert!(std::fs::read(root.join("usr/lib/file")).unwrap() == vec![7; 300_000]);
    assert_eq!(std::fs::read_link(root.join("lib")).unwrap(), Path::new("usr/lib"));
    assert_eq!(std::fs::read_link(root.join("absolute")).unwrap(), Path::new("/etc/passwd"));
    let long = root.join("l".repeat(120)).join("n".repeat(150));
    assert_eq!(std::fs::read_to_string(long).unwrap(), "long");
    let inode = |path: &str| root.join(path).metadata().unwrap().ino();
    assert_eq!(inode("same"), inode("usr/lib/file"));
    let program = root.join("program").metadata().unwrap();
    assert_eq!((program.uid(), program.gid(), program.mode() & 0o7777), (12, 34, 0o4751));
    let node = root.join("node").metadata().unwrap();
    assert!(node.file_type().is_char_device() && node.rdev() == rustix::fs::makedev(1, 3));
    assert!(root.join("pipe").metadata().unwrap().file_type().is_fifo());
    assert_eq!(root.join("sparse").metadata().unwrap().len(), 5_000_000);
    for path in ["usr/lib/deep", "usr/lib/file"] {
        assert_eq!(root.join(path).metadata().unwrap().mtime(), 1_000_000_000, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_in_an_archive_arrives_whatever_packs_it() {
    for options in [
        &["--format=gnu", "--sparse"][..],
        &["--format=posix", "--xattrs", "--gzip"],
        &["--format=posix", "--xattrs", "--zstd"],
        &["--xz"],
        &["--bzip2"],
        &["--use-compress-program=lz4"],
    ] {
        let disk = formatted();
        let path = "DEST_PATH=/srv/root";
        let summary = unpack(&disk, packed(options), &[path, "ARCHIVE_TYPE=tar"]).await.unwrap();
        assert!(
            summary.starts_with("unpacked ") && summary.ends_with(", sha256 verified"),
            "{summary}"
        );
        inspect(&disk.path, |root| {
            let root = root.join("srv/root");
            check(&root);
            let mut value = [0; 16];
            let name = c"user.colour";
            let length = rustix::fs::getxattr(root.join("program"), name, &mut value[..]);
            let kept = options.contains(&"--xattrs");
            assert_eq!(length.is_ok_and(|length| value[..length] == *b"green"), kept);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_may_be_laid_over_another() {
    let disk = formatted();
    unpack(&disk, packed(&[]), &[]).await.unwrap();
    // The second archive writes through the link of the first, as a root file system's packages do.
    let over = tempfile::tempdir().unwrap();
    std::fs::create_dir(over.path().join("lib")).unwrap();
    std::fs::write(over.path().join("lib/file"), "new").unwrap();
    unpack(&disk, tar(&[], over.path()), &[]).await.unwrap();
    inspect(&disk.path, |root| {
        assert_eq!(std::fs::read_to_string(root.join("usr/lib/file")).unwrap(), "new");
        assert!(root.join("lib").is_symlink());
        assert!(
            std::fs::read(root.join("same")).unwrap().len() == 300_000,
            "replaced, not written"
        );
    });
}

/// Builds an archive entry, also with names that tar would not write.
fn entry(kind: tar::EntryType, name: &str, target: &str, contents: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(contents.len() as u64);
    header.set_cksum();
    let padding = vec![0; contents.len().next_multiple_of(512) - contents.len()];
    [header.as_bytes().as_slice(), contents, &padding].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_outside_the_destination() {
    use tar::EntryType as Is;
    let outside = tempfile::tempdir().unwrap();
    let trap = outside.path().to_str().unwrap();
    let end = vec![0; 1024];
    let dots = entry(Is::Regular, "a/../../trap", "", b"x");
    let link = entry(Is::Symlink, "out", trap, b"");
    let through = entry(Is::Regular, "out/trap", "", b"x");
    let up = entry(Is::Symlink, "up", "../../..", b"");
    let through_up = entry(Is::Regular, "up/trap", "", b"x");
    let hard = entry(Is::Link, "hard", "out/passwd", b"");
    let hard_dots = entry(Is::Link, "hard", "../etc/passwd", b"");
    let folder = entry(Is::Directory, "out/sub", "", b"");
    let leads = "a link on its way leads out of the destination";
    for (parts, name, why) in [
        (vec![&dots], "a/../../trap", "its name leads out of the destination by .."),
        (vec![&link, &through], "out/trap", leads),
        (vec![&up, &through_up], "up/trap", leads),
        (vec![&link, &hard], "hard", leads),
        (vec![&hard_dots], "hard", "its name leads out of the destination by .."),
        (vec![&link, &folder], "out/sub", leads),
    ] {
        let disk = formatted();
        let mut archive = parts.into_iter().flatten().copied().collect::<Vec<_>>();
        archive.extend(&end);
        let path = "DEST_PATH=/deep/er";
        let error = unpack(&disk, archive, &[path]).await.unwrap_err();
        assert!(error.starts_with(&format!("cannot unpack {name} of http://")), "{error}");
        assert!(error.ends_with(why), "{error}");
        assert!(outside.path().read_dir().unwrap().next().is_none());
        inspect(&disk.path, |root| assert!(!root.join("trap").exists()));
    }
    // An absolute name starts at the destination, and a link is replaced, not followed.
    let absolute = entry(Is::Regular, "/out", "", b"x");
    let disk = formatted();
    unpack(&disk, [link, absolute, end].concat(), &["DEST_PATH=/deep"]).await.unwrap();
    inspect(&disk.path, |root| {
        assert_eq!(std::fs::read_to_string(root.join("deep/out")).unwrap(), "x");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_archive_is_named() {
    let archive = packed(&["--gzip"]);
    let disk = formatted();
    let wrong = format!("TARFILE_CHECKSUM=sha512:{}", "0".repeat(128));
    let error = unpack(&disk, archive.clone(), &[&wrong]).await.unwrap_err();
    assert!(error.starts_with("sha512 of the image is"), "{error}");
    // Checksum of the uncompressed tar, as in upstream's action.
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(archive.as_slice()).read_to_end(&mut plain).unwrap();
    let sum = stdx::hex(&<sha2::Sha256 as sha2::Digest>::digest(&plain));
    let right = format!("TARFILE_CHECKSUM=sha256:{sum}");
    unpack(&disk, archive.clone(), &[&right]).await.unwrap();

    let skip = "INSECURE_NO_TARFILE_CHECKSUM_VERIFICATION=true";
    let cut = archive[..archive.len() / 2].to_vec();
    let error = unpack(&disk, cut, &[skip]).await.unwrap_err();
    assert!(error.starts_with("cannot decode the gzip image http://"), "{error}");
    let cut = packed(&[])[..200_000].to_vec();
    let error = unpack(&disk, cut, &[skip]).await.unwrap_err();
    assert!(error.starts_with("cannot unpack "), "{error}");
    let error = unpack(&disk, packed(&[]), &["TARFILE_CHECKSUM=", "ARCHIVE_TYPE=zip"]).await;
    assert!(error.unwrap_err().starts_with("archive2disk cannot use ARCHIVE_TYPE: \"zip\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named() {
    let disk = Loop::new(8 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("large"), vec![7; 12 << 20]).unwrap();
    let error = unpack(&disk, tar(&[], folder.path()), &[]).await.unwrap_err();
    assert!(error.starts_with("cannot unpack ./large of http://"), "{error}");
    assert!(error.contains(": No space left on device"), "{error}");
}
