//! Test with a thousand power cuts while a slot is filled, all on one disk. A slot that the boot
//! loader may start must never hold half a release. The power cuts of `tests/firmware` test this
//! too, and add the kernel's FAT, a disk cache and a whole box.
//!
//! [`Filling`] runs unchanged. The test blocks a step with an obstacle at its path. The test then
//! writes the part of the file that a power cut would leave.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::super::{BYTES, BootVolume, Environment, Slot};
use super::Filling;
use crate::bundle::{Arch, Content, Manifest, Part, Verity};

/// Number of pieces of a root, and number of bytes of a piece.
const PIECES: usize = 16;
const PIECE: usize = 512;
const CASES: u32 = 40;
const CUTS_PER_CASE: usize = 25;

/// Step of the installation during which the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Step while the root is written: the number of written pieces, and a bit mask of pieces that
    /// the disk cache loses.
    Root(usize, u32),
    /// Step after the root was read back, before the kernel is written.
    Folder,
    /// Step while the kernel is written.
    Kernel(FileRemains),
    /// Step while the boot script is written, after the complete kernel.
    Script(FileRemains),
    /// Step after the complete system is written, before the boot loader's variables change.
    Variables,
    /// Step after the variables name the new system. The flag is true if the system works.
    Told(bool),
}

/// Content of a file after a power cut during its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileRemains {
    Old,
    Nothing,
    Empty,
    Half,
    New,
}

fn steps() -> impl Strategy<Value = Step> {
    use FileRemains::{Empty, Half, New, Nothing, Old};
    let left = || prop::sample::select(vec![Old, Nothing, Empty, Half, New]);
    prop_oneof![
        3 => (0..=PIECES, any::<u32>()).prop_map(|(pieces, lost)| Step::Root(pieces, lost)),
        1 => Just(Step::Folder),
        2 => left().prop_map(Step::Kernel),
        2 => left().prop_map(Step::Script),
        1 => Just(Step::Variables),
        2 => any::<bool>().prop_map(Step::Told),
    ]
}

fn kernel(release: u8) -> Vec<u8> {
    vec![release; 3000]
}

fn root(release: u8) -> Vec<u8> {
    (0..PIECES).flat_map(|piece| [release ^ ((piece as u8) << 4); PIECE]).collect()
}

fn manifest(release: u8) -> Manifest {
    let part = |content, bytes: &[u8]| {
        let (size, sum) = (bytes.len() as u64, Sha256::digest(bytes).into());
        Part { content, size, sum, chunks: Vec::new() }
    };
    let verity = Verity { root_hash: [release; 32], salt: [2; 32], data_blocks: PIECES as u64 };
    let parts = vec![part(Content::Kernel, &kernel(release)), part(Content::Root, &root(release))];
    Manifest { version: format!("9.{release}.0"), arch: Arch::OWN, built: 0, verity, parts }
}

fn script(release: u8, slot: Slot) -> String {
    let Manifest { version, verity, .. } = manifest(release);
    verity.boot_script(Arch::OWN, slot, &version)
}

/// Disk of a box that runs from one slot and fills the other one.
struct Disk {
    folder: TempDir,
    volume: BootVolume,
    running: Slot,
    releases: u8,
}

impl Disk {
    /// Creates a disk with one release in both slots.
    fn flashed() -> Self {
        // A memory file system, because the test syncs thousands of small files.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let volume = BootVolume::at(folder.path());
        let disk = Self { folder, volume, running: Slot::A, releases: 1 };
        let mut loader = Environment::mended(Slot::A);
        loader.mark_good(Slot::B);
        for slot in [Slot::A, Slot::B] {
            fs::create_dir_all(disk.file(slot, "")).unwrap();
            fs::write(disk.file(slot, "vmlinuz"), kernel(0)).unwrap();
            fs::write(disk.file(slot, "boot.cfg"), script(0, slot)).unwrap();
            fs::write(disk.root(slot), root(0)).unwrap();
        }
        fs::write(disk.variables(), loader.block().unwrap()).unwrap();
        disk
    }

    fn file(&self, slot: Slot, name: &str) -> PathBuf {
        self.folder.path().join("tinbox").join(slot.letter().to_string()).join(name)
    }

    fn root(&self, slot: Slot) -> PathBuf {
        self.folder.path().join(format!("root-{}", slot.letter()))
    }

    fn variables(&self) -> PathBuf {
        self.folder.path().join("tinbox/grubenv")
    }

    fn block(&self) -> Vec<u8> {
        fs::read(self.variables()).unwrap()
    }

    /// Fills the other slot until the power fails at `step`.
    fn cut(&mut self, step: Step) {
        let slot = self.running.other();
        let release = self.releases;
        self.releases += 1;
        let (old_root, before) = (fs::read(self.root(slot)).unwrap(), self.block());
        let volume = self.volume.clone();
        let filling = Filling::of(volume, self.running, manifest(release), &self.root(slot));
        let mut filling = filling.unwrap();
        half_written(&before, &self.block());
        assert!(!self.volume.read().unwrap().whole(slot), "not a system from the first byte");

        let pieces = if let Step::Root(pieces, _) = step { pieces } else { PIECES };
        let new_root = root(release);
        for piece in 0..pieces {
            let at = piece * PIECE;
            filling.write(Content::Root, at as u64, &new_root[at..at + PIECE]).unwrap();
        }
        filling.write(Content::Kernel, 0, &kernel(release)).unwrap();
        match step {
            Step::Root(_, lost) => {
                drop(filling);
                let mut found = fs::read(self.root(slot)).unwrap();
                for piece in (0..PIECES).filter(|piece| (lost >> piece) & 1 == 1) {
                    let lost = piece * PIECE..(piece + 1) * PIECE;
                    found[lost.clone()].copy_from_slice(&old_root[lost]);
                }
                fs::write(self.root(slot), found).unwrap();
            }
            Step::Folder => {
                let (place, away) = (self.file(slot, ""), self.folder.path().join("away"));
                let place = place.parent().unwrap().join(slot.letter().to_string());
                fs::rename(&place, &away).unwrap();
                fs::write(&place, "").unwrap();
                filling.finish().unwrap_err();
                fs::remove_file(&place).unwrap();
                fs::rename(&away, &place).unwrap();
            }
            Step::Kernel(left) => {
                stopped(filling, &self.file(slot, "vmlinuz"), left, &kernel(release))
            }
            Step::Script(left) => {
                stopped(
                    filling,
                    &self.file(slot, "boot.cfg"),
                    left,
                    script(release, slot).as_bytes(),
                );
            }
            Step::Variables => {
                let block = self.block();
                fs::write(self.variables(), "").unwrap();
                filling.finish().unwrap_err();
                fs::write(self.variables(), block).unwrap();
            }
            Step::Told(works) => {
                let before = self.block();
                filling.finish().unwrap();
                half_written(&before, &self.block());
                self.ends(slot, works);
            }
        }
    }

    /// Starts the new system in `slot`, and confirms or rejects it.
    fn ends(&mut self, slot: Slot, works: bool) {
        let loader = self.volume.read().unwrap();
        assert_eq!((loader.first(), loader.trial()), (Some(slot), Some(slot)));
        self.starts_whole_releases();
        if works {
            self.running = slot;
        }
        let (running, before) = (self.running, self.block());
        self.volume
            .change(running, |loader| {
                if works {
                    loader.mark_good(slot)
                } else {
                    loader.mark_bad(slot)
                }
                loader.prefer(running);
                loader.end_trial();
            })
            .unwrap();
        half_written(&before, &self.block());
    }

    /// Checks that each bootable slot holds kernel, script and root of one release, and that the
    /// running slot is bootable.
    fn starts_whole_releases(&self) {
        let loader = self.volume.read().unwrap();
        assert!(loader.whole(self.running), "{loader:?}");
        for slot in [Slot::A, Slot::B].into_iter().filter(|slot| loader.whole(*slot)) {
            let version = self.volume.version(slot).unwrap();
            let release: u8 = version.split('.').nth(1).unwrap().parse().unwrap();
            let text = fs::read_to_string(self.file(slot, "boot.cfg")).unwrap();
            assert_eq!(text, script(release, slot));
            let is = |path: &Path, bytes: Vec<u8>| fs::read(path).unwrap() == bytes;
            assert!(is(&self.file(slot, "vmlinuz"), kernel(release)), "{slot:?} {version}");
            assert!(is(&self.root(slot), root(release)), "{slot:?} {version}");
        }
    }
}

/// Interrupts the write of the file `path`, and leaves `left` of the content `new`.
fn stopped(filling: Filling, path: &Path, left: FileRemains, new: &[u8]) {
    let old = fs::read(path).ok();
    let _ = fs::remove_file(path);
    fs::create_dir(path).unwrap();
    filling.finish().unwrap_err();
    fs::remove_dir(path).unwrap();
    let content = match left {
        FileRemains::Old => old.as_deref(),
        FileRemains::Nothing => None,
        FileRemains::Empty => Some(&new[..0]),
        FileRemains::Half => Some(&new[..new.len() / 2]),
        FileRemains::New => Some(new),
    };
    content.into_iter().for_each(|content| fs::write(path, content).unwrap());
}

/// Checks that a mixture of the sectors of two blocks equals one of the blocks. A disk writes a
/// sector completely or not at all.
fn half_written(before: &[u8], after: &[u8]) {
    assert_eq!((before.len(), after.len()), (BYTES, BYTES));
    let [before_is, after_is] = [before, after].map(|block| Environment::parse(block).unwrap());
    for (first, second) in [(before, after), (after, before)] {
        let mixture = [&first[..BYTES / 2], &second[BYTES / 2..]].concat();
        let mixture = Environment::parse(&mixture).unwrap();
        assert!(mixture == before_is || mixture == after_is, "{mixture:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn no_cut_leaves_half_a_release_to_start(steps in vec(steps(), CUTS_PER_CASE)) {
        let mut disk = Disk::flashed();
        for step in steps {
            disk.cut(step);
            disk.starts_whole_releases();
        }
        // After all power cuts, a complete update must still work.
        disk.cut(Step::Told(true));
        disk.starts_whole_releases();
        prop_assert_eq!(disk.volume.read().unwrap().first(), Some(disk.running));
    }
}
