//! Identity of a caller. The names are those of Kubernetes (k8s.io/apiserver,
//! pkg/authentication/user and pkg/authentication/serviceaccount).

use std::collections::BTreeMap;

/// Group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// Group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of all unauthenticated callers.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Group of all ServiceAccounts. With the suffix `:NAMESPACE`: group of all in one namespace.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// User name of an unauthenticated caller.
pub const ANONYMOUS: &str = "system:anonymous";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// User that sends a request, or [`ANONYMOUS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// User name, unique among the users of one time; see `uid`.
    pub name: String,
    /// Unique ID that distinguishes users with the same name at different times; empty if unknown.
    pub uid: String,
    /// Names of the user's groups.
    pub groups: Vec<String>,
    /// Further attributes, such as the ID of the credential.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Makes an authenticated user, a member of `groups` and of [`AUTHENTICATED`].
    pub fn known(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Makes the user of an unauthenticated request: [`ANONYMOUS`] in [`UNAUTHENTICATED`].
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// Returns true if the user is a member of `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }
}

/// Returns the user name of a ServiceAccount: `system:serviceaccount:NAMESPACE:NAME`.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// Returns namespace and name from a ServiceAccount's user name; `None` for any other user.
pub fn service_account_parts(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_name = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    (is_name(namespace) && is_name(name)).then_some((namespace, name))
}

/// Returns the groups of the ServiceAccounts in `namespace`, without [`AUTHENTICATED`].
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

#[cfg(test)]
mod tests {
    use super::{AUTHENTICATED, MASTERS, User, service_account_name, service_account_parts};

    #[test]
    fn names_of_service_accounts() {
        let name = service_account_name("rack", "capt");
        assert_eq!(name, "system:serviceaccount:rack:capt");
        assert_eq!(service_account_parts(&name), Some(("rack", "capt")));
        for other in [
            "admin",
            "system:serviceaccount:rack",
            "system:serviceaccount::x",
            "system:serviceaccount:a:b:c",
        ] {
            assert_eq!(service_account_parts(other), None, "{other}");
        }
    }

    #[test]
    fn the_known_are_authenticated_once() {
        let user = User::known("a", [MASTERS.to_owned(), AUTHENTICATED.to_owned()]);
        assert_eq!(user.groups, [MASTERS, AUTHENTICATED]);
        assert!(User::known("a", []).is_in(AUTHENTICATED));
        assert!(!User::anonymous().is_in(AUTHENTICATED));
    }
}
