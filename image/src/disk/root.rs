//! Builds the box's root: one static program, its files, and empty folders as mount points. The
//! root has no shell, no library, no command line (there is no console login), and no program of
//! other projects.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::elf;
use crate::program::Program;
use crate::{Arch, Error};

const MKSQUASHFS: Program = Program { name: "mksquashfs", package: "squashfs-tools" };
/// Bytes that are compressed together: the maximum of squashfs, which gives the smallest root.
const BLOCK: &str = "1M";
/// Folders that are used as mount points.
const MOUNT_POINTS: [&str; 9] =
    ["boot", "cache", "dev", "etc", "proc", "run", "state", "sys", "tmp"];
/// Target of the link `sbin/init`, which the kernel starts.
const INIT: &str = "../usr/bin/tinboxd";
/// Kernel of the running slot, in the folder where process 1 mounts it. The agent OS boots the same
/// kernel, so the root links to it instead of containing a copy.
const RUNNING_KERNEL: &str = "/run/tinbox/slot/vmlinuz";
/// Empty state volume (`platform::init`).
const STATE: &str = "usr/share/tinbox/state.ext4";
/// Artifacts that a box cannot build by itself. The box builds the media of the agent OS from them.
const ARTIFACTS: [&str; 2] = ["ipxe", "agent"];

/// Contents of the root.
#[derive(Debug, Clone)]
pub struct RootTree {
    /// Processor that the programs are built for.
    pub arch: Arch,
    /// Version of the release, for `os-release`.
    pub version: String,
    /// Program that is process 1 and the supervisor.
    pub tinboxd: PathBuf,
    /// Program that is installed beside tinboxd as `beside`, for tests of failing updates.
    pub beside: Option<PathBuf>,
    /// Folder of the artifacts for machines (`artifacts.sh`): loaders and the agent OS.
    pub artifacts: PathBuf,
    /// Folder of files that are the same in every image: `image/root`.
    pub overlay: PathBuf,
    /// Public keys whose updates the box accepts, in minisign's format.
    pub update_keys: String,
    /// True for an image that is not published: it is built in seconds instead of minutes. Its
    /// kernel skips the timer check (see [`super::BootVolume::quick`]).
    pub quick: bool,
}

impl RootTree {
    /// Builds the squashfs in `folder`. Returns its path. `state` is the empty file system of the
    /// state volume, in the same folder: the box recreates that volume from it. Nearly all of it is
    /// zeros, which take no space in a squashfs.
    pub(crate) fn pack(&self, folder: &Path, state: &Path, epoch: u64) -> Result<PathBuf, Error> {
        let tree = folder.join("root");
        self.lay_out(&tree)?;
        let place = tree.join(STATE);
        let linked = fs::hard_link(state, &place)
            .and_then(|()| fs::set_permissions(&place, fs::Permissions::from_mode(0o644)));
        linked.map_err(|source| Error::Write { path: place, source })?;
        let out = folder.join("root.squashfs");
        let epoch_text = epoch.to_string();
        let mut command = MKSQUASHFS.command(epoch);
        command
            .arg(&tree)
            .arg(&out)
            .args(["-noappend", "-all-root", "-no-xattrs", "-quiet", "-no-progress"])
            .args(["-comp", "zstd", "-b", BLOCK])
            .args(["-Xcompression-level", if self.quick { "3" } else { "22" }])
            // mksquashfs rejects the variable together with these options.
            .env_remove("SOURCE_DATE_EPOCH")
            .args(["-mkfs-time", &epoch_text, "-all-time", &epoch_text]);
        MKSQUASHFS.run(&mut command, &tree)?;
        Ok(out)
    }

    /// Writes every file to its place in the tree.
    fn lay_out(&self, tree: &Path) -> Result<(), Error> {
        for folder in MOUNT_POINTS.iter().chain(&["sbin", "usr/bin", "usr/share/tinbox"]) {
            make_folder(&tree.join(folder))?;
        }
        let programs = [("tinboxd", Some(&self.tinboxd)), ("beside", self.beside.as_ref())];
        for (name, from) in programs.into_iter().filter_map(|(name, from)| Some((name, from?))) {
            put(&tree.join("usr/bin").join(name), &elf::program(from, self.arch)?, 0o755)?;
        }
        link(INIT, &tree.join("sbin/init"))?;
        copy_folder(&self.overlay, tree)?;
        link("/run/resolv.conf", &tree.join("etc/resolv.conf"))?;
        put(&tree.join("etc/os-release"), os_release(&self.version).as_bytes(), 0o644)?;
        put(&tree.join("etc/tinbox/update.pub"), self.update_keys.as_bytes(), 0o644)?;
        let artifacts = tree.join("usr/share/tinbox/artifacts");
        for folder in ARTIFACTS {
            self.artifact_folder(folder, &artifacts)?;
        }
        // A box with an ARM processor serves x86 machines, and the root has no initramfs for ARM
        // machines.
        if artifacts.join(format!("agent/initramfs-{}", self.arch)).exists() {
            link(RUNNING_KERNEL, &artifacts.join(format!("agent/vmlinuz-{}", self.arch)))?;
        }
        Ok(())
    }

    fn artifact_folder(&self, name: &str, into: &Path) -> Result<(), Error> {
        let from = self.artifacts.join(name);
        let arch = self.arch.name();
        make_folder(&into.join(name))?;
        for path in entries(&from)? {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // This box's kernel is on the boot volume. A unified image would be a second copy of
            // kernel and initramfs.
            let is_unified = file.starts_with("agent-") && file.ends_with(".efi");
            let is_again = is_unified || file == format!("vmlinuz-{arch}");
            if !file.starts_with('.') && !is_again && path.is_file() {
                copy(&path, &into.join(name).join(file))?;
            }
        }
        Ok(())
    }
}

fn os_release(version: &str) -> String {
    format!(
        "NAME=\"Tinbox\"\nID=tinbox\nVERSION=\"{version}\"\nVERSION_ID={version}\n\
         PRETTY_NAME=\"Tinbox {version}\"\nHOME_URL=\"https://tinbox.dev\"\n"
    )
}

/// Returns the paths in `folder`.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let read = |source| Error::Read { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(read)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(read)).collect()
}

fn copy_folder(from: &Path, into: &Path) -> Result<(), Error> {
    for path in entries(from)? {
        let target = into.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            make_folder(&target)?;
            copy_folder(&path, &target)?;
        } else {
            copy(&path, &target)?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let bytes = fs::read(from).map_err(|source| Error::Read { path: from.to_owned(), source })?;
    put(to, &bytes, 0o644)
}

/// Writes a file with these permissions, independent of the caller's umask.
fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    make_folder(path.parent().unwrap_or(path))?;
    let written = fs::write(path, bytes)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)));
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}

fn make_folder(path: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        let made = fs::create_dir(folder)
            .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o755)));
        made.map_err(|source| Error::Write { path: folder.to_owned(), source })?;
    }
    Ok(())
}

fn link(target: &str, at: &Path) -> Result<(), Error> {
    symlink(target, at).map_err(|source| Error::Write { path: at.to_owned(), source })
}
