use std::fs;

use jiff::{SignedDuration, Timestamp};

use super::{AdminTokens, TokenError};
use crate::auth::{AdminAccess, Authenticator, Pki};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const URL: &str = "https://10.0.0.1:6443";

fn token_in(kubeconfig: &str) -> String {
    let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("token: "));
    line.unwrap().to_owned()
}

#[test]
fn a_token_that_was_replaced_or_revoked_lets_nobody_in_and_the_last_stays() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let pki = Pki::ensure(state, &[], Timestamp::now()).unwrap();
    let access = AdminAccess::ensure(state, &pki, URL).unwrap();
    let old = token_in(&fs::read_to_string(&access.kubeconfig).unwrap());
    let tokens = state.join("tokens");
    let jane = format!("{} jane rack-a\n", "60".repeat(32));
    let text = fs::read_to_string(&tokens).unwrap();
    fs::write(&tokens, format!("# by hand\n{text}{jane}")).unwrap();

    let known = Authenticator::load(state).unwrap();
    // A clone, such as the one in the API's authentication layer.
    let gate = known.clone();
    let admin = AdminTokens::new(state.to_owned(), &pki, URL, known);
    let names = |admin: &AdminTokens| -> Vec<String> {
        admin.list().into_iter().map(|token| token.user).collect()
    };
    assert_eq!(names(&admin), ["admin", "jane"]);

    let made = admin.rotate().unwrap();
    let new = token_in(made.expose());
    assert!(gate.user(&old, NOW).is_none(), "the old token");
    assert_eq!(gate.user(&new, NOW).unwrap().name, "admin");
    assert_eq!(fs::read_to_string(&access.kubeconfig).unwrap(), made.expose());
    let text = fs::read_to_string(&tokens).unwrap();
    assert!(text.starts_with("# by hand\n") && text.contains(&jane), "{text}");
    assert_eq!(names(&admin), ["jane", "admin"]);

    let list = admin.list();
    assert!(matches!(admin.revoke("60"), Err(TokenError::NotOne(..))));
    assert_eq!(admin.revoke(&list[0].id).unwrap().user, "jane");
    assert!(matches!(admin.revoke(&list[1].id), Err(TokenError::Last(_))));
    assert_eq!(names(&admin), ["admin"]);
    let read = Authenticator::load(state).unwrap();
    assert!(read.user(&new, NOW).is_some(), "after a restart");
    assert!(read.user(&old, NOW).is_none(), "after a restart");
}

#[test]
fn a_token_with_a_role_ends_at_its_time_and_shows_its_last_use() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path();
    let pki = Pki::ensure(state, &[], Timestamp::now()).unwrap();
    AdminAccess::ensure(state, &pki, URL).unwrap();
    let known = Authenticator::load(state).unwrap();
    let admin = AdminTokens::new(state.to_owned(), &pki, URL, known.clone());
    let until = NOW + SignedDuration::from_hours(24);
    let made = admin.create("ci", "operator", until).unwrap();
    assert!(made.expose().contains("user: ci\n"), "{}", made.expose());
    let token = token_in(made.expose());
    assert!(token.starts_with("box_"), "{token}");
    let user = known.user(&token, NOW).unwrap();
    assert_eq!(user.name, "ci");
    assert!(user.is_in("tinbox:operator") && !user.is_in(rbac::MASTERS));
    // After a change of another token, and after a restart.
    admin.create("viewer", "viewer", until).unwrap();
    let listed = admin.list();
    assert_eq!((listed[1].until, listed[1].used), (Some(until), Some(NOW)));
    assert!(known.user(&token, until).is_none(), "it has ended");
    let read = Authenticator::load(state).unwrap();
    assert!(read.user(&token, NOW).is_some() && read.user(&token, until).is_none());
    admin.revoke(&listed[1].id).unwrap();
    assert!(known.user(&token, NOW).is_none());
    for (name, role) in [("admin", "viewer"), ("a b", "viewer"), ("", "viewer"), ("ci", "root")] {
        assert!(admin.create(name, role, until).is_err(), "{name:?} {role}");
    }
    let own: Vec<String> = admin.list().into_iter().map(|it| it.user).collect();
    assert_eq!(own, ["admin", "viewer"]);
}
