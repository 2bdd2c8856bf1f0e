//! Impersonation: the requested user, and the permissions that the caller must have
//! (k8s.io/apiserver, pkg/endpoints/filters/impersonation).

use std::collections::BTreeMap;

use crate::user::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED};
use crate::{Action, User, service_account_groups, service_account_parts};

/// Maximum number of impersonation headers in one request.
pub const MAX_ASKED: usize = 64;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
/// API group of the resources `uids` and `userextras` in impersonation rules. Users and groups are
/// in the core group.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Requested impersonation: user and required permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonation {
    /// User with whose permissions the request runs.
    pub user: User,
    /// Actions for all of which the caller needs permission.
    pub needs: Vec<Action>,
}

/// Returns true for the name of an impersonation header, in lower case.
pub fn is_header(name: &str) -> bool {
    name.starts_with("impersonate-")
}

/// Parses the impersonation headers, with names in lower case; `None` without such headers.
///
/// # Errors
/// Returns a message about an invalid header, which must not count as absent.
pub fn read<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Option<Impersonation>, String> {
    let (mut name, mut uid) = ("", "");
    let mut asked = 0_usize;
    let mut groups: Vec<&str> = Vec::new();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, value) in headers.filter(|(header, _)| is_header(header)) {
        asked += 1;
        match header {
            USER if name.is_empty() => name = value,
            UID if uid.is_empty() => uid = value,
            USER | UID => return Err(format!("the header {header} is given twice")),
            GROUP => groups.push(value),
            other => match other.strip_prefix(EXTRA).filter(|key| !key.is_empty()) {
                Some(key) => {
                    extra.entry(unescape(key)).or_default().push(value.to_owned());
                }
                None => return Err(format!("the header {other} is not known")),
            },
        }
    }
    if asked == 0 {
        return Ok(None);
    }
    if asked > MAX_ASKED {
        return Err(format!("more than {MAX_ASKED} impersonation headers"));
    }
    if name.is_empty() {
        return Err("requested groups, uid or extra without impersonating a user".to_owned());
    }
    Ok(Some(assemble(name, uid, &groups, extra)))
}

fn assemble(
    name: &str,
    uid: &str,
    groups: &[&str],
    extra: BTreeMap<String, Vec<String>>,
) -> Impersonation {
    let act = |group: &str, resource: &str, namespace: &str, name: &str| {
        Action::on("impersonate", group, resource, namespace, name)
    };
    let mut needs = Vec::new();
    let mut is: Vec<String> = Vec::new();
    match service_account_parts(name) {
        Some((namespace, account)) => {
            needs.push(act("", "serviceaccounts", namespace, account));
            if groups.is_empty() {
                is = service_account_groups(namespace);
            }
        }
        None => needs.push(act("", "users", "", name)),
    }
    for group in groups {
        needs.push(act("", "groups", "", group));
        is.push((*group).to_owned());
    }
    for (key, values) in &extra {
        let resource = format!("userextras/{key}");
        needs.extend(values.iter().map(|value| act(AUTHENTICATION, &resource, "", value)));
    }
    if !uid.is_empty() {
        needs.push(act(AUTHENTICATION, "uids", "", uid));
    }
    let holds = |group: &str| is.iter().any(|one| one == group);
    let missing = if name == ANONYMOUS {
        (!holds(UNAUTHENTICATED)).then_some(UNAUTHENTICATED)
    } else {
        (!holds(AUTHENTICATED) && !holds(UNAUTHENTICATED)).then_some(AUTHENTICATED)
    };
    is.extend(missing.map(str::to_owned));
    let user = User { name: name.to_owned(), uid: uid.to_owned(), groups: is, extra };
    Impersonation { user, needs }
}

/// Decodes percent-encoding; returns a text with invalid encoding unchanged.
fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let Some([byte]) = digits.and_then(stdx::unhex).as_deref().map(|it| [it[0]]) else {
            return key.to_owned();
        };
        bytes.push(byte);
        rest = tail.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{MAX_ASKED, read};
    use crate::Action;

    #[test]
    fn without_headers_nobody() {
        assert_eq!(read([("accept", "x")].into_iter()), Ok(None));
    }

    #[test]
    fn a_user_with_everything() {
        let headers = [
            ("impersonate-user", "jane"),
            ("impersonate-group", "dev"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-example.org%2fscope", "a"),
        ];
        let asked = read(headers.into_iter()).unwrap().unwrap();
        assert_eq!((asked.user.name.as_str(), asked.user.uid.as_str()), ("jane", "7"));
        assert_eq!(asked.user.groups, ["dev", "system:authenticated"]);
        assert_eq!(asked.user.extra["example.org/scope"], ["a"]);
        let on = |group: &str, resource: &str, name: &str| {
            Action::on("impersonate", group, resource, "", name)
        };
        assert_eq!(asked.needs[..2], [on("", "users", "jane"), on("", "groups", "dev")]);
        assert_eq!(asked.needs[3], on("authentication.k8s.io", "uids", "7"));
        assert_eq!(asked.needs[2].verb, "impersonate");
    }

    #[test]
    fn a_service_account_has_its_groups() {
        let asked = read([("impersonate-user", "system:serviceaccount:a:b")].into_iter());
        let asked = asked.unwrap().unwrap();
        let groups = ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"];
        assert_eq!(asked.user.groups, groups);
        assert_eq!(asked.needs, [Action::on("impersonate", "", "serviceaccounts", "a", "b")]);
    }

    #[test]
    fn nonsense_is_refused_and_never_ignored() {
        let many = vec![("impersonate-group", "g"); MAX_ASKED + 1];
        let twice = [("impersonate-user", "a"), ("impersonate-user", "b")];
        for headers in [
            &[("impersonate-group", "dev")][..],
            &[("impersonate-user", ""), ("impersonate-uid", "1")],
            &[("impersonate-extra-", "x")],
            &[("impersonate-shape", "x")],
            &twice,
            &many,
        ] {
            assert!(read(headers.iter().copied()).is_err(), "{headers:?}");
        }
    }
}
