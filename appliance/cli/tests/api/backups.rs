//! Tests of backup commands: errors before a connection, and errors of a box without backups.

use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_said_before_the_box_is_asked() {
    let place = Place::start().await;
    place.file("words", "correct horse\n");
    let error_of = async |line: &[&str]| {
        let ended = place.run(line).await;
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
        ended.err
    };
    let err = error_of(&["backup", "create"]).await;
    assert!(err.contains("give the file to write with -o FILE"), "{err}");
    place.file("there.boxbak", "");
    let err = error_of(&["backup", "create", "-o", "there.boxbak"]).await;
    assert!(err.contains("there.boxbak already exists"), "{err}");
    let err = error_of(&["backup", "create", "-o", "new.boxbak"]).await;
    assert!(err.contains("no terminal for a prompt: give --passphrase-file"), "{err}");
    place.file("empty", "# no passphrase\n\n");
    let err =
        error_of(&["backup", "create", "-o", "new.boxbak", "--passphrase-file", "empty"]).await;
    assert!(err.starts_with("error: cannot use empty: it contains no passphrase"), "{err}");
    place.file("letter", "Dear box");
    let err = error_of(&["backup", "verify", "letter", "--passphrase-file", "words"]).await;
    assert!(err.contains("not a valid backup of a Tinbox"), "{err}");
    let err = error_of(&["backup", "restore", "letter", "--passphrase-file", "words"]).await;
    assert!(err.contains("give --yes"), "{err}");
    let err = error_of(&["hardware", "list", "-o", "xml"]).await;
    assert!(err.starts_with("error: expected table, wide, json, yaml or name, found xml"), "{err}");
    let both = ["backup", "create", "-o", "new.boxbak", "--plain", "--recipient", "age1"];
    assert!(error_of(&both).await.contains("cannot be used with"));
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_backup_is_none() {
    let place = Place::start().await;
    place.file("words", "correct horse\n");
    let line = ["backup", "create", "-o", "new.boxbak", "--passphrase-file", "words"];
    let ended = place.run(&line).await;
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.err.starts_with("error: cannot create a backup: "), "{ended:?}");
    assert!(!ended.err.contains("correct horse"));
    let folder = place.kubeconfig.parent().unwrap();
    let left: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("boxbak"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
