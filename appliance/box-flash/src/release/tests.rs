use std::fs;
use std::path::Path;

use super::{Keys, Sums};

/// Test data of minisign 0.11: two public keys, a list, and its signature by the first key.
const OURS: &str = "untrusted comment: minisign public key 628637E2C49309F3\n\
    RWTzCZPE4jeGYiQtF7I8gb04xSBUsRTucKsI9WIM94gj1y7AFtFuuguX\n";
const OTHER: &str = "untrusted comment: minisign public key 2B0582385464EC09\n\
    RWQJ7GRUOIIFK8cNtHWCr0SB5c76ikau+ys70rfbpMNm7WDn921PgS3D\n";
const SUMS: &str = "aa  tinbox.img.xz\n";
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key\n\
    RUTzCZPE4jeGYhuWh8Ryld2GM2A8oQX8mT6LGdUSx4A4rGIh21ssSzUMBKhkJTCTlBQVR6MbvxuhMysLqvdA2fVacW788o\
    G8xQs=\n\
    trusted comment: timestamp:1767225600\tfile:SHA256SUMS\thashed\n\
    WUrW5bT8mDHbhIfmi7rlXR7xCS4q5bNFIRVFLhxAs4eezUIu5D8on1dtHwa11DcJ0RBr3bzn1TSIRE6kL1VnAg==\n";

fn keys(text: &str) -> Keys {
    Keys::read("update.pub".into(), text).unwrap()
}

/// Reads the checksums beside an image, with these files present.
fn beside(files: &[(&str, &str)], keys: Option<&Keys>) -> Result<Sums, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let image = folder.path().join("tinbox.img.xz");
    Sums::beside(&image, keys).map_err(|error| error.to_string())
}

#[test]
fn what_somebody_known_signed_is_believed() {
    let files = [("SHA256SUMS", SUMS), ("SHA256SUMS.minisig", SIGNATURE)];
    for known in [OURS.to_owned(), format!("{OTHER}{OURS}")] {
        let sums = beside(&files, Some(&keys(&known))).unwrap();
        assert!(sums.signed);
        assert_eq!(sums.of(Path::new("x/tinbox.img.xz")).unwrap().as_deref(), Some("aa"));
        let unnamed = sums.of(Path::new("x/tinbox.img")).unwrap_err().to_string();
        assert!(unnamed.contains("the signed SHA256SUMS does not list this file"), "{unnamed}");
    }
}

#[test]
fn without_keys_nothing_is_said_of_who_made_it() {
    let sums = beside(&[("SHA256SUMS", SUMS)], None).unwrap();
    assert!(!sums.signed);
    assert_eq!(sums.of(Path::new("tinbox.img.xz")).unwrap().as_deref(), Some("aa"));
    assert_eq!(sums.of(Path::new("other")).unwrap(), None);
    assert_eq!(beside(&[], None).unwrap(), Sums::default());
}

#[test]
fn what_nobody_known_signed_is_refused_with_the_reason() {
    let both = |sums, signature| [("SHA256SUMS", sums), ("SHA256SUMS.minisig", signature)];
    let comment = SIGNATURE.replace("1767225600", "1767225601");
    let cut = &SIGNATURE[..SIGNATURE.len() - 9];
    type Files<'a> = &'a [(&'a str, &'a str)];
    let table: [(Files<'_>, &str, &str); 7] = [
        (&[], OURS, "SHA256SUMS: it does not exist"),
        (&[("SHA256SUMS", SUMS)], OURS, "SHA256SUMS.minisig: it does not exist"),
        (&both(SUMS, SIGNATURE), OTHER, "the signing key is not in update.pub"),
        (&both("ab  tinbox.img.xz\n", SIGNATURE), OURS, "the signature does not match this"),
        (&both(SUMS, &comment), OURS, "the signature does not match this"),
        (&both(SUMS, cut), OURS, "not a valid minisign signature"),
        (&both(SUMS, ""), OURS, "not a valid minisign signature"),
    ];
    for (files, known, why) in table {
        let message = beside(files, Some(&keys(known))).unwrap_err();
        assert!(message.contains(why), "not {why:?}: {message}");
    }
}

#[test]
fn a_file_without_keys_is_none() {
    for (text, why) in [
        ("", "it contains no public key"),
        ("untrusted comment: mine\n", "it contains no public key"),
        ("untrusted comment: mine\n\nRWTz\n", "line 3: not a valid minisign public key"),
    ] {
        let message = Keys::read("update.pub".into(), text).err().unwrap().to_string();
        assert!(message.contains("update.pub") && message.contains(why), "{message}");
    }
    let absent = Keys::find(Some(Path::new("/nowhere/update.pub"))).err().unwrap().to_string();
    assert!(absent.contains("it does not exist"), "{absent}");
}
