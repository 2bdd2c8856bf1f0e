//! Tests of the daily backups.

use std::fs;
use std::path::PathBuf;

use super::super::daily::KEPT;
use super::{BackupError, Place, holds, put, tree};

fn folder(place: &Place) -> PathBuf {
    place.folder.path().join("cache/backups")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_becomes_what_it_was_when_it_backed_itself_up() {
    let old = Place::used().await;
    let kept = old.backups.keep_now().await.unwrap();
    assert_eq!((kept.objects, kept.hardware), (3, 1));
    assert_eq!(old.backups.kept().unwrap(), std::slice::from_ref(&kept));
    for (name, content) in tree(&folder(&old)) {
        for secret in [&b"hunter"[..], b"aHVudGVyMg", b"PRIVATE KEY"] {
            assert!(!holds(&content, secret), "{name}");
        }
    }
    put(&old.backups.store, "/configmaps", "later", b"{\"metadata\":{\"name\":\"x\"}}").await;
    let before = tree(&old.state());
    let rehearsed = old.backups.verify_kept(kept.name.to_string()).await.unwrap();
    assert_eq!((rehearsed.objects, rehearsed.restarts), (3, false));
    assert_eq!(tree(&old.state()), before, "a rehearsal changes nothing");
    let done = old.backups.restore_kept(kept.name.to_string()).await.unwrap();
    assert!(done.restarts);
    let old = old.restart();
    assert!(old.value("/configmaps", "later").is_none());
    assert_eq!(old.value("/configmaps", "colours").unwrap(), super::CONFIG);
    assert_eq!(old.backups.kept().unwrap(), [kept], "the way back stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_backups_go_and_nothing_else() {
    let place = Place::used().await;
    let first = place.backups.keep_now().await.unwrap();
    let at = |name: &str| folder(&place).join(name);
    for day in 1..=KEPT {
        fs::copy(at(&first.name), at(&format!("2025-01-0{day}T02-30-00Z.boxbak"))).unwrap();
    }
    fs::write(at("notes.boxbak"), b"no backup").unwrap();
    fs::write(at("notes"), b"of the owner").unwrap();
    place.backups.keep_now().await.unwrap();
    let kept = place.backups.kept().unwrap();
    assert_eq!(kept.len(), KEPT);
    assert!(kept.iter().any(|kept| kept.name == first.name), "{kept:?}");
    assert!(at("notes").exists() && at("notes.boxbak").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_kept_is_refused() {
    let place = Place::used().await;
    place.backups.keep_now().await.unwrap();
    fs::write(place.folder.path().join("cache/out.boxbak"), b"x").unwrap();
    for name in ["", "..", "../out.boxbak", "2025-01-01T02-30-00Z.boxbak"] {
        let refused = place.backups.restore_kept(name.to_owned()).await;
        assert!(matches!(refused, Err(BackupError::NoSuch(_))), "{name}: {refused:?}");
    }
}
