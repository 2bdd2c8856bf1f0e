//! Backups: reading any file ends, in bounded memory, and gives the same result twice. A public
//! key that can be parsed is written as the same text.

#![no_main]

use backup::{Key, Reader};
use libfuzzer_sys::fuzz_target;
use stdx::Secret;

const OWN: &str = "1.4.0";
/// Example identity of the age specification.
const SECRET: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

fn read(data: &[u8], key: Option<&Key>) -> Result<usize, String> {
    let mut reader = Reader::open(data, key, OWN).map_err(|error| error.to_string())?;
    let mut parts = 0;
    while reader.next_part().map_err(|error| error.to_string())?.is_some() {
        parts += 1;
    }
    Ok(parts)
}

fuzz_target!(|data: &[u8]| {
    // An input with a work factor for scrypt would only take the fuzzer's time.
    let hashes = data.windows(10).any(|window| window == b"-> scrypt ");
    let given = match hashes {
        true => None,
        false => Key::given(Secret::from(SECRET)).ok(),
    };
    assert_eq!(read(data, given.as_ref()), read(data, given.as_ref()));
    if let Ok(text) = std::str::from_utf8(data) {
        if let Ok(recipient) = backup::Recipient::parse(text) {
            assert_eq!(recipient.text(), text);
        }
        let _ = backup::Identity::parse(text);
    }
});
