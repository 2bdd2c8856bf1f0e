//! The boot volume: a FAT file system that the firmware and a person's own machine both read.
//!
//! ```text
//! EFI/BOOT/BOOTX64.EFI     GRUB, whose only script is the next file (BOOTAA64.EFI on ARM)
//! tinbox/grub.cfg          chooses the slot
//! tinbox/grubenv           what it chooses by: 1024 bytes, rewritten in place
//! tinbox/a/vmlinuz         slot A's kernel
//! tinbox/a/boot.cfg        GRUB's command that loads it (`platform::bundle::Verity::boot_script`)
//! tinbox/b/…               slot B's
//! box.toml                 put there by the owner, if at all
//! reset                    the same: `safe` or `factory`, for the next start (`platform::reset`)
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
/// The volume's serial number: part of what must not differ between two builds.
const SERIAL: &str = "71B0B0C5";
/// Chooses the slot.
const GRUB_CFG: &str = include_str!("../../boot/grub.cfg");
/// The script inside GRUB, which starts that one.
const BUILTIN_CFG: &str = include_str!("../../boot/builtin.cfg");
/// What GRUB needs for that; nothing of it is read from the disk at run time.
const GRUB_MODULES: &str = include_str!("../../boot/grub-modules");
/// Bytes of GRUB's environment block, which never changes its size.
const GRUBENV_BYTES: usize = 1024;
/// Kernel argument of quick images, which tests boot in QEMU: on a busy computer QEMU delivers
/// timer interrupts so late that Linux panics with "IO-APIC + timer doesn't work", and GRUB counts
/// a start. A slot that an update filled goes without: the running system writes that slot's
/// `boot.cfg`.
const EMULATED: &str = "no_timer_check";

/// Where GRUB comes from.
#[derive(Debug, Clone)]
pub enum Loader {
    /// Made already, for this firmware and with these modules.
    Made(PathBuf),
    /// From a folder of modules, `/usr/lib/grub/x86_64-efi`.
    Modules(PathBuf),
}

/// What goes onto the volume.
#[derive(Debug)]
pub struct BootVolume<'a> {
    /// The processor it is for.
    pub arch: Arch,
    /// The release in both slots.
    pub version: &'a str,
    /// Both slots' kernel.
    pub kernel: &'a Path,
    /// GRUB.
    pub loader: &'a Loader,
    /// The slots that hold a system, the one to start with first.
    pub slots: &'a [(Slot, &'a Verity)],
    /// Quick image: not for release, and often booted in an emulator.
    pub quick: bool,
}

impl BootVolume<'_> {
    /// Makes it in `folder`; its path.
    ///
    /// # Errors
    /// Says which input or program failed.
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
        // A prefix without a device is on the volume that the firmware loaded GRUB from, so another
        // disk with a volume of this name does no harm.
        let script = out.with_extension("cfg");
        put(&script, BUILTIN_CFG.as_bytes())?;
        command.args(["-O", format, "-p", "/EFI/BOOT", "-d"]).arg(modules).arg("-o").arg(out);
        command.arg("-c").arg(&script).args(grub_modules());
        GRUB.run(&mut command, modules)?;
        fs::remove_file(&script).map_err(|source| Error::Write { path: script, source })
    }
}

/// Copies what is in `tree` into the folder `place` of `volume`, in the order of the names: that of
/// the building machine's own folders is its own.
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
            // Quickly, and with the file's own time.
            copy.args(["-Q", "-m", "-i"]).arg(volume).arg(&path).arg(format!("::{target}"));
            MCOPY.run(&mut copy, &path)?;
        }
    }
    Ok(())
}

/// Modules that GRUB is made of, by name.
fn grub_modules() -> impl Iterator<Item = &'static str> {
    let lines = GRUB_MODULES.lines().map(|line| line.split('#').next().unwrap_or_default());
    lines.flat_map(str::split_whitespace)
}

/// GRUB's environment block: `slots` are good and untried, the others are not there.
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

/// Gives everything below `path` the time `epoch`, folders after what is in them.
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
            // The argument is x86's own.
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
