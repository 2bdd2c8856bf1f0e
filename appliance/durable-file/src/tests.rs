use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{
    RESERVE, RESERVE_BYTES, SECTOR, Step, attempt, give_up_reserve, overwrite, part_of, replace,
    replace_private, reserve, take,
};

#[test]
fn what_is_kept_is_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(take(folder.path(), "it", 9).unwrap(), None);
    replace(folder.path(), "it", b"old").unwrap();
    replace(folder.path(), "it", b"new and long").unwrap();
    assert_eq!(take(folder.path(), "it", 7).unwrap().unwrap(), b"new and");
    assert_eq!(take(folder.path(), "it", 7).unwrap(), None);
}

#[test]
fn a_note_that_was_taken_leaves_its_room_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("note");
    replace(folder.path(), "note", b"it fell over").unwrap();
    take(folder.path(), "note", 99).unwrap();
    let overwritten = overwrite(&path, b"again, and with more words");
    overwritten.expect("a note that is blank is overwritten");
    overwrite(&path, b"short").unwrap();
    assert_eq!(take(folder.path(), "note", 99).unwrap().unwrap(), b"short");
    assert!(overwrite(&path, &[b'x'; SECTOR + 1]).is_err(), "no disk writes that whole");
    assert!(overwrite(&folder.path().join("none"), b"x").is_err());
}

#[test]
fn the_reserve_is_made_once_and_given_up_once() {
    let folder = tempfile::tempdir().unwrap();
    let (path, below) = (folder.path().join(RESERVE), folder.path().join("tinbox/settings"));
    fs::create_dir_all(&below).unwrap();
    for _ in 0..2 {
        reserve(folder.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), RESERVE_BYTES);
    }
    assert!(give_up_reserve(&below));
    assert!(!path.exists() && !give_up_reserve(&below));
}

fn mode_of(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_leftover_of_another_mode_does_not_lend_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (path, part) = (folder.path().join("key"), part_of(folder.path(), "key"));
    fs::write(&part, b"half of the la").unwrap();
    fs::set_permissions(&part, Permissions::from_mode(0o666)).unwrap();
    replace_private(folder.path(), "key", b"secret").unwrap();
    assert_eq!((fs::read(&path).unwrap().as_slice(), mode_of(&path)), (&b"secret"[..], 0o600));
    assert!(!part.exists());
    replace(folder.path(), "note", b"for all").unwrap();
    assert_eq!(mode_of(&folder.path().join("note")) & 0o700, 0o600);
}

#[test]
fn a_leftover_that_is_a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, b"as it was").unwrap();
    symlink(&elsewhere, part_of(folder.path(), "key")).unwrap();
    replace_private(folder.path(), "key", b"secret").unwrap();
    assert_eq!(fs::read(&elsewhere).unwrap(), b"as it was");
    assert!(!folder.path().join("key").is_symlink());
}

#[test]
fn a_power_cut_leaves_the_old_file_or_the_new_one() {
    let steps = [Step::RemoveLeftover, Step::Write, Step::Sync, Step::Rename, Step::SyncFolder];
    for (index, cut) in steps.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (path, part) = (folder.path().join("key"), part_of(folder.path(), "key"));
        replace_private(folder.path(), "key", b"old").unwrap();
        let mut seen = Vec::new();
        let cut_short = attempt(&part, &path, b"new", 0o600, |step| {
            seen.push(step);
            if step == cut { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        });
        cut_short.unwrap_err();
        // The content is on the disk before the name is, and the name before success is reported.
        assert_eq!(seen, steps[..=index]);
        let expected = if cut == Step::SyncFolder { b"new" } else { b"old" };
        assert_eq!(fs::read(&path).unwrap(), expected, "cut before {cut:?}");
        assert_eq!(part.exists(), matches!(cut, Step::Sync | Step::Rename), "cut before {cut:?}");
        replace_private(folder.path(), "key", b"next").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"next");
        assert!(!part.exists());
    }
}

#[test]
fn a_failed_attempt_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // A file cannot replace a folder.
    fs::create_dir(folder.path().join("key")).unwrap();
    replace_private(folder.path(), "key", b"secret").unwrap_err();
    assert!(!part_of(folder.path(), "key").exists());
}
