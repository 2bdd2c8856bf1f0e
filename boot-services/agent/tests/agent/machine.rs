//! The actions on block devices: loop devices over files, so this test needs root.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tinbox::{Files, action};
use agent::actions::{Action, Limits, Outcome};
use agent::{Meter, stream};

/// The agent mounts at one place, and partitions are the whole machine's: one test at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// A loop device over a sparse file; detached when dropped.
struct Loop {
    path: PathBuf,
    backing: PathBuf,
    _folder: tempfile::TempDir,
    _machine: MutexGuard<'static, ()>,
}

impl Loop {
    fn new(size: u64) -> Self {
        let machine = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
        // Not in memory: a loop device over tmpfs has no direct I/O to prove anything with.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let backing = folder.path().join("disk");
        File::create(&backing).unwrap().set_len(size).unwrap();
        let path = run("losetup", &["--find", "--show", backing.to_str().unwrap()]);
        Self { path: path.into(), backing, _folder: folder, _machine: machine }
    }

    fn environment(&self, name: &str) -> String {
        format!("{name}={}", self.path.display())
    }

    /// The backing file's bytes, and how many of them it stores.
    fn read(&self) -> (Vec<u8>, u64) {
        run("sync", &["-f", self.backing.to_str().unwrap()]);
        let mut bytes = Vec::new();
        File::open(&self.backing).unwrap().read_to_end(&mut bytes).unwrap();
        (bytes, self.backing.metadata().unwrap().blocks() * 512)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("this test needs the program {program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?} failed (this test needs root and loop devices): {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn act(image: &str, environment: &[String]) -> Result<String, String> {
    let assignment = action(image, image, environment);
    let action =
        Action::parse(&assignment, Limits::MACHINE).map_err(|error| stdx::chain(&error))?;
    match action.run(&Arc::new(Meter::default())).await {
        Ok(Outcome::Done(message)) => Ok(message),
        Ok(Outcome::Leave(how)) => panic!("{how:?}"),
        Err(error) => Err(stdx::chain(&error)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn image2disk_writes_past_the_cache_and_leaves_holes() {
    let disk = Loop::new(64 << 20);
    File::options().write(true).open(&disk.path).unwrap().write_all(&vec![0xee; 64 << 20]).unwrap();
    let mut image = vec![0; 40 << 20];
    image[..1000].fill(0xcd);
    image[30 << 20..31 << 20].fill(0xab);
    // Not a whole number of sectors.
    image.truncate((40 << 20) - 100);
    let files = Files::start(zstd::encode_all(image.as_slice(), 1).unwrap()).await;
    let environment = [
        disk.environment("DEST_DISK"),
        format!("IMG_URL={}", files.url()),
        format!("IMG_SHA256=sha256:{}", files.sha256()),
    ];
    act("image2disk", &environment).await.unwrap();
    let (bytes, stored) = disk.read();
    assert!(bytes[..image.len()] == image);
    assert_eq!(bytes[image.len()..40 << 20], [0; 100], "the last sector is padded with zeros");
    assert!(bytes[40 << 20..].iter().all(|byte| *byte == 0xee), "past the image is not touched");
    assert!(stored < 32 << 20, "zeros were stored: {stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn image2disk_refuses_what_it_must_not_write() {
    let disk = Loop::new(8 << 20);
    let files = Files::start(vec![1; 9 << 20]).await;
    let url = format!("IMG_URL={}", files.url());
    let error = act("image2disk", &[url.clone(), disk.environment("DEST_DISK")]).await.unwrap_err();
    let path = disk.path.display();
    let expected = format!("the image {} is larger than {path}, which holds 8.0 MiB", files.url());
    assert_eq!(error, expected);
    assert!(disk.read().0[..4 << 20].iter().all(|byte| *byte == 0), "nothing there boots");

    let file = tempfile::NamedTempFile::new().unwrap();
    let target = format!("DEST_DISK={}", file.path().display());
    let error = act("image2disk", &[url.clone(), target]).await.unwrap_err();
    assert!(error.ends_with("is not a block device"), "{error}");

    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let mount = tempfile::tempdir().unwrap();
    let place = mount.path().to_str().unwrap();
    run("mount", &[disk.path.to_str().unwrap(), place]);
    let busy = act("image2disk", &[url, disk.environment("DEST_DISK")]).await;
    run("umount", &[place]);
    assert_eq!(
        busy.unwrap_err(),
        format!("{path} is in use: it, or a partition of it, is mounted")
    );
    run("fsck.ext4", &["-fn", disk.path.to_str().unwrap()]);
}

/// What `writefile` made, read through a mount of the test's own.
fn inspect(device: &Path, look: impl FnOnce(&Path)) {
    let mount = tempfile::tempdir().unwrap();
    let place = mount.path().to_str().unwrap();
    run("mount", &[device.to_str().unwrap(), place]);
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(mount.path())));
    run("umount", &[place]);
    if let Err(payload) = looked {
        std::panic::resume_unwind(payload);
    }
}

fn file_environment(disk: &Loop, fs_type: &str, more: &[&str]) -> Vec<String> {
    let fixed = [disk.environment("DEST_DISK"), format!("FS_TYPE={fs_type}")];
    fixed.into_iter().chain(more.iter().map(|entry| (*entry).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn writefile_makes_folders_files_owners_and_modes() {
    let disk = Loop::new(32 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let path = "DEST_PATH=/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg";
    let settings = ["UID=12", "GID=34", "MODE=0600", "DIRMODE=0750"];
    for contents in ["CONTENTS=a much longer text that must not remain", "CONTENTS=key: a=b\n"] {
        let mut more = vec![path, contents];
        more.extend(settings);
        act("writefile", &file_environment(&disk, "ext4", &more)).await.unwrap();
    }
    inspect(&disk.path, |root| {
        let file = root.join("etc/cloud/cloud.cfg.d/10_tinkerbell.cfg");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "key: a=b\n");
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (12, 34, 0o600));
        let metadata = root.join("etc/cloud").metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (12, 34, 0o750));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn writefile_stays_on_its_filesystem() {
    let disk = Loop::new(32 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let outside = tempfile::tempdir().unwrap();
    let trap = outside.path().join("trap");
    inspect(&disk.path, |root| {
        std::os::unix::fs::symlink(outside.path(), root.join("absolute")).unwrap();
        std::os::unix::fs::symlink("../../../../../../../tmp", root.join("dots")).unwrap();
        std::fs::create_dir_all(root.join(outside.path().strip_prefix("/").unwrap())).unwrap();
    });
    for path in ["DEST_PATH=/absolute/trap", "DEST_PATH=/dots/trap-of-dots"] {
        let more = [path, "CONTENTS=x"];
        act("writefile", &file_environment(&disk, "ext4", &more)).await.unwrap();
    }
    assert!(!trap.exists() && !Path::new("/tmp/trap-of-dots").exists());
    inspect(&disk.path, |root| {
        assert!(root.join(trap.strip_prefix("/").unwrap()).exists(), "followed within the disk");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn writefile_says_what_it_cannot_mount() {
    let disk = Loop::new(8 << 20);
    let more = ["DEST_PATH=/a", "CONTENTS=x"];
    let error = act("writefile", &file_environment(&disk, "nosuchfs", &more)).await.unwrap_err();
    assert_eq!(error, "the agent's kernel cannot mount nosuchfs; it has ext4 and vfat");
    let error = act("writefile", &file_environment(&disk, "ext4", &more)).await.unwrap_err();
    assert!(error.starts_with(&format!("cannot mount {} as ext4", disk.path.display())), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_wipe_leaves_nothing() {
    let disk = Loop::new((48 << 20) + 512);
    File::options().write(true).open(&disk.path).unwrap().write_all(&vec![0xee; 48 << 20]).unwrap();
    let device = File::options().write(true).open(&disk.path).unwrap();
    device.write_all_at(&[0xee; 512], 48 << 20).unwrap();
    drop(device);
    let message = act("disk-wipe", &[disk.environment("BLOCK_DEVICE")]).await.unwrap();
    assert!(message.starts_with("wiped 48 MiB of /dev/loop"), "{message}");
    assert!(disk.read().0.iter().all(|byte| *byte == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_disk_is_waited_for_and_then_named() {
    let image = stream::Image {
        url: "http://127.0.0.1:1/x".parse().unwrap(),
        sha256: None,
        compressed: false,
        disk: "/dev/no-such-disk".into(),
        accept: stream::Accept::BlockDevices,
        patience: stream::Patience::DEFAULT,
    };
    let error = stream::write_image(&image, &Arc::new(Meter::default())).await.unwrap_err();
    assert_eq!(error.to_string(), "/dev/no-such-disk did not appear within 10 s");
}
