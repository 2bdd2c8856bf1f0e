use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::{BYTES, BootVolume, Damage, Environment, Slot};

fn block(variables: &str) -> Vec<u8> {
    let mut block = format!("# GRUB Environment Block\n{variables}").into_bytes();
    block.resize(BYTES, b'#');
    block
}

const FLASHED: &str = "ORDER=A B\nA_OK=1\nA_TRY=2\nB_OK=1\nB_TRY=0\n";

#[test]
fn a_block_is_read_and_written_as_it_was() {
    for variables in ["", FLASHED, "saved_entry=x\\\\y\nnote=two\\\nlines\nempty=\n"] {
        let old = block(variables);
        let environment = Environment::parse(&old).unwrap();
        assert_eq!(environment.block().unwrap(), old[..], "{variables}");
    }
    let environment = Environment::parse(&block("note=two\\\nlines\n")).unwrap();
    assert_eq!(environment.get("note"), Some("two\nlines"));
}

#[test]
fn damage_is_named() {
    let cases = [
        (Vec::new(), Damage::Size(0)),
        (block(FLASHED)[..BYTES - 1].to_vec(), Damage::Size(BYTES - 1)),
        (vec![0; BYTES], Damage::Signature),
        (block("ORDER=A B\nA_OK\n"), Damage::Line(3)),
        (block("=1\n"), Damage::Line(2)),
    ];
    for (bytes, damage) in cases {
        assert_eq!(Environment::parse(&bytes), Err(damage));
    }
    let mut cut = block(FLASHED);
    // The second sector contains padding only, so its loss changes nothing.
    cut[512..].fill(0);
    assert_eq!(Environment::parse(&cut), Environment::parse(&block(FLASHED)));
    let long = Environment(vec![("a".to_owned(), "b".repeat(BYTES))]);
    assert!(matches!(long.block(), Err(Damage::Full(_))));
}

#[test]
fn decisions() {
    let decided = |decide: fn(&mut Environment)| {
        let mut environment = Environment::parse(&block(FLASHED)).unwrap();
        decide(&mut environment);
        environment.block().unwrap().to_vec()
    };
    assert_eq!(
        decided(|it| it.mark_good(Slot::A)),
        block("ORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n")
    );
    assert_eq!(
        decided(|it| it.mark_bad(Slot::B)),
        block("ORDER=A B\nA_OK=1\nA_TRY=2\nB_OK=0\nB_TRY=0\n")
    );
    assert_eq!(
        decided(|it| it.prefer(Slot::B)),
        block("ORDER=B A\nA_OK=1\nA_TRY=2\nB_OK=1\nB_TRY=0\n")
    );
    let read = Environment::parse(&block(FLASHED)).unwrap();
    assert_eq!((read.first(), read.tries(Slot::A)), (Some(Slot::A), Some(2)));
    let odd = Environment::parse(&block("ORDER=C\nA_OK=yes\nA_TRY=x\n")).unwrap();
    assert_eq!((odd.first(), odd.whole(Slot::A), odd.tries(Slot::A)), (None, false, None));
}

#[test]
fn a_system_on_trial_is_started_twice() {
    let mut environment = Environment::parse(&block(FLASHED)).unwrap();
    environment.put_on_trial(Slot::B);
    let on_trial = block("ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=1\nTRIAL=B\n");
    assert_eq!(environment.block().unwrap(), on_trial[..]);
    assert_eq!(environment.trial(), Some(Slot::B));
    environment.mark_good(Slot::B);
    environment.end_trial();
    let good = block("ORDER=B A\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\n");
    assert_eq!(environment.block().unwrap(), good[..]);
    assert_eq!(environment.trial(), None);
}

#[test]
fn a_change_stays_in_place_and_mends_what_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tinbox")).unwrap();
    let (path, volume) = (folder.path().join("tinbox/grubenv"), BootVolume::at(folder.path()));
    fs::write(&path, block(FLASHED)).unwrap();
    let before = fs::metadata(&path).unwrap();
    volume.change(Slot::A, |it| it.mark_good(Slot::A)).unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((before.ino(), before.len()), (after.ino(), after.len()));
    assert_eq!(volume.read().unwrap().tries(Slot::A), Some(0));
    let written = after.modified().unwrap();
    volume.change(Slot::A, |it| it.mark_good(Slot::A)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), written, "nothing changed");

    fs::write(&path, [0; BYTES]).unwrap();
    assert!(volume.read().is_err());
    volume.change(Slot::B, |_| {}).unwrap();
    assert_eq!(fs::read(&path).unwrap(), block("ORDER=B A\nB_OK=1\nB_TRY=0\nA_OK=0\n"));
    fs::write(&path, "short").unwrap();
    assert!(volume.change(Slot::A, |_| {}).is_err(), "GRUB could not use a file of another size");
}

#[test]
fn a_damaged_block_is_mended_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("tinbox")).unwrap();
    let (path, volume) = (folder.path().join("tinbox/grubenv"), BootVolume::at(folder.path()));
    let mut torn = block(FLASHED);
    torn[..BYTES / 2].fill(0);
    fs::write(&path, torn).unwrap();
    let loader = volume.mended(Slot::A).unwrap();
    assert!(loader.whole(Slot::A) && loader.first() == Some(Slot::A), "{loader:?}");
    assert_eq!(volume.read().unwrap(), loader, "an update can be put on trial again");
    fs::write(&path, block(FLASHED)).unwrap();
    let before = fs::read(&path).unwrap();
    volume.mended(Slot::B).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before, "a good block stays as it is");
}

#[test]
fn the_owners_settings_are_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let volume = BootVolume::at(folder.path());
    assert_eq!(volume.settings().unwrap(), None);
    volume.replace_settings("name = 'a'\n", 1).unwrap();
    volume.replace_settings("name = 'b'\n", 2).unwrap();
    assert_eq!(volume.settings().unwrap().as_deref(), Some("name = 'b'\n"));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left of a change that was made: {left:?}");
    // A power cut left a name, and a factory reset restarted the numbers.
    fs::write(folder.path().join("box.3"), "left").unwrap();
    volume.replace_settings("name = 'c'\n", 3).unwrap();
    assert_eq!(fs::read(folder.path().join("box.3")).unwrap(), b"left");
    assert_eq!(volume.settings().unwrap().as_deref(), Some("name = 'c'\n"));
    fs::write(folder.path().join("box.toml"), b"name = '\xff'").unwrap();
    assert_eq!(volume.settings().unwrap().as_deref(), Some("name = '\u{fffd}'"));
}
