//! The root of a contained box: what is mounted before process 1 starts.
//!
//! Process 1 leaves alone what is mounted already, so it sees here a `/dev` with nothing but memory
//! devices and the box's disk, a `/sys` and a `/proc` without what is the computer's own, and the
//! files of the boot volume.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use image::disk::Part;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

use super::disk::Attached;

/// Program that the kernel starts.
const INIT: &str = "/sbin/init";
/// Memory devices: name, major and minor number (Linux, devices.txt).
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];
/// Classes of devices that the box sees. All others are the computer's own: its watchdog, monitor,
/// LEDs, keys.
const CLASSES: [&str; 2] = ["net", "block"];
/// Folders of sysfs that are empty for the box: the computer's disks, crash records, and variables
/// of its firmware.
const SYS_HIDDEN: [&str; 3] = ["block", "fs/pstore", "firmware/efi/efivars"];
/// Settings of the computer's kernel that process 1 writes; the box has a file of its own for each.
const PROC_OWN: [&str; 8] = [
    "sys/kernel/printk",
    "sys/kernel/panic",
    "sys/kernel/hung_task_panic",
    "sys/kernel/kptr_restrict",
    "sys/kernel/dmesg_restrict",
    "sys/kernel/kexec_load_disabled",
    "sys/kernel/yama/ptrace_scope",
    "sys/vm/swappiness",
];

/// The folder in which a box is laid out, in a mount namespace of its own.
#[derive(Debug, Clone)]
pub struct Staging(PathBuf);

impl Staging {
    /// An empty one at `folder`. The caller has a mount namespace of its own, whose mounts reach no
    /// other (`unshare --mount --propagation private`).
    ///
    /// # Errors
    /// The caller is in the computer's own mount namespace, or may not mount.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt"));
        // Process 1 may have capabilities that this process lacks, and then hides its own.
        if namespace("1").is_ok_and(|first| namespace("self").is_ok_and(|own| own == first)) {
            return Err(io::Error::other("run it in a mount namespace of its own"));
        }
        fs::create_dir_all(folder)?;
        let staging = Self(folder.to_owned());
        mount_memory(&staging.0)?;
        for name in ["root", "boot", "dev", "files", "sys"] {
            fs::create_dir(staging.0.join(name))?;
        }
        mount_memory(&staging.devices())?;
        Ok(staging)
    }

    /// The staging folder that another process has made.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The boot volume's files.
    pub fn boot(&self) -> PathBuf {
        self.0.join("boot")
    }

    /// The box's root.
    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    fn devices(&self) -> PathBuf {
        self.0.join("dev")
    }

    fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    /// An empty boot volume, in memory.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn mount_boot(&self) -> io::Result<()> {
        mount_memory(&self.boot())
    }

    /// Mounts the root at `part` and what process 1 is to find in it; `command_line` is the
    /// kernel's.
    ///
    /// # Errors
    /// The partition has no root, or the kernel refuses.
    pub fn mount_root(&self, disk: &Attached, part: Part, command_line: &str) -> io::Result<()> {
        for (name, major, minor) in DEVICES {
            let (node, mode) = (self.devices().join(name), Mode::from_raw_mode(0o666));
            mknodat(CWD, &node, FileType::CharacterDevice, mode, makedev(major, minor))?;
        }
        disk.make_nodes(&self.devices())?;
        let device = self.devices().join(disk.device(Some(part)));
        let root = self.root();
        mount(&device, &root, "squashfs", MountFlags::RDONLY, None)?;
        mount_bind(self.devices(), root.join("dev"))?;
        mount_bind(self.boot(), root.join("boot"))?;
        let (sys, all) = (root.join("sys"), self.0.join("sys"));
        for place in [&sys, &all] {
            mount("sysfs", place, "sysfs", MountFlags::empty(), None)?;
        }
        mount_memory(&sys.join("class"))?;
        for class in CLASSES.map(|name| Path::new("class").join(name)) {
            fs::create_dir(sys.join(&class))?;
            mount_bind(all.join(&class), sys.join(&class))?;
        }
        unmount(&all, UnmountFlags::empty())?;
        for hidden in SYS_HIDDEN.iter().map(|name| sys.join(name)) {
            if hidden.is_dir() {
                mount_memory(&hidden)?;
            }
        }
        // A kernel that did not read the partition table does not know the names in it.
        for part in Part::ALL {
            let event = disk.sysfs(&sys, part).join("uevent");
            let mut text = fs::read_to_string(&event)?;
            if !text.contains("PARTNAME=") {
                text += &format!("PARTNAME={}\n", part.label());
            }
            self.lay_over(&event, part.label(), &text)?;
        }
        fs::write(self.files().join("cmdline"), format!("{command_line}\n"))
    }

    /// Takes the root away, and what it was laid out with.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn unmount_root(&self) -> io::Result<()> {
        let root = self.root();
        let table = fs::read_to_string("/proc/self/mounts")?;
        let places = table.lines().filter_map(|line| line.split(' ').nth(1));
        let places: Vec<&Path> = places.map(Path::new).filter(|at| at.starts_with(&root)).collect();
        for place in places.into_iter().rev() {
            unmount(place, UnmountFlags::empty())?;
        }
        for entry in fs::read_dir(self.files())? {
            fs::remove_file(entry?.path())?;
        }
        unmount(self.devices(), UnmountFlags::empty())?;
        mount_memory(&self.devices())
    }

    /// Takes the boot volume away.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn unmount_boot(&self) -> io::Result<()> {
        unmount(self.boot(), UnmountFlags::empty()).map_err(Into::into)
    }

    /// Becomes process 1 of the box, in the process and mount namespaces of this process.
    ///
    /// # Errors
    /// The program is not process 1, or there is no box in the folder.
    pub fn become_box(&self) -> io::Result<()> {
        if std::process::id() != 1 {
            return Err(io::Error::other("run it as the first process of a namespace"));
        }
        let proc = self.root().join("proc");
        mount("proc", &proc, "proc", MountFlags::empty(), None)?;
        mount_bind(self.files().join("cmdline"), proc.join("cmdline"))?;
        for name in PROC_OWN {
            let setting = proc.join(name);
            if let Ok(text) = fs::read_to_string(&setting) {
                self.lay_over(&setting, &name.replace('/', "."), &text)?;
            }
        }
        rustix::process::chroot(self.root())?;
        rustix::process::chdir("/")?;
        // The environment that the kernel gives.
        Err(Command::new(INIT).env_clear().env("HOME", "/").env("TERM", "linux").exec())
    }

    /// Puts a file with `text` in the place of another file.
    fn lay_over(&self, file: &Path, name: &str, text: &str) -> io::Result<()> {
        let own = self.files().join(name);
        fs::write(&own, text)?;
        mount_bind(own, file).map_err(Into::into)
    }
}

fn mount_memory(place: &Path) -> io::Result<()> {
    let options = CString::new("mode=755")?;
    mount("tmpfs", place, "tmpfs", MountFlags::empty(), options.as_c_str()).map_err(Into::into)
}
