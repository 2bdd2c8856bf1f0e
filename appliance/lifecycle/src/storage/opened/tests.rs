//! Tests of starts with a lost store.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use config::SystemKind;
use tower::ServiceExt as _;

use super::{OpenedStore, open, refused};
use crate::storage;

/// Creates the state folder of a box that has started once.
fn started() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let OpenedStore { lost, .. } = open(folder.path(), SystemKind::Firmware).unwrap();
    assert_eq!(lost, None);
    fs::write(folder.path().join(super::LATER), [1; 32]).unwrap();
    folder
}

fn lost(state: &Path) -> String {
    let kept = fs::read(storage::file(state)).ok();
    let opened = open(state, SystemKind::Firmware).unwrap();
    let now = fs::read(storage::file(state)).ok();
    assert!(now == kept, "the file stays as it is");
    let guest = open(state, SystemKind::Guest).err().expect("somebody is there to read it");
    assert_eq!(Some(format!("{guest:#}")), opened.lost);
    opened.lost.unwrap()
}

#[test]
fn a_damaged_store_stops_no_box() {
    let folder = started();
    let file = storage::file(folder.path());
    let whole = fs::read(&file).unwrap();
    let mut head = whole.clone();
    head[..4096].fill(0);
    for damaged in [head, whole[..whole.len() / 2].to_vec(), Vec::new()] {
        fs::write(&file, damaged).unwrap();
        let why = lost(folder.path());
        assert!(why.starts_with("cannot open the store"), "{why}");
    }
    fs::write(&file, whole).unwrap();
    assert_eq!(open(folder.path(), SystemKind::Firmware).unwrap().lost, None);
}

#[test]
fn a_store_that_is_gone_is_no_empty_one() {
    let folder = started();
    fs::remove_file(storage::file(folder.path())).unwrap();
    assert!(lost(folder.path()).ends_with("objects.redb is missing"));
}

#[test]
fn a_store_without_its_key_gets_no_other() {
    let folder = started();
    let key = folder.path().join("sealing.key");
    fs::remove_file(&key).unwrap();
    let why = lost(folder.path());
    assert!(why.contains("sealing.key"), "{why}");
    assert!(!key.exists(), "a new key would be taken for the right one");
}

#[tokio::test]
async fn without_a_store_no_question_about_objects_is_answered() {
    let router = Router::new().fallback(get(async || "[]"));
    let router = refused(router, Some("it is gone"));
    let ask = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status()
    };
    for path in ["/api/v1/secrets", "/apis/tinkerbell.org/v1alpha1/hardware", "/apis"] {
        assert_eq!(ask(path).await, StatusCode::SERVICE_UNAVAILABLE, "{path}");
    }
    assert_eq!(ask("/readyz").await, StatusCode::INTERNAL_SERVER_ERROR);
    for path in ["/backup/restore", "/healthz", "/apis/box.tinbox.dev/v1alpha1/reset"] {
        assert_eq!(ask(path).await, StatusCode::OK, "{path}");
    }
}

#[test]
fn what_the_box_stores_is_closed_to_other_users() {
    let folder = tempfile::tempdir().unwrap();
    let leases = folder.path().join("leases-eth1.redb");
    fs::write(&leases, "of a release before").unwrap();
    fs::set_permissions(&leases, Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    open(folder.path(), SystemKind::Firmware).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.path()), mode(&leases)), (0o700, 0o600));
}
