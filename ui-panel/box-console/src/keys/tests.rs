use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use panel::buttons::{KeyChange, named};
use tokio::sync::mpsc;

use super::{CHANGES_MAX, KeyFilter, follow, listen};

/// Bytes that the kernel writes for a key (`struct input_event`).
fn event(code: u16, value: i32) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[16..18].copy_from_slice(&1_u16.to_ne_bytes());
    bytes[18..20].copy_from_slice(&code.to_ne_bytes());
    bytes[20..].copy_from_slice(&value.to_ne_bytes());
    bytes
}

/// Folders like `/sys/class/input` and `/dev/input`.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("dev")).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    /// Adds a device `name` with the keys `codes`. Its node is a pipe, which blocks as a device
    /// does.
    fn plug(&self, event: &str, name: &str, codes: &[u16]) {
        let device = self.path("sys").join(event).join("device");
        fs::create_dir_all(device.join("capabilities")).unwrap();
        fs::write(device.join("name"), format!("{name}\n")).unwrap();
        let mut words = [0_u64; 12];
        codes.iter().for_each(|code| words[usize::from(code / 64)] |= 1 << (code % 64));
        let words: Vec<_> = words.iter().rev().map(|word| format!("{word:x}")).collect();
        let made = std::process::Command::new("mkfifo").arg(self.path("dev").join(event)).status();
        assert!(made.unwrap().success());
        // This file is written last, because it is read last.
        fs::write(device.join("capabilities/key"), words.join(" ")).unwrap();
    }

    fn wanted(&self, codes: &[u16], device: Option<&str>) -> KeyFilter {
        KeyFilter {
            sys: self.path("sys"),
            dev: self.path("dev"),
            codes: codes.to_vec(),
            device: device.map(str::to_owned),
        }
    }
}

/// Opens the kernel's end of a device; waits until a reader opens the other end.
async fn opened(path: &Path) -> File {
    let path = path.to_owned();
    let open = move || File::options().write(true).open(path).unwrap();
    tokio::task::spawn_blocking(open).await.unwrap()
}

#[tokio::test]
async fn keys_of_devices_are_heard_until_they_are_unplugged() {
    let machine = Machine::new();
    let [up, enter] = ["KEY_UP", "KEY_ENTER"].map(|name| named(name).unwrap());
    machine.plug("event3", "gpio-keys", &[up, enter]);
    machine.plug("event4", "some keyboard", &[up, 30]);
    machine.plug("event5", "gpio-keys", &[116]);
    let (sender, mut changes) = mpsc::channel(CHANGES_MAX);
    let began = Instant::now();
    let following = tokio::spawn(follow(machine.wanted(&[up], Some("gpio-keys")), sender));
    let mut device = opened(&machine.path("dev/event3")).await;
    let bytes = [event(up, 1), event(up, 2), event(up, 0)].concat();
    device.write_all(&bytes[..30]).unwrap();
    device.write_all(&bytes[30..]).unwrap();
    let (change, at) = changes.recv().await.unwrap();
    assert_eq!(change, KeyChange::Down(up));
    assert!(at >= began && at.elapsed() < began.elapsed());
    assert_eq!(changes.recv().await.unwrap().0, KeyChange::Up(up));
    drop(device);
    assert_eq!(changes.recv().await.unwrap().0, KeyChange::Lost);
    // The device is plugged in and read again: opening it waits for the reader.
    let mut device = opened(&machine.path("dev/event3")).await;
    device.write_all(&event(enter, 1)).unwrap();
    assert_eq!(changes.recv().await.unwrap().0, KeyChange::Down(enter));
    following.abort();
}

#[test]
fn a_full_queue_says_that_keys_were_lost() {
    let enter = named("KEY_ENTER").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    // The key is pressed and released more often than the queue has space.
    let pressed = [event(enter, 1), event(enter, 0)].concat();
    fs::write(file.path(), pressed.repeat(21)).unwrap();
    let (to, mut changes) = mpsc::channel(1);
    let device = File::open(file.path()).unwrap();
    let begun = to.clone();
    let listener = std::thread::spawn(move || listen(device, Path::new("event3"), &to));
    while begun.capacity() > 0 {
        std::thread::yield_now();
    }
    drop(begun);
    let mut received = Vec::new();
    while let Some((change, _)) = changes.blocking_recv() {
        received.push(change);
    }
    listener.join().unwrap();
    assert_eq!(received.pop(), Some(KeyChange::Lost), "the end of the device");
    assert!(received.len() == 42 || received.last() == Some(&KeyChange::Lost), "{received:?}");
}
