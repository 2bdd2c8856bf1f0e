//! Tests of restores with power cuts, and with a boot volume that refuses the settings.

use std::fs;
use std::io;

use super::{Place, WORDS, order, pieces, place, tree, words};

#[tokio::test(flavor = "multi_thread")]
async fn the_power_may_be_cut_at_every_step_of_a_restore() {
    let old = Place::used().await;
    let file = old.backup(order()).await.unwrap();
    let spare = Place::fresh();
    fs::write(spare.state().join("of-before"), b"goes").unwrap();
    spare.backups.restore(pieces(&file), words(WORDS)).await.unwrap();
    let Place { folder, backups } = spare;
    let state = folder.path().join("state");
    drop(backups);
    // Leftover of an earlier restore that a power cut stopped.
    fs::create_dir_all(state.join("restore.new/files")).unwrap();
    let staged = tree(&state.join("restore"));
    let before = tree(&state);
    let mut cuts = 0;
    loop {
        let trial = tempfile::tempdir().unwrap();
        for (name, content) in &before {
            let path = trial.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let (mut left, mut settings) = (cuts, None);
        let mut cut = || match left {
            0 => Err(io::Error::other("the power is cut")),
            _ => {
                left -= 1;
                Ok(())
            }
        };
        let mut write = |text: &str| {
            settings = Some(text.to_owned());
            Ok(())
        };
        let first = place::steps(trial.path(), &mut write, &mut cut);
        let whole = first.is_ok();
        // After a cut at any step, the next start gives the same box.
        place::resume(trial.path(), &mut write).unwrap();
        assert_eq!(settings.as_deref(), Some("name = \"box-7f3a\"\n"), "cut {cuts}");
        let after = tree(trial.path());
        for (name, content) in &staged {
            if let Some(name) = name.strip_prefix("files/") {
                assert!(after.get(name) == Some(content), "cut {cuts}: {name}");
            }
        }
        assert!(!after.contains_key("of-before"), "cut {cuts}");
        assert!(after.keys().all(|name| !name.starts_with("restore")), "cut {cuts}: {after:?}");
        assert!(!place::resume(trial.path(), |_| Ok(())).unwrap(), "it is over");
        if whole {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > staged.len(), "{cuts} cuts");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_the_boot_volume_does_not_take_are_kept_and_tried_again() {
    let old = Place::used().await;
    let file = old.backup(order()).await.unwrap();
    let spare = Place::fresh();
    spare.backups.restore(pieces(&file), words(WORDS)).await.unwrap();
    let Place { folder, backups } = spare;
    let state = folder.path().join("state");
    drop(backups);
    let refuse = |_: &str| Err(io::Error::other("read-only"));
    assert!(place::resume(&state, refuse).unwrap(), "all else is restored");
    assert!(place::unrestored(&state).is_some());
    // A later start does not undo newer writes of the box.
    fs::write(state.join("of-after"), b"stays").unwrap();
    assert!(!place::resume(&state, refuse).unwrap());
    let mut settings = None;
    let take = |text: &str| {
        settings = Some(text.to_owned());
        Ok(())
    };
    assert!(!place::resume(&state, take).unwrap());
    assert_eq!(settings.as_deref(), Some("name = \"box-7f3a\"\n"));
    assert_eq!(place::unrestored(&state), None);
    assert_eq!(fs::read(state.join("of-after")).unwrap(), b"stays");
}
