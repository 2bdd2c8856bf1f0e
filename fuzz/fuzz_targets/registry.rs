//! Answers of an image registry, and references in workflows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use artifact_cache::registry::{Challenge, Reference, file_of};

fuzz_target!(|bytes: &[u8]| {
    let _ = file_of(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Challenge::parse(text);
    let _ = Reference::parse(text);
});
