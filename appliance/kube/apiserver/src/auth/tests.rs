//! Tests of tokens, keys and the first administrator.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{AdminAccess, Authenticator, Pki, SigningKey};

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
    // A second start changes nothing, even if the kubeconfig was removed.
    let before = fs::read(state.join("tokens")).unwrap();
    fs::remove_file(&access.kubeconfig).unwrap();
    let again = AdminAccess::ensure(&state, &pki, "https://other:1").unwrap();
    assert!(!again.created && !again.kubeconfig.exists());
    assert_eq!(fs::read(state.join("tokens")).unwrap(), before);

    let known = Authenticator::load(&state).unwrap();
    let user = known.user(&token, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(user.name, "admin");
    assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    for bad in ["", "x", &format!("{token}x"), &token[1..]] {
        assert_eq!(known.user(bad, Timestamp::UNIX_EPOCH), None, "{bad}");
    }
    assert!(
        Authenticator::load(folder.path()).unwrap().user(&token, Timestamp::UNIX_EPOCH).is_none()
    );
}

#[test]
fn tokens_of_others_than_administrators() {
    let folder = TempDir::new().unwrap();
    let hash = stdx::hex(&Sha256::digest(b"secret"));
    fs::write(folder.path().join("tokens"), format!("{hash} jane dev,ops\n")).unwrap();
    let user =
        Authenticator::load(folder.path()).unwrap().user("secret", Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(user.name, "jane");
    assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
}

#[test]
fn the_key_of_tokens_stays_and_knows_its_signatures() {
    let folder = TempDir::new().unwrap();
    let key = SigningKey::ensure(folder.path()).unwrap();
    let signature = key.sign(b"message").unwrap();
    assert_eq!(signature.len(), 64);
    let again = SigningKey::ensure(folder.path()).unwrap();
    assert_eq!((again.id(), again.public_point()), (key.id(), key.public_point()));
    assert!(again.verifies(b"message", &signature));
    assert!(!again.verifies(b"massage", &signature));
    assert!(!again.verifies(b"message", &signature[1..]));
    let other = TempDir::new().unwrap();
    let other = SigningKey::ensure(other.path()).unwrap();
    assert!(other.id() != key.id() && !other.verifies(b"message", &signature));
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
    // Clock of a box without a battery.
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
    // The certificate is close to its expiry.
    let late = "2034-11-20T00:00:00Z".parse::<Timestamp>().unwrap();
    Pki::ensure(state, &more, late).unwrap();
    assert_ne!(read("server.crt"), second);
    assert!(Pki::ensure(state, &["not a name é".to_owned()], now).is_err());
}

#[test]
fn a_certificate_follows_the_addresses_and_keeps_its_key() {
    let folder = TempDir::new().unwrap();
    let now = "2026-11-20T00:00:00Z".parse::<Timestamp>().unwrap();
    let pki = Pki::ensure(folder.path(), &names(), now).unwrap();
    let before = pki.server_certificate().unwrap();
    let key = fs::read(folder.path().join("pki/server.key")).unwrap();
    pki.rename(&names(), now).unwrap();
    assert_eq!(pki.server_certificate().unwrap(), before);
    pki.rename(&["10.9.8.7".to_owned()], now).unwrap();
    let after = pki.server_certificate().unwrap();
    assert!(after.windows(4).any(|bytes| bytes == [10, 9, 8, 7]));
    assert!(!before.windows(4).any(|bytes| bytes == [10, 9, 8, 7]));
    assert_eq!(fs::read(folder.path().join("pki/server.key")).unwrap(), key);
}
