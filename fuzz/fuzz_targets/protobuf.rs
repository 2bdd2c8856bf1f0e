//! A protobuf body: the input itself, or the bytes of an object of a kind that the input chooses.

#![no_main]

use std::sync::LazyLock;

use fuzz::Input;
use kube_protobuf::{catalog, decode, encode, put_bytes};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use stdx::json::{drop_nulls, is_within};

static KINDS: LazyLock<Vec<(&str, &str)>> = LazyLock::new(|| {
    let mut kinds: Vec<_> = catalog().kinds().map(|(version, kind, _)| (version, kind)).collect();
    kinds.sort_unstable();
    kinds
});

fn wrapped((version, kind): (&str, &str), raw: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    let mut body = b"k8s\0".to_vec();
    put_bytes(&mut body, 1, &meta);
    put_bytes(&mut body, 2, raw);
    body
}

/// Checks that a decoded object is the same when it is encoded and decoded again. Null counts as
/// absent, as Go's zero time does.
fn comes_back(mut object: Value) {
    assert!(is_within(&object, kube_protobuf::MAX_JSON_DEPTH));
    let body = encode(&object).expect("an object that was decoded");
    let mut again = decode(&body, ("", "")).expect("an object that was encoded");
    drop_nulls(&mut object);
    drop_nulls(&mut again);
    assert_eq!(again, object);
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    if bytes.starts_with(b"k8s\0") {
        if let Ok(object) = decode(bytes, ("v1", "Secret")) {
            comes_back(object);
        }
        return;
    }
    let kind = KINDS[usize::from(input.number()) % KINDS.len()];
    if let Ok(object) = decode(&wrapped(kind, input.0), ("", "")) {
        comes_back(object);
    }
});
