//! Tokens, keys and the first administrator.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use http::HeaderValue;
use jiff::Timestamp;
use tempfile::TempDir;

use super::{AdminAccess, Authenticator, Pki};

fn names() -> Vec<String> {
    vec!["box.lan".to_owned(), "192.168.1.1".to_owned()]
}

fn token_in(kubeconfig: &std::path::Path) -> String {
    let text = fs::read_to_string(kubeconfig).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("token: "));
    line.unwrap().to_owned()
}

#[test]
fn access_is_made_once_and_for_the_owner_only() {
    let folder = TempDir::new().unwrap();
    let state = folder.path().join("state");
    let now = "2026-11-20T00:00:00Z".parse::<Timestamp>().unwrap();
    let pki = Pki::ensure(&state, &names(), now).unwrap();
    let access = AdminAccess::ensure(&state, &pki, "https://box.lan:6443").unwrap();
    assert!(access.created);
    let token = token_in(&access.kubeconfig);
    assert_eq!(token.len(), 64);
    for file in ["admin.kubeconfig", "tokens", "pki/ca.key", "pki/server.key"] {
        let mode = fs::metadata(state.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert!(!fs::read_to_string(state.join("tokens")).unwrap().contains(&token));
    // A second start changes nothing, even when the kubeconfig was taken away.
    let before = fs::read(state.join("tokens")).unwrap();
    fs::remove_file(&access.kubeconfig).unwrap();
    let again = AdminAccess::ensure(&state, &pki, "https://other:1").unwrap();
    assert!(!again.created && !again.kubeconfig.exists());
    assert_eq!(fs::read(state.join("tokens")).unwrap(), before);

    let known = Authenticator::load(&state).unwrap();
    let header = |text: &str| known.authenticate(Some(&HeaderValue::from_str(text).unwrap()));
    assert_eq!(header(&format!("Bearer {token}")).unwrap().name, "admin");
    assert_eq!(header(&format!("bearer  {token} ")).unwrap().name, "admin");
    for bad in ["", "Bearer ", "Bearer x", "Basic YTpi", &token, &format!("Bearer {token}x")] {
        assert_eq!(header(bad), None, "{bad}");
    }
    assert_eq!(known.authenticate(None), None);
    assert!(Authenticator::load(folder.path()).unwrap().authenticate(None).is_none());
}

#[test]
fn a_broken_token_file_is_named() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("tokens"), "# comment\n\nnothex admin\n").unwrap();
    let error = Authenticator::load(folder.path()).err().unwrap().to_string();
    assert!(error.starts_with("line 3 of ") && error.contains("tokens"), "{error}");
}

#[test]
fn certificates_stay_until_they_no_longer_fit() {
    let folder = TempDir::new().unwrap();
    let state = folder.path();
    let read = |file: &str| fs::read_to_string(state.join("pki").join(file)).unwrap();
    // The clock of a box without a battery.
    let epoch = Timestamp::UNIX_EPOCH;
    let first = Pki::ensure(state, &names(), epoch).unwrap().ca_pem().to_owned();
    let server = read("server.crt");
    let now = "2026-11-20T00:00:00Z".parse::<Timestamp>().unwrap();
    let again = Pki::ensure(state, &names(), now).unwrap();
    assert_eq!((again.ca_pem(), read("server.crt")), (first.as_str(), server.clone()));
    again.server_config().unwrap();
    // Other names, the same authority.
    let more = vec!["box.lan".to_owned()];
    let renamed = Pki::ensure(state, &more, now).unwrap();
    let second = read("server.crt");
    assert!(renamed.ca_pem() == first && second != server);
    // Its end comes near.
    let late = "2034-11-20T00:00:00Z".parse::<Timestamp>().unwrap();
    Pki::ensure(state, &more, late).unwrap();
    assert_ne!(read("server.crt"), second);
    assert!(Pki::ensure(state, &["not a name é".to_owned()], now).is_err());
}
