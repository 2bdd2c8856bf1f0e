//! Test disks: loop devices over sparse files. Need root.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use imaging::Meter;

use crate::tinbox::action;
use agent::actions::{Action, Limits, Outcome};

/// Lock file, locked by a test that uses resources of which the machine has only one: the agent's
/// mount point, loop devices and their partitions. Works between processes and checkouts.
const MACHINE: &str = "tinbox-machine.lock";

fn machine() -> File {
    let path = std::env::temp_dir().join(MACHINE);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.lock().unwrap();
    file
}

/// Loop device over a sparse file; detached on drop.
pub struct Loop {
    pub path: PathBuf,
    backing: PathBuf,
    mounted: Option<PathBuf>,
    _folder: tempfile::TempDir,
    _machine: File,
}

impl Loop {
    pub fn new(size: u64) -> Self {
        Self::over(size, None, &[])
    }

    /// Creates a loop device whose file is on a file system with only `room` bytes.
    pub fn on_small_filesystem(size: u64, room: u64) -> Self {
        Self::over(size, Some(room), &[])
    }

    /// Creates a loop device with support for partitions.
    pub fn with_partitions(size: u64) -> Self {
        Self::over(size, None, &["--partscan"])
    }

    /// Creates a loop device with sectors of `bytes` bytes.
    pub fn with_sectors(size: u64, bytes: u32) -> Self {
        Self::over(size, None, &["--sector-size", &bytes.to_string()])
    }

    fn over(size: u64, room: Option<u64>, options: &[&str]) -> Self {
        let machine = machine();
        // Not in a tmpfs: a loop device over tmpfs has no direct I/O to test.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        if let Some(room) = room {
            let place = folder.path().to_str().unwrap();
            run("mount", &["-t", "tmpfs", "-o", &format!("size={room}"), "tmpfs", place]);
        }
        let backing = folder.path().join("disk");
        File::create(&backing).unwrap().set_len(size).unwrap();
        let fixed = ["--find", "--show", backing.to_str().unwrap()];
        let path = run("losetup", &[options, &fixed].concat());
        let mounted = room.map(|_| folder.path().to_owned());
        Self { path: path.into(), backing, mounted, _folder: folder, _machine: machine }
    }

    pub fn environment(&self, name: &str) -> String {
        format!("{name}={}", self.path.display())
    }

    /// Returns the content of the backing file, and the number of allocated bytes.
    pub fn read(&self) -> (Vec<u8>, u64) {
        run("sync", &["-f", self.backing.to_str().unwrap()]);
        let mut bytes = Vec::new();
        File::open(&self.backing).unwrap().read_to_end(&mut bytes).unwrap();
        (bytes, self.backing.metadata().unwrap().blocks() * 512)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if let Some(place) = &self.mounted {
            let _ = Command::new("umount").arg("--lazy").arg(place).status();
        }
    }
}

pub fn run(program: &str, arguments: &[&str]) -> String {
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

pub async fn act(image: &str, environment: &[String]) -> Result<String, String> {
    let assignment = action(image, image, environment);
    let action =
        Action::parse(&assignment, Limits::MACHINE).map_err(|error| stdx::chain(&error))?;
    match action.run(&Arc::new(Meter::default())).await {
        Ok(Outcome::Done(message)) => Ok(message),
        Ok(Outcome::Leave(how)) => panic!("{how:?}"),
        Err(error) => Err(stdx::chain(&error)),
    }
}

/// Mounts the device and calls `look` with the mount point, to check an action's result.
pub fn inspect(device: &Path, look: impl FnOnce(&Path)) {
    let mount = tempfile::tempdir().unwrap();
    let place = mount.path().to_str().unwrap();
    run("mount", &[device.to_str().unwrap(), place]);
    let looked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| look(mount.path())));
    run("umount", &[place]);
    if let Err(payload) = looked {
        std::panic::resume_unwind(payload);
    }
}

pub fn file_environment(disk: &Loop, fs_type: &str, more: &[&str]) -> Vec<String> {
    let fixed = [disk.environment("DEST_DISK"), format!("FS_TYPE={fs_type}")];
    fixed.into_iter().chain(more.iter().map(|entry| (*entry).to_owned())).collect()
}
