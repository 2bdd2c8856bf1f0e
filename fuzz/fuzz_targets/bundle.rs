//! Update bundles: the manifest, which decides what is written to a disk, and the reader of the
//! whole file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use platform::bundle::{Manifest, PublicKey, Reader};

fuzz_target!(|data: &[u8]| {
    if let Ok(manifest) = Manifest::decode(data) {
        assert_eq!(manifest.encode(), data);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = PublicKey::list(text);
    }
    let mut reader = Reader::new(vec![PublicKey { id: [0; 8], key: [0; 32] }]);
    for mut piece in data.chunks(37) {
        // No secret key belongs to this public key, so the reader must not accept any data.
        assert!(!matches!(reader.read(&mut piece), Ok(Some(_))));
    }
    assert!(reader.finish().is_err());
});
