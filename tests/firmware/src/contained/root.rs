//! The root of a contained box: mounts that exist before process 1 starts.
//!
//! Process 1 does not mount over existing mounts. So here its `/dev` has only memory devices and
//! the box's disk, its `/sys` and `/proc` lack the host's own entries, and the files of the boot
//! volume are present.

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
/// Device classes that the box sees. All others belong to the host: its watchdog, monitor, LEDs,
/// keys.
const CLASSES: [&str; 2] = ["net", "block"];
/// Folders of sysfs that are empty for the box: the host's disks, crash records, and firmware
/// variables.
const SYS_HIDDEN: [&str; 3] = ["block", "fs/pstore", "firmware/efi/efivars"];
/// Kernel settings of the host that process 1 writes; the box has its own file for each.
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
    /// Creates an empty staging folder. The caller has a mount namespace of its own, whose mounts
    /// do not propagate (`unshare --mount --propagation private`).
    ///
    /// # Errors
    /// The caller is in the host's own mount namespace, or may not mount.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt"));
        // Process 1 may have capabilities that this process lacks; its namespace is then not
        // readable.
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

    /// Returns the staging folder that another process has created.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Path of the staging folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Path of the boot volume's files.
    pub fn boot(&self) -> PathBuf {
        self.0.join("boot")
    }

    /// Path of the box's root.
    pub fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    fn devices(&self) -> PathBuf {
        self.0.join("dev")
    }

    fn files(&self) -> PathBuf {
        self.0.join("files")
    }

    /// Mounts an empty boot volume, in memory.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn mount_boot(&self) -> io::Result<()> {
        mount_memory(&self.boot())
    }

    /// Mounts the root at `part` and the files that process 1 needs in it; `command_line` is the
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
        // A kernel that did not read the partition table does not know the partition names.
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

    /// Unmounts the root and all mounts in it.
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

    /// Unmounts the boot volume.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn unmount_boot(&self) -> io::Result<()> {
        unmount(self.boot(), UnmountFlags::empty()).map_err(Into::into)
    }

    /// Becomes process 1 of the box by exec, in the process and mount namespaces of this process.
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
        // The environment that the kernel gives to process 1.
        Err(Command::new(INIT).env_clear().env("HOME", "/").env("TERM", "linux").exec())
    }

    /// Bind-mounts a file with `text` over another file.
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
