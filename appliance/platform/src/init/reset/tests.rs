use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::Host;
use super::{Disk, EraseTargets, Level, ResetRequests, Step, ask_at, erase, look, plan};
use crate::Error;
use crate::slots::{BYTES, BootVolume, Slot};

const KEYS: [&str; 2] = ["sealing.key", "pki/ca.key"];
const FILES: [&str; 11] = [
    "boot/box.toml",
    "boot/reset",
    "boot/tinbox/a/vmlinuz",
    "boot/tinbox/grubenv",
    "cache/media/agent.iso",
    "cache/sha256/ab/cd",
    "state/clock",
    "state/tinbox/objects.redb",
    "state/tinbox/owner.json",
    "state/tinbox/pki/ca.key",
    "state/tinbox/sealing.key",
];
const ENVIRONMENT: &str = "# GRUB Environment Block\nORDER=B A\nA_OK=1\nB_OK=1\nRESET=factory\n";

/// Temporary folders in place of the three volumes of a box.
struct Flashed {
    folder: tempfile::TempDir,
    /// True if the state volume of the test has space for a note.
    has_room: Cell<bool>,
}

impl Flashed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in FILES {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "factory\r\n").unwrap();
        }
        let mut block = ENVIRONMENT.as_bytes().to_vec();
        block.resize(BYTES, b'#');
        fs::write(folder.path().join("boot/tinbox/grubenv"), block).unwrap();
        Self { folder, has_room: Cell::new(true) }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        let name = path.strip_prefix(self.folder.path()).unwrap();
                        found.insert(name.to_string_lossy().into_owned());
                    }
                }
            }
        }
        found
    }

    /// Returns the requests that the next start finds.
    fn asked(&self) -> ResetRequests {
        let volume = BootVolume::at(&self.at("boot"));
        look(&self.at("state"), &self.at("boot"), &volume, &mut Vec::new())
    }

    /// Runs a factory reset with a power cut after `changes` changes.
    fn reset(&self, changes: usize) -> Result<(), Error> {
        let host = Host { volume: BootVolume::at(&self.at("boot")), running: Slot::A };
        let (state, cache) = (self.at("state"), self.at("cache"));
        let places = EraseTargets { state: &state, cache: &cache, keys: &KEYS };
        let mut disk = Cut { host, left: Cell::new(changes), room: self.has_room.get() };
        let erased = erase(&places, &mut disk);
        self.has_room.set(disk.room);
        erased
    }
}

/// Disk with a power cut after a number of changes, and with a state volume that may be full.
struct Cut {
    host: Host,
    left: Cell<usize>,
    room: bool,
}

impl Cut {
    fn power(&self) -> io::Result<()> {
        let left = self.left.get().checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        self.left.set(left);
        Ok(())
    }

    fn all(&self) -> Result<(), Error> {
        self.power().map_err(Error::io("go on without power"))
    }
}

impl Disk for Cut {
    fn list(&self, folder: &Path) -> io::Result<Vec<(PathBuf, bool)>> {
        let mut found = self.host.list(folder)?;
        found.sort();
        Ok(found)
    }
    fn note(&mut self, state: &Path, level: Level) -> io::Result<()> {
        self.power()?;
        if !self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.host.note(state, level)
    }
    fn overwrite(&mut self, file: &Path) -> io::Result<()> {
        self.power()?;
        self.host.overwrite(file)
    }
    fn remove_file(&mut self, file: &Path) -> io::Result<()> {
        self.power()?;
        self.room |= file.ends_with("objects.redb");
        self.host.remove_file(file)
    }
    fn remove_folder(&mut self, folder: &Path) -> io::Result<()> {
        self.power()?;
        self.host.remove_folder(folder)
    }
    fn sync(&mut self, folder: &Path) -> io::Result<()> {
        self.power()?;
        self.host.sync(folder)
    }
    fn trim(&mut self, _: &Path) {}
    fn answer(&mut self) -> Result<(), Error> {
        self.all()?;
        self.host.answer()
    }
    fn unset(&mut self) -> Result<(), Error> {
        self.all()?;
        self.host.unset()
    }
}

fn erased() -> BTreeSet<String> {
    ["boot/tinbox/a/vmlinuz", "boot/tinbox/grubenv", "state/clock"].map(str::to_owned).into()
}

#[test]
fn a_factory_reset_keeps_the_systems_and_nothing_of_the_owner() {
    let it = Flashed::new();
    it.reset(usize::MAX).unwrap();
    assert_eq!(it.files(), erased());
    assert_eq!(it.asked(), ResetRequests::default());
    let loader = BootVolume::at(&it.at("boot")).read().unwrap();
    assert_eq!((loader.first(), loader.whole(Slot::A)), (Some(Slot::B), true));
    it.reset(usize::MAX).expect("there is nothing left to erase");
    assert_eq!(it.files(), erased());
}

#[test]
fn whenever_the_power_goes_the_next_start_goes_on_and_no_secret_outlives_its_key() {
    cut_at_each_change(true);
}

#[test]
fn a_full_disk_is_erased_without_a_note_whenever_the_power_goes() {
    cut_at_each_change(false);
}

fn cut_at_each_change(has_room: bool) {
    let mut cuts = 0;
    for changes in 0.. {
        let it = Flashed::new();
        it.has_room.set(has_room);
        let cut = it.reset(changes).is_err();
        let there = it.files();
        let whole = |name: &str| fs::read(it.at(name)).is_ok_and(|key| key.starts_with(b"factory"));
        let keys = KEYS.map(|key| whole(&format!("state/tinbox/{key}")));
        if keys[0] {
            let lost: Vec<_> = FILES.into_iter().filter(|name| !there.contains(*name)).collect();
            assert!(lost.is_empty() || lost == ["boot/reset"], "{changes}: {lost:?} went first");
        }
        if !there.contains("state/tinbox/objects.redb") {
            assert_eq!(keys, [false; 2], "{changes}: the keys outlived the store");
        }
        if !cut {
            break;
        }
        cuts += 1;
        let next = it.asked().level().map(|(level, _)| level);
        assert!(next == Some(Level::Factory) || there == erased(), "{changes}: {next:?} {there:?}");
        it.reset(usize::MAX).unwrap();
        assert_eq!(it.files(), erased(), "{changes}");
        assert_eq!(it.asked(), ResetRequests::default(), "{changes}: it would begin anew for ever");
    }
    assert!(cuts > 20, "only {cuts} moments were tried");
}

#[test]
fn a_wish_that_finds_no_room_is_written_on_the_boot_volume() {
    let it = Flashed::new();
    let volume = BootVolume::at(&it.at("boot"));
    let mut variables = volume.read().unwrap();
    variables.forget_wish();
    fs::write(it.at("boot/tinbox/grubenv"), variables.block().unwrap()).unwrap();
    fs::remove_file(it.at("boot/reset")).unwrap();
    // The first case has no state volume, the second one has a volume that takes no note.
    for (state, level) in [(None, Level::Safe), (Some(it.at("gone")), Level::Factory)] {
        ask_at(state.as_deref(), &volume, Slot::A, level).unwrap();
        assert_eq!(it.asked(), ResetRequests { note: Some(level), ..ResetRequests::default() });
    }
    let host = Host { volume, running: Slot::A };
    { host }.answer().unwrap();
    assert_eq!(it.asked(), ResetRequests::default());
    // A reset that has begun continues, regardless of later requests.
    let (state, volume) = (it.at("state"), BootVolume::at(&it.at("boot")));
    ask_at(Some(&state), &volume, Slot::A, Level::Factory).unwrap();
    ask_at(None, &volume, Slot::A, Level::Safe).unwrap();
    assert_eq!(it.asked().note, Some(Level::Factory));
}

#[test]
fn the_key_that_opens_the_most_goes_first() {
    let places =
        EraseTargets { state: Path::new("/state"), cache: Path::new("/cache"), keys: &KEYS };
    let steps = plan(&places);
    assert_eq!(steps[..2], [Step::Note, Step::Answer]);
    assert_eq!(steps[2], Step::Shred("/state/tinbox/sealing.key".into()));
    assert_eq!(steps.last(), Some(&Step::Close));
}

#[test]
fn what_asks_is_read_as_people_write_it() {
    for (text, level) in [
        ("safe", Some(Level::Safe)),
        ("factory\r\n", Some(Level::Factory)),
        ("\u{feff}Factory \r\n\r\n", Some(Level::Factory)),
        ("", None),
        ("factory reset", None),
    ] {
        assert_eq!(Level::read(text.as_bytes()).ok(), level, "{text:?}");
    }
    let message = Level::read(b"yes").unwrap_err();
    assert!(message.starts_with("expected \"safe\" or \"factory\", found \"yes\""), "{message}");
}

#[test]
fn the_level_that_goes_further_is_meant() {
    use Level::{Factory, Safe};
    for (note, menu, file, meant, by) in [
        (None, None, None, None, ""),
        (Some(Safe), None, None, Some(Safe), "over its API"),
        (Some(Safe), Some(Factory), None, Some(Factory), "boot menu"),
        (None, None, Some(Safe), Some(Safe), "volume TINBOX"),
        (Some(Factory), Some(Safe), Some(Safe), Some(Factory), "over its API"),
    ] {
        let found = ResetRequests { note, menu, file }.level();
        assert_eq!(found.map(|(level, _)| level), meant);
        assert!(found.is_none_or(|(_, why)| why.contains(by)), "{found:?}");
    }
}

#[test]
fn a_file_that_asks_for_something_else_is_said_and_left_alone() {
    let it = Flashed::new();
    for name in ["boot/reset", "boot/tinbox/grubenv"] {
        fs::remove_file(it.at(name)).unwrap();
    }
    fs::write(it.at("boot/reset.txt"), "please").unwrap();
    let mut trouble = Vec::new();
    let volume = BootVolume::at(&it.at("boot"));
    let asked = look(&it.at("state"), &it.at("boot"), &volume, &mut trouble);
    assert_eq!(asked, ResetRequests::default());
    assert_eq!(trouble.len(), 1);
    assert!(trouble[0].contains("reset.txt") && trouble[0].contains("\"please\""), "{trouble:?}");
}
