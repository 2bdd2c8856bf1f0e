//! Every byte of the format that the module `tables` describes.

use proptest::prelude::*;

use super::{key, value};
use crate::tables::{change_millis, decode_change, encode_change, encode_object};
use crate::vault::Vault;
use crate::{Change, ChangeKind, Stored};

fn plain() -> Vault {
    Vault::default()
}

const MILLIS: u64 = 0x0102_0304_0506_0708;

#[test]
fn object_row() {
    let stored = Stored { revision: 258, value: value("{}") };
    assert_eq!(
        encode_object(&key("d", "n"), &stored, &plain()).unwrap(),
        b"\0\0\0\0\0\0\x01\x02\0{}"
    );
}

#[test]
fn created_row() {
    let kind = ChangeKind::Put { value: value("{}"), previous: None };
    let row = b"\x01\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x1btinkerbell.org/hardware\0d\0n\0{}";
    same(Change { revision: 7, key: key("d", "n"), kind }, row);
}

#[test]
fn replaced_row() {
    let previous = Some(Stored { revision: 3, value: value("old") });
    let kind = ChangeKind::Put { value: value("{}"), previous };
    let row = b"\x02\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x1btinkerbell.org/hardware\0d\0n\
        \0\0\0\0\0\0\0\x03\0\0\0\x04\0old\0{}";
    same(Change { revision: 7, key: key("d", "n"), kind }, row);
}

#[test]
fn deleted_row() {
    let kind = ChangeKind::Delete { previous: Stored { revision: 3, value: value("old") } };
    let row = b"\x03\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\x1atinkerbell.org/hardware\0\0n\
        \0\0\0\0\0\0\0\x03\0\0\0\x04\0old";
    same(Change { revision: 7, key: key("", "n"), kind }, row);
    let longer = [row.as_slice(), b"!"].concat();
    assert!(decode_change(7, &longer, &plain()).is_err());
}

fn same(change: Change, row: &[u8]) {
    assert_eq!(encode_change(&change, MILLIS, &plain()).unwrap(), row);
    assert_eq!(decode_change(change.revision, row, &plain()).unwrap(), change);
    assert_eq!(change_millis(row), Some(MILLIS));
    for end in 0..row.len() - 5 {
        // Cut short, it is an error or another row, never a panic.
        let _ = decode_change(change.revision, &row[..end], &plain());
    }
}

proptest! {
    #[test]
    fn damaged_rows_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = decode_change(1, &bytes, &plain());
    }
}
