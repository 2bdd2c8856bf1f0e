//! Inserts kernel arguments at the placeholders of a medium, without changing the file.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::magic::MAGIC;
use crate::Error;

/// Arguments of one machine, padded to the length of the placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement(Box<[u8]>);

impl Replacement {
    /// Joins `arguments` with single spaces and pads them with spaces to the length of [`MAGIC`].
    ///
    /// # Errors
    /// The arguments are longer than [`MAGIC`] ([`Error::ArgumentsTooLong`]). Or an argument
    /// ([`Error::Argument`]) is not printable ASCII, or has a character that ends the command or
    /// the word for a boot loader that reads the line as a script, as GRUB does (GRUB manual,
    /// section 6.1).
    pub fn new<T: AsRef<str>>(arguments: &[T]) -> Result<Self, Error> {
        let mut text = String::new();
        for argument in arguments.iter().map(AsRef::as_ref).filter(|text| !text.is_empty()) {
            let ends = |c: char| !(c.is_ascii_graphic() || c == ' ') || ";&|<>$".contains(c);
            if argument.chars().any(ends) {
                let name = argument.split('=').next().unwrap_or_default();
                return Err(Error::Argument { name: name.escape_debug().take(100).collect() });
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(argument);
        }
        let length = text.len();
        if length > MAGIC.len() {
            return Err(Error::ArgumentsTooLong { length });
        }
        let mut bytes = text.into_bytes();
        bytes.resize(MAGIC.len(), b' ');
        Ok(Self(bytes.into()))
    }
}

/// Text to write at offsets of a file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Patch {
    places: Arc<[u64]>,
    text: Arc<[u8]>,
}

impl Patch {
    /// Writes `text` at each of `places`, which must ascend ([`super::places`]).
    pub fn new(places: Arc<[u64]>, text: Replacement) -> Self {
        Self { places, text: text.0.into() }
    }

    /// Patches `bytes`, which are the file's bytes from offset `at`.
    pub fn apply(&self, at: u64, bytes: &mut [u8]) {
        overlay(at, &self.places, &self.text, bytes);
    }

    /// Returns true if any of the `length` bytes at offset `at` of the file is changed.
    pub fn changes(&self, at: u64, length: usize) -> bool {
        let (end, text) = (at.saturating_add(length as u64), self.text.len() as u64);
        self.places.iter().any(|place| *place < end && at < place.saturating_add(text))
    }

    /// Returns a digest of the text, for an entity tag.
    pub fn digest(&self) -> String {
        stdx::hex(&Sha256::digest(&self.text)[..8])
    }
}

/// Writes `text` over `bytes` wherever one of `places` is in them. `at` is the file offset of the
/// first byte. Text outside of `bytes` is ignored; the call for the adjacent part writes it.
pub fn overlay(at: u64, places: &[u64], text: &[u8], bytes: &mut [u8]) {
    let end = at.saturating_add(bytes.len() as u64);
    for place in places {
        let (first, last) = (at.max(*place), end.min(place.saturating_add(text.len() as u64)));
        if first < last {
            // Each difference is at most the length of a slice.
            let (to, from) = ((first - at) as usize, (first - place) as usize);
            let length = (last - first) as usize;
            bytes[to..to + length].copy_from_slice(&text[from..from + length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::{MAGIC, Replacement, overlay};
    use crate::Error;

    #[test]
    fn arguments_are_padded_to_the_length_of_what_they_replace() {
        let text = Replacement::new(&["a=1", "", "b=2 c"]).unwrap().0;
        assert_eq!(text.len(), 1024);
        assert!(text.starts_with(b"a=1 b=2 c  "));
        assert!(text[9..].iter().all(|byte| *byte == b' '));
        Replacement::new(&["x".repeat(1024)]).unwrap();
    }

    #[test]
    fn refuses_what_would_not_fit_or_end_the_line() {
        let error = Replacement::new(&["x".repeat(1000), "y".repeat(24)]).unwrap_err();
        assert!(matches!(error, Error::ArgumentsTooLong { length: 1025 }), "{error}");
        for argument in ["a=1\nreboot", "a=1;reboot", "a=$x", "a=ü", "a=\0", "a=b&&c", "\t"] {
            let error = Replacement::new(&[argument]).unwrap_err();
            assert!(matches!(error, Error::Argument { .. }), "{argument:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn reads_cut_anywhere_add_up_to_the_patched_file(
            gaps in prop::collection::vec(0_usize..2000, 1..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let text = Replacement::new(&["worker_id=52:54:00:77:00:01"]).unwrap().0;
            let (mut file, mut places) = (Vec::new(), Vec::new());
            for gap in gaps {
                file.resize(file.len() + gap, b'.');
                places.push(file.len() as u64);
                file.extend(MAGIC.bytes());
            }
            let wanted = String::from_utf8(file.clone()).unwrap();
            let wanted = wanted.replace(MAGIC, std::str::from_utf8(&text).unwrap());
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(file.len())).collect();
            cuts.extend([0, file.len()]);
            cuts.sort_unstable();
            let mut read = Vec::new();
            for pair in cuts.windows(2) {
                let mut part = file[pair[0]..pair[1]].to_vec();
                overlay(pair[0] as u64, &places, &text, &mut part);
                read.extend(part);
            }
            assert_eq!(String::from_utf8(read).unwrap(), wanted);
        }
    }
}
