use super::{Decoder, KEY_POWER, KEYBOARD, KeyChange, devices_with, has, key, named, names};
use crate::console::Key;

/// Events of a keyboard while Enter was held for a while: press, report, two repeats, release.
/// Recorded on a 64-bit little-endian machine.
const ENTER: [[u8; 24]; 7] = [
    event(4, 4, 28),
    event(1, 28, 1),
    event(0, 0, 0),
    event(1, 28, 2),
    event(1, 28, 2),
    event(1, 28, 0),
    event(0, 0, 0),
];

const fn event(kind: u8, code: u8, value: u8) -> [u8; 24] {
    let mut bytes =
        [0x5a, 0x17, 0x04, 0x6b, 0, 0, 0, 0, 0x21, 0x43, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes[16] = kind;
    bytes[18] = code;
    bytes[20] = value;
    bytes
}

#[test]
fn a_key_goes_down_and_up_once() {
    let whole = ENTER.concat();
    assert_eq!(Decoder::default().feed(&whole), [KeyChange::Down(28), KeyChange::Up(28)]);
}

#[test]
fn events_may_come_in_pieces() {
    let whole = ENTER.concat();
    for size in 1..whole.len() {
        let mut decoder = Decoder::default();
        let changes: Vec<KeyChange> =
            whole.chunks(size).flat_map(|piece| decoder.feed(piece)).collect();
        assert_eq!(changes, [KeyChange::Down(28), KeyChange::Up(28)], "pieces of {size}");
    }
}

#[test]
fn a_lost_event_is_told() {
    assert_eq!(Decoder::default().feed(&event(0, 3, 0)), [KeyChange::Lost]);
}

#[test]
fn keys_have_their_meaning() {
    let known = [("KEY_UP", 103), ("KEY_DOWN", 108), ("KEY_SELECT", 353), ("BTN_0", 256)];
    assert_eq!(known.map(|(name, _)| named(name)), known.map(|(_, code)| Some(code)));
    assert_eq!([named("KEY_A"), named("up"), named("")], [None; 3]);
    assert!(names().starts_with("KEY_ESC, ") && names().ends_with(", BTN_2"), "{}", names());
    let keys = [59, 68, 87, 88, 1, 16, 30, 50, 11, 12, 53];
    let typed: Vec<Key> = keys.into_iter().filter_map(key).collect();
    use Key::{Char, Escape, Function};
    let expected = [
        Function(1),
        Function(10),
        Function(11),
        Function(12),
        Escape,
        Char('q'),
        Char('a'),
        Char('m'),
        Char('0'),
        Char('-'),
        Char('/'),
    ];
    assert_eq!(typed, expected);
    assert_eq!(key(255), None);
    assert_eq!(key(u16::MAX), None);
}

#[test]
fn only_devices_with_our_keys_count() {
    let sys = tempfile::tempdir().unwrap();
    let keyboard = "402000000 3803078f800d001 feffffdfffefffff fffffffffffffffe";
    for (name, keys) in [("event10", keyboard), ("event2", "1 0 0 0 0 0"), ("event3", "10000 0")] {
        let folder = sys.path().join(name).join("device/capabilities");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("key"), keys).unwrap();
    }
    std::fs::create_dir_all(sys.path().join("mouse0")).unwrap();
    let found = devices_with(sys.path(), &KEYBOARD);
    assert_eq!(found, ["event10"].map(std::path::PathBuf::from));
    // The kernel's bitmap of a power button; the keyboard has the key too.
    let case = sys.path().join("event4/device/capabilities");
    std::fs::create_dir_all(&case).unwrap();
    std::fs::write(case.join("key"), "10000000000000 0\n").unwrap();
    let power = devices_with(sys.path(), &[KEY_POWER]);
    assert_eq!(power, ["event4", "event10"].map(std::path::PathBuf::from));
    assert_eq!(devices_with(&sys.path().join("none"), &KEYBOARD).len(), 0);
    assert!(has("1 0", 64) && !has("1 0", 65) && !has("", 5) && !has("x", 0));
}
