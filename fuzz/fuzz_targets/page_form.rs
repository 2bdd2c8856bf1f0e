//! Fields and files of the pages' forms: public SSH keys, and the first bytes of an uploaded image.

#![no_main]

use fuzz::Input;
use image_format::Format;
use libfuzzer_sys::fuzz_target;

/// Checks that accepted keys are accepted again, one a line, as they were stored.
fn keys(text: &str) {
    if let Ok(keys) = public_key::lines(text) {
        assert_eq!(public_key::lines(&keys.join("\n")), Ok(keys));
    }
}

/// Checks that a disk is what the agent would decode.
fn image(head: &[u8]) {
    if let Ok(format) = Format::of_disk(head) {
        assert_eq!(Format::detect(head), Ok(format));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    match input.byte() % 2 {
        0 => keys(&String::from_utf8_lossy(input.0)),
        _ => image(input.0),
    }
});
