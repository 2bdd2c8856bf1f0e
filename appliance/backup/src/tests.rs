//! Tests of whole backup files: restored contents, and a separate error for each refusal.

use std::io::Cursor;

use jiff::Timestamp;
use stdx::Secret;

use crate::{
    Contents, ENTRY_BYTES_MAX, Error, FORMAT, Header, Identity, Key, Lock, NEEDS, Part, Reader,
    Recipient, Writer, head,
};

const OWN: &str = "1.4.0";
const LONG: &str = "a-name-that-is-longer-than-the-hundred-bytes-that-a-tar-of-1988-has-for-the-\
                    whole-path-of-a-file-in-it.example.org";

fn object(resource: &str, namespace: &str, name: &str) -> Part {
    let (resource, namespace, name) = (resource.into(), namespace.into(), name.into());
    Part::Object { resource, namespace, name }
}

fn parts() -> Vec<(Part, Vec<u8>)> {
    let mut chance = fastrand::Rng::with_seed(1);
    let large: Vec<u8> = (0..200_000).map(|_| chance.u8(..)).collect();
    vec![
        (Part::File { path: "pki/ca.key".into() }, b"-----BEGIN".to_vec()),
        (Part::File { path: "tokens".into() }, Vec::new()),
        (Part::Settings, b"[network]\n".to_vec()),
        (object("tinkerbell.org/hardware", "default", "nuc1"), b"{}".to_vec()),
        (object("/secrets", "default", "bmc-nuc1"), b"{\"data\":{}}".to_vec()),
        (object("rbac.authorization.k8s.io/clusterroles", "", "system:../%core"), b"{}".to_vec()),
        (object("/namespaces", "", "core"), b"{}".to_vec()),
        (object("core/things", "_", "_"), b"{}".to_vec()),
        (object("tinkerbell.org/hardware", "default", LONG), large),
        (Part::Leases { interface: "eth1.20".into() }, b"[]".to_vec()),
        (Part::Images, b"[]".to_vec()),
    ]
}

fn header(parts: &[(Part, Vec<u8>)]) -> Header {
    let mut contents = Contents::default();
    parts.iter().for_each(|(part, _)| contents.count(part));
    Header {
        name: "box-7f3a".into(),
        version: OWN.into(),
        needs: NEEDS.into(),
        made: "2026-11-25T08:00:00Z".parse::<Timestamp>().unwrap(),
        pin: "F3A9-1C20-8BQK-77TM".into(),
        revision: 4711,
        contents,
        ..Header::default()
    }
}

fn made_by(header: &Header, parts: &[(Part, Vec<u8>)], lock: &Lock) -> Vec<u8> {
    let mut writer = Writer::begin_with(Cursor::new(Vec::new()), header, lock, 4).unwrap();
    parts.iter().for_each(|(part, content)| writer.add(part, content).unwrap());
    writer.finish().unwrap().into_inner()
}

fn made(lock: &Lock) -> Vec<u8> {
    let parts = parts();
    made_by(&header(&parts), &parts, lock)
}

fn passphrase() -> Lock {
    Lock::passphrase(Secret::from("correct horse")).unwrap()
}

fn key() -> Key {
    Key::given(Secret::from("correct horse")).unwrap()
}

fn read(file: &[u8], key: Option<&Key>) -> Result<Vec<(Part, Vec<u8>)>, Error> {
    let mut reader = Reader::open(file, key, OWN)?;
    let mut parts = Vec::new();
    while let Some(part) = reader.next_part()? {
        parts.push(part);
    }
    Ok(parts)
}

#[test]
fn everything_comes_back_whoever_may_open_it() {
    assert_eq!(read(&made(&passphrase()), Some(&key())).unwrap(), parts());
    assert_eq!(read(&made(&Lock::Plain), None).unwrap(), parts());
    let secret = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    let identity = Identity::parse(secret).unwrap();
    let recipients = vec![identity.recipient().unwrap()];
    let file = made(&Lock::Recipients(recipients));
    let identity = Key::given(Secret::from(format!("{secret}\n"))).unwrap();
    assert_eq!(read(&file, Some(&identity)).unwrap(), parts());
}

/// Backup of format 1, made with GNU tar, gzip and age 1.3.2. Every later version must read it.
const STOCK: &[u8] = include_bytes!("tests/stock.boxbak");

#[test]
fn a_file_of_the_stock_tools_is_read() {
    let secret = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    let identity = Key::given(Secret::from(secret)).unwrap();
    let parts = read(STOCK, Some(&identity)).unwrap();
    let names: Vec<String> = parts.iter().map(|(part, _)| part.what()).collect();
    let want = [
        "tinkerbell.org/hardware default/nuc1",
        "the leases of eth1",
        "the file pki/ca.key",
        "box.toml",
        "the list of images",
    ];
    assert_eq!(names, want);
}

/// Backup of format 1, made by this crate's own tar writer before the crate `tar` was used.
const OLDER: &[u8] = include_bytes!("tests/older.boxbak");

#[test]
fn a_file_of_an_older_box_is_read() {
    let parts = read(OLDER, None).unwrap();
    assert_eq!(parts.len(), 7);
    let long = object("tinkerbell.org/hardware", "default", LONG);
    assert!(parts.contains(&(long, b"{}".to_vec())), "{parts:?}");
}

#[test]
fn its_beginning_is_for_people_and_says_nothing_secret() {
    let file = made(&passphrase());
    let lines: Vec<&[u8]> = file.splitn(3, |byte| *byte == b'\n').collect();
    assert_eq!(lines[0], b"TINBOX BACKUP 1");
    let shown: serde_json::Value = serde_json::from_slice(lines[1]).unwrap();
    assert_eq!(shown["size"], format!("{:012}", lines[2].len()));
    assert_eq!(shown["name"], "box-7f3a");
    assert_eq!(shown["made"], "2026-11-25T08:00:00Z");
    assert_eq!(shown["encryption"], "passphrase");
    assert_eq!(shown["contents"]["objects"], 6);
    assert_eq!(shown["contents"]["secrets"], 1);
    assert!(lines[2].starts_with(b"age-encryption.org/v1\n-> scrypt "));
    for secret in [&b"BEGIN"[..], b"bmc-nuc1", b"correct"] {
        assert!(!file.windows(secret.len()).any(|found| found == secret));
    }
    let read = head(&mut file.as_slice(), OWN).unwrap();
    assert_eq!((read.made, read.contents), (header(&[]).made, header(&parts()).contents));
}

/// Returns the first words of the error for these bytes.
fn error_of(file: &[u8], key: Option<&Key>) -> String {
    let message = read(file, key).expect_err("it is taken").to_string();
    message.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn each_refusal_has_its_own_sentence() {
    let file = made(&passphrase());
    let other = Key::given(Secret::from("correct horsf")).unwrap();
    let (key, other) = (Some(&key()), Some(&other));
    assert_eq!(error_of(&file, other), "wrong passphrase for this backup");
    assert_eq!(error_of(&file, None), "this backup can be decrypted only with its passphrase");
    assert_eq!(error_of(b"", key), "not a valid backup of a Tinbox");
    assert_eq!(error_of(&[0x1f; 9000], key), "not a valid backup of a Tinbox");
    assert_eq!(error_of(b"TINBOX BACKUP one\n{}\n", key), "not a valid backup of a Tinbox");
    let cut = "this backup is truncated";
    for at in [15, 16, 30, 200, file.len() / 2, file.len() - 1] {
        assert_eq!(error_of(&file[..at], key), cut, "cut at {at} of {}", file.len());
    }
    let payload = file.windows(4).position(|found| found == b"age-").unwrap();
    for at in [payload + 60, payload + 400, file.len() / 2, file.len() - 1] {
        let mut changed = file.clone();
        changed[at] ^= 1;
        let message = error_of(&changed, key);
        let wrong = message.starts_with("this backup is damaged: ");
        // A change in the sealed file key has the same effect as a wrong passphrase.
        assert!(wrong || message.starts_with("wrong passphrase"), "byte {at}: {message}");
    }
    let followed = [&file[..], b"more"].concat();
    assert!(error_of(&followed, key).starts_with("this backup is damaged"));
    let plain = made(&Lock::Plain);
    assert_eq!(error_of(&plain[..plain.len() - 5], None), cut);
    let mut changed = plain.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    assert!(error_of(&changed, None).starts_with("this backup is damaged"));
}

#[test]
fn what_it_says_of_itself_cannot_be_changed() {
    let file = made(&passphrase());
    let text = |file: &[u8]| String::from_utf8_lossy(&file[..200]).into_owned();
    let at = text(&file).find("box-7f3a").unwrap();
    let mut changed = file.clone();
    changed[at] = b'B';
    let message = error_of(&changed, Some(&key()));
    assert_eq!(message, "this backup is damaged: its unencrypted lines were changed");
}

#[test]
fn a_newer_one_is_refused_with_the_version_that_it_needs() {
    let parts = parts();
    let needs = |needs: &str| Header { needs: needs.into(), ..header(&parts) };
    for (version, refused) in [("1.4.0", false), ("1.3.9", false), ("1.4.1", true), ("2.0.0", true)]
    {
        let file = made_by(&needs(version), &parts, &passphrase());
        match read(&file, Some(&key())) {
            Ok(_) => assert!(!refused, "{version}"),
            Err(error) => {
                let want =
                    format!("this backup needs Tinbox {version} or newer, but this is 1.4.0");
                assert_eq!(error.to_string().lines().next(), Some(want.as_str()));
            }
        }
    }
    let next = format!(
        "TINBOX BACKUP {}\n{{\"needs\":\"2.1.0\",\"made\":\"2030-01-01T00:00:00Z\",\
                        \"size\":\"1\",\"of-tomorrow\":[]}}\nanything",
        FORMAT + 1
    );
    let message = error_of(next.as_bytes(), Some(&key()));
    assert_eq!(message, "this backup needs Tinbox 2.1.0 or newer, but this is 1.4.0");
    let message = error_of(b"TINBOX BACKUP 9\n\0\0\0", Some(&key()));
    assert_eq!(
        message,
        "this backup needs Tinbox that supports format 9 or newer, but this is 1.4.0"
    );
}

#[test]
fn counts_that_are_not_true_are_noticed_on_both_sides() {
    let parts = parts();
    let mut wrong = header(&parts);
    wrong.contents.objects += 1;
    let mut writer = Writer::begin_with(Cursor::new(Vec::new()), &wrong, &Lock::Plain, 4).unwrap();
    parts.iter().for_each(|(part, content)| writer.add(part, content).unwrap());
    assert!(matches!(writer.finish(), Err(Error::Unkept { .. })));
    let twice = [parts[0].clone(), parts[0].clone()];
    let file = made_by(&header(&twice), &twice, &Lock::Plain);
    assert_eq!(error_of(&file, None), "this backup is damaged: it has the file pki/ca.key twice");
}

#[test]
fn what_has_no_place_is_refused_when_it_is_made() {
    let mut writer =
        Writer::begin_with(Cursor::new(Vec::new()), &header(&[]), &Lock::Plain, 4).unwrap();
    for path in ["", "/etc/passwd", "../key", "a//b", "a/./b", "a/b/c/d/e"] {
        let part = Part::File { path: path.into() };
        assert!(matches!(writer.add(&part, b""), Err(Error::Unkept { .. })), "{path}");
    }
    let large = vec![0; ENTRY_BYTES_MAX + 1];
    assert!(matches!(writer.add(&Part::Images, &large), Err(Error::Unkept { .. })));
    let long = Part::File { path: "x".repeat(5000) };
    assert!(matches!(writer.add(&long, b""), Err(Error::Unkept { .. })));
}

#[test]
fn a_short_passphrase_is_none() {
    for text in ["", "1234567", "äöüßäöü", &"x".repeat(1025)] {
        assert!(matches!(Lock::passphrase(Secret::from(text)), Err(Error::Passphrase)), "{text}");
    }
    assert!(Lock::passphrase(Secret::from("äöüßäöüß")).is_ok());
    // The backup could not be opened: what opens it would be read as a key.
    let key = Secret::from(" AGE-SECRET-KEY-1QQQQ\n");
    assert!(matches!(Lock::passphrase(key), Err(Error::SecretKey)));
    assert!(Recipient::parse("ssh-ed25519 AAAA").is_err());
}

#[test]
fn chance_never_panics_a_reader() {
    let mut chance = fastrand::Rng::with_seed(7);
    let (file, plain) = (made(&passphrase()), made(&Lock::Plain));
    for round in 0..2_000 {
        let mut bytes = if round % 2 == 0 { plain.clone() } else { file.clone() };
        // Not the pieces alone: they end every try at once.
        for _ in 0..chance.usize(1..6) {
            let end = if chance.bool() { 600 } else { bytes.len() };
            let at = chance.usize(..end.min(bytes.len()));
            bytes[at] = chance.u8(..);
        }
        bytes.truncate(chance.usize(1..=bytes.len()));
        let _ = read(&bytes, Some(&key()));
    }
}
