//! Decoding of key events from the kernel: the panel's buttons (gpio-keys) and keyboards.
//!
//! Takes bytes of `/dev/input/event*` in pieces of any length, and returns key changes. Opens no
//! device; [`devices_with`] finds the devices to open.

use std::path::{Path, PathBuf};

use crate::console::Key;

/// Size of `struct input_event` with a 64-bit `long`: two longs of time, then type, code and value.
const EVENT_BYTES: usize = 24;
const EV_SYN: u16 = 0;
const EV_KEY: u16 = 1;
const SYN_DROPPED: u16 = 3;
/// Maximum number of devices that are checked.
const DEVICES_MAX: usize = 64;

const KEY_ESC: u16 = 1;
const KEY_BACKSPACE: u16 = 14;
const KEY_ENTER: u16 = 28;
const KEY_F1: u16 = 59;
const KEY_F10: u16 = 68;
const KEY_F11: u16 = 87;
const KEY_F12: u16 = 88;
const KEY_UP: u16 = 103;
const KEY_DOWN: u16 = 108;
/// Key code of a case's power button and of a keyboard's power key.
pub const KEY_POWER: u16 = 116;
const BTN_0: u16 = 0x100;
const KEY_SELECT: u16 = 0x161;

/// Change of a key's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyChange {
    /// The key was pressed.
    Down(u16),
    /// The key was released.
    Up(u16),
    /// The kernel dropped events: pressed keys may have been released.
    Lost,
}

/// Decoder from bytes of an input device to key changes.
#[derive(Debug, Default)]
pub struct Decoder {
    rest: Vec<u8>,
}

impl Decoder {
    /// Returns the changes that `bytes` complete. Repeats of a held key are not changes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<KeyChange> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() / EVENT_BYTES * EVENT_BYTES;
        let events: Vec<u8> = self.rest.drain(..whole).collect();
        events.chunks_exact(EVENT_BYTES).filter_map(change).collect()
    }
}

fn change(event: &[u8]) -> Option<KeyChange> {
    let half = |at: usize| Some(u16::from_ne_bytes(event.get(at..at + 2)?.try_into().ok()?));
    let value = i32::from_ne_bytes(event.get(20..24)?.try_into().ok()?);
    match (half(16)?, half(18)?, value) {
        (EV_KEY, code, 0) => Some(KeyChange::Up(code)),
        (EV_KEY, code, 1) => Some(KeyChange::Down(code)),
        (EV_SYN, SYN_DROPPED, _) => Some(KeyChange::Lost),
        _ => None,
    }
}

/// Keys that can be configured as panel buttons, by the kernel's names
/// (`linux/input-event-codes.h`).
const NAMED: [(&str, u16); 36] = [
    ("KEY_ESC", KEY_ESC),
    ("KEY_BACKSPACE", KEY_BACKSPACE),
    ("KEY_TAB", 15),
    ("KEY_ENTER", KEY_ENTER),
    ("KEY_SPACE", 57),
    ("KEY_F1", KEY_F1),
    ("KEY_F2", 60),
    ("KEY_F3", 61),
    ("KEY_F4", 62),
    ("KEY_F5", 63),
    ("KEY_F6", 64),
    ("KEY_F7", 65),
    ("KEY_F8", 66),
    ("KEY_F9", 67),
    ("KEY_F10", KEY_F10),
    ("KEY_F11", KEY_F11),
    ("KEY_F12", KEY_F12),
    ("KEY_HOME", 102),
    ("KEY_UP", KEY_UP),
    ("KEY_PAGEUP", 104),
    ("KEY_LEFT", 105),
    ("KEY_RIGHT", 106),
    ("KEY_END", 107),
    ("KEY_DOWN", KEY_DOWN),
    ("KEY_PAGEDOWN", 109),
    ("KEY_VOLUMEDOWN", 114),
    ("KEY_VOLUMEUP", 115),
    ("KEY_MENU", 139),
    ("KEY_SETUP", 141),
    ("KEY_BACK", 158),
    ("KEY_OK", 0x160),
    ("KEY_SELECT", KEY_SELECT),
    ("KEY_RESTART", 0x198),
    ("BTN_0", BTN_0),
    ("BTN_1", 0x101),
    ("BTN_2", 0x102),
];

/// Returns the code of the key with this kernel name; `None` if the key cannot be a button.
pub fn named(name: &str) -> Option<u16> {
    NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, code)| code)
}

/// Returns the names that [`named`] accepts, for an error message.
pub fn names() -> String {
    NAMED.map(|(name, _)| name).join(", ")
}

/// Converts a key code to a key of the console; `None` for a key that the console does not use.
/// Letters and digits are included for the filter and for the name of the box.
pub fn key(code: u16) -> Option<Key> {
    const ROWS: [(u16, &str); 6] = [
        (2, "1234567890-"),
        (16, "qwertyuiop"),
        (30, "asdfghjkl"),
        (44, "zxcvbnm"),
        (52, "."),
        (53, "/"),
    ];
    match code {
        KEY_ESC => return Some(Key::Escape),
        KEY_BACKSPACE => return Some(Key::Backspace),
        KEY_ENTER => return Some(Key::Enter),
        KEY_UP => return Some(Key::Up),
        KEY_DOWN => return Some(Key::Down),
        KEY_F11 => return Some(Key::Function(11)),
        KEY_F12 => return Some(Key::Function(12)),
        KEY_F1..=KEY_F10 => return u8::try_from(code - KEY_F1 + 1).ok().map(Key::Function),
        _ => {}
    }
    ROWS.into_iter().find_map(|(first, row)| {
        let at = code.checked_sub(first)?;
        row.chars().nth(usize::from(at)).map(Key::Char)
    })
}

/// Key codes that identify a keyboard for the console.
pub const KEYBOARD: [u16; 3] = [KEY_UP, KEY_DOWN, KEY_ENTER];

/// Returns the devices below `sys` (`/sys/class/input`) with at least one of the keys `codes`, as
/// names below `/dev/input`, sorted by number.
pub fn devices_with(sys: &Path, codes: &[u16]) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    let Ok(entries) = std::fs::read_dir(sys) else { return Vec::new() };
    for entry in entries.flatten().take(DEVICES_MAX) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("event").and_then(|number| number.parse().ok());
        let Some(number) = number else { continue };
        let keys = entry.path().join("device/capabilities/key");
        let Ok(keys) = std::fs::read_to_string(keys) else { continue };
        if codes.iter().any(|code| has(&keys, *code)) {
            found.push((number, PathBuf::from(name)));
        }
    }
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}

/// Returns true if bit `code` is set in a kernel bitmap: 64-bit hexadecimal words, highest first.
fn has(bitmap: &str, code: u16) -> bool {
    let word = bitmap.split_whitespace().rev().nth(usize::from(code / 64));
    let word = word.and_then(|word| u64::from_str_radix(word, 16).ok()).unwrap_or(0);
    word >> (code % 64) & 1 == 1
}

#[cfg(test)]
mod tests;
