//! Backups: whatever a file says, reading it ends, in bounded memory; what is read once reads the
//! same again; and the plain way, which needs no passphrase, reaches every part of the archive.

#![no_main]

use backup::{Key, Reader};
use libfuzzer_sys::fuzz_target;
use stdx::Secret;

const OWN: &str = "1.4.0";
/// The specification's example.
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
    // A work factor that the input names would be the fuzzer's time and nothing else.
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
