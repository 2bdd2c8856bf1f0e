//! Builds the boot volume: a FAT file system that both the firmware and a person's computer can
//! read.
//!
//! ```text
//! EFI/BOOT/BOOTX64.EFI     GRUB, whose only script is the next file (BOOTAA64.EFI on ARM)
//! tinbox/grub.cfg          selects the slot
//! tinbox/grubenv           state of the selection: 1024 bytes, rewritten in place
//! tinbox/a/vmlinuz         slot A's kernel
//! tinbox/a/boot.cfg        GRUB's command that loads it (`platform::bundle::Verity::boot_script`)
//! tinbox/b/…               slot B's
//! box.toml                 settings from the owner (optional)
//! reset                    optional: `safe` or `factory`, for the next start (`platform::reset`)
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use platform::bundle::{Slot, Verity};
use platform::slots::KERNEL_MAX;

use super::fits;
use super::layout::{BOOT_SIZE, Part};
use crate::elf::require_kernel;
use crate::program::Program;
use crate::{Arch, Error};

const MKFS: Program = Program { name: "mkfs.fat", package: "dosfstools" };
const MCOPY: Program = Program { name: "mcopy", package: "mtools" };
const MMD: Program = Program { name: "mmd", package: "mtools" };
const GRUB: Program = Program { name: "grub-mkimage", package: "grub-common" };
/// Serial number of the volume; fixed, because two builds must not differ.
const SERIAL: &str = "71B0B0C5";
/// Script that selects the slot.
const GRUB_CFG: &str = include_str!("../../boot/grub.cfg");
/// Script inside GRUB, which starts [`GRUB_CFG`].
const BUILTIN_CFG: &str = include_str!("../../boot/builtin.cfg");
/// Modules for both scripts. They are built into GRUB, so it reads none from the disk at run time.
const GRUB_MODULES: &str = include_str!("../../boot/grub-modules");
/// Bytes of GRUB's environment block, whose size never changes.
const GRUBENV_BYTES: usize = 1024;
/// Kernel argument of quick images, which tests boot in QEMU. On a busy computer QEMU delivers
/// timer interrupts so late that Linux panics with "IO-APIC + timer doesn't work", and GRUB counts
/// a start. A slot that an update filled does not have the argument, because the running system
/// writes that slot's `boot.cfg`.
const EMULATED: &str = "no_timer_check";

/// GRUB for the boot volume: finished, or to be built.
#[derive(Debug, Clone)]
pub enum Loader {
    /// Finished program, built for this firmware and with these modules.
    Made(PathBuf),
    /// Folder of modules to build GRUB from, `/usr/lib/grub/x86_64-efi`.
    Modules(PathBuf),
}

/// Contents of the boot volume.
#[derive(Debug)]
pub struct BootVolume<'a> {
    /// Processor of the box.
    pub arch: Arch,
    /// Version of the release in both slots.
    pub version: &'a str,
    /// Path of the kernel, which both slots contain.
    pub kernel: &'a Path,
    /// GRUB, finished or as modules.
    pub loader: &'a Loader,
    /// Slots that contain a system, the first one to boot first.
    pub slots: &'a [(Slot, &'a Verity)],
    /// True for a quick image: not for release, and often booted in an emulator.
    pub quick: bool,
}

impl BootVolume<'_> {
    /// Builds the volume in `folder`. Returns its path.
    ///
    /// # Errors
    /// Names the input or program that failed.
    pub fn make(&self, folder: &Path, epoch: u64) -> Result<PathBuf, Error> {
        let tree = folder.join("boot-volume");
        self.tree(&tree, epoch)?;
        let volume = folder.join("boot.fat");
        let made = File::create(&volume).and_then(|file| file.set_len(BOOT_SIZE));
        made.map_err(|source| Error::Write { path: volume.clone(), source })?;
        let label = Part::Boot.label();
        let mut mkfs = MKFS.command(epoch);
        mkfs.args(["--invariant", "-F", "32", "-s", "1", "-n", label, "-i", SERIAL]).arg(&volume);
        MKFS.run(&mut mkfs, &volume)?;
        fill(&volume, &tree, "", epoch)?;
        Ok(volume)
    }

    fn tree(&self, tree: &Path, epoch: u64) -> Result<(), Error> {
        let efi = tree.join("EFI/BOOT");
        fs::create_dir_all(&efi).map_err(|source| Error::Write { path: efi.clone(), source })?;
        let name = match self.arch {
            Arch::X86_64 => "BOOTX64.EFI",
            Arch::Aarch64 => "BOOTAA64.EFI",
        };
        self.grub(&efi.join(name), epoch)?;
        let kernel = fs::read(self.kernel)
            .map_err(|source| Error::Read { path: self.kernel.to_owned(), source })?;
        require_kernel(self.kernel, &kernel, self.arch)?;
        fits("the kernel", kernel.len() as u64, KERNEL_MAX)?;
        put(&tree.join("tinbox/grub.cfg"), GRUB_CFG.as_bytes())?;
        put(&tree.join("tinbox/grubenv"), &grubenv(self.slots))?;
        for (slot, verity) in self.slots {
            let place = tree.join(format!("tinbox/{}", slot.letter()));
            put(&place.join("vmlinuz"), &kernel)?;
            put(&place.join("boot.cfg"), self.boot_script(*slot, verity).as_bytes())?;
        }
        touch(tree, epoch)
    }

    /// Text of a slot's `boot.cfg`. A release has the text that an update writes, byte for byte.
    fn boot_script(&self, slot: Slot, verity: &Verity) -> String {
        let script = verity.boot_script(self.arch, slot, self.version);
        if !self.quick || self.arch != Arch::X86_64 {
            return script;
        }
        format!("{} {EMULATED}\n", script.trim_end())
    }

    fn grub(&self, out: &Path, epoch: u64) -> Result<(), Error> {
        let modules = match self.loader {
            Loader::Made(made) => {
                let read = |source| Error::Read { path: made.clone(), source };
                return fs::read(made).map_err(read).and_then(|bytes| put(out, &bytes));
            }
            Loader::Modules(folder) => folder,
        };
        let format = match self.arch {
            Arch::X86_64 => "x86_64-efi",
            Arch::Aarch64 => "arm64-efi",
        };
        let mut command = GRUB.command(epoch);
        // A prefix without a device is on the volume that the firmware loaded GRUB from. So another
        // disk with a volume of this name does no harm.
        let script = out.with_extension("cfg");
        put(&script, BUILTIN_CFG.as_bytes())?;
        command.args(["-O", format, "-p", "/EFI/BOOT", "-d"]).arg(modules).arg("-o").arg(out);
        command.arg("-c").arg(&script).args(grub_modules());
        GRUB.run(&mut command, modules)?;
        fs::remove_file(&script).map_err(|source| Error::Write { path: script, source })
    }
}

/// Copies the files in `tree` into the folder `place` of `volume`, sorted by name: the order of
/// folders on the build machine is arbitrary.
fn fill(volume: &Path, tree: &Path, place: &str, epoch: u64) -> Result<(), Error> {
    let read = |source| Error::Read { path: tree.to_owned(), source };
    let entries = fs::read_dir(tree).map_err(read)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(read));
    let mut paths = paths.collect::<Result<Vec<PathBuf>, Error>>()?;
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let target = format!("{place}/{name}");
        if path.is_dir() {
            let mut make = MMD.command(epoch);
            MMD.run(make.arg("-i").arg(volume).arg(format!("::{target}")), &path)?;
            fill(volume, &path, &target, epoch)?;
        } else {
            let mut copy = MCOPY.command(epoch);
            // -Q: quit at the first error; -m: keep the file's time.
            copy.args(["-Q", "-m", "-i"]).arg(volume).arg(&path).arg(format!("::{target}"));
            MCOPY.run(&mut copy, &path)?;
        }
    }
    Ok(())
}

/// Returns the names of the modules that GRUB is built from.
fn grub_modules() -> impl Iterator<Item = &'static str> {
    let lines = GRUB_MODULES.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(str::split_whitespace)
}

/// Returns GRUB's environment block: `slots` are good and untried, other slots are absent.
fn grubenv(slots: &[(Slot, &Verity)]) -> Vec<u8> {
    let order: Vec<String> =
        slots.iter().map(|(slot, _)| slot.letter().to_ascii_uppercase().to_string()).collect();
    let mut block = format!("# GRUB Environment Block\nORDER={}\n", order.join(" "));
    for slot in [Slot::A, Slot::B] {
        let ok = u8::from(slots.iter().any(|(there, _)| *there == slot));
        let name = slot.letter().to_ascii_uppercase();
        block += &format!("{name}_OK={ok}\n{name}_TRY=0\n");
    }
    let mut block = block.into_bytes();
    block.resize(GRUBENV_BYTES, b'#');
    block
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    let made = fs::create_dir_all(folder).and_then(|()| fs::write(path, bytes));
    made.map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Sets the time of everything below `path` to `epoch`, folders after their contents.
fn touch(path: &Path, epoch: u64) -> Result<(), Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(read)?.is_dir() {
        for entry in fs::read_dir(path).map_err(read)? {
            touch(&entry.map_err(read)?.path(), epoch)?;
        }
    }
    let time = UNIX_EPOCH + Duration::from_secs(epoch);
    let touched = File::open(path).and_then(|file| file.set_modified(time));
    touched.map_err(|source| Error::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_block_has_grubs_size_and_says_what_is_there() {
        let verity = Verity { root_hash: [1; 32], salt: [2; 32], data_blocks: 10 };
        let block = grubenv(&[(Slot::A, &verity)]);
        assert_eq!(block.len(), GRUBENV_BYTES);
        let text = String::from_utf8(block).unwrap();
        let said = "# GRUB Environment Block\nORDER=A\nA_OK=1\nA_TRY=0\nB_OK=0\nB_TRY=0\n#";
        assert!(text.starts_with(said), "{text}");
        let both = String::from_utf8(grubenv(&[(Slot::B, &verity), (Slot::A, &verity)])).unwrap();
        assert!(both.contains("\nORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n#"), "{both}");
    }

    #[test]
    fn only_a_quick_image_skips_the_timer_check() {
        let verity = Verity { root_hash: [1; 32], salt: [2; 32], data_blocks: 10 };
        let loader = Loader::Made(PathBuf::new());
        for (arch, quick, skips) in [
            (Arch::X86_64, false, false),
            (Arch::X86_64, true, true),
            (Arch::Aarch64, false, false),
            // The argument exists only on x86.
            (Arch::Aarch64, true, false),
        ] {
            let kernel = Path::new("");
            let (loader, version) = (&loader, "1.0.0");
            let volume = BootVolume { arch, version, kernel, loader, slots: &[], quick };
            for slot in [Slot::A, Slot::B] {
                let (script, plain) =
                    (volume.boot_script(slot, &verity), verity.boot_script(arch, slot, version));
                assert_eq!(script == plain, !skips, "{arch} {quick}: {script}");
                let added = script.replace(" no_timer_check\n", "\n");
                assert_eq!((added == plain, script.lines().count()), (true, 2), "{script}");
                assert_eq!(Verity::version_in(&script), Some(version));
            }
        }
    }

    #[test]
    fn modules_are_named_one_by_one() {
        let names: Vec<&str> = grub_modules().collect();
        assert!(names.contains(&"part_gpt") && names.contains(&"loadenv"), "{names:?}");
        assert!(names.iter().all(|name| !name.contains('#')), "{names:?}");
    }
}
