//! Action of a user (verb and target), in the terms of access rules (k8s.io/apiserver,
//! pkg/authorization/authorizer and pkg/endpoints/request).

use crate::User;

/// Target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Objects of a kind.
    Resource {
        /// API group; empty for the core group.
        group: String,
        /// Plural name, such as `hardware`.
        resource: String,
        /// Subresource, such as `status`; empty for the object itself.
        subresource: String,
        /// Namespace; empty for all namespaces, and for cluster-scoped kinds.
        namespace: String,
        /// Object name; empty for collections, and for new objects whose name is generated.
        name: String,
    },
    /// URL path without API objects, such as `/version`.
    Path(String),
}

/// Verb with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Verb: `get`, `list`, `watch`, `create`, …; for a path, the HTTP method in lower case.
    pub verb: String,
    /// Objects or path of the action.
    pub target: Target,
}

/// Returns the verb of a request for objects; `named` is true if the path has an object's name. The
/// verb of an unknown method is empty, which only `*` allows.
pub fn verb(method: &str, named: bool, watch: bool) -> &'static str {
    match (method, named) {
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) if watch => "watch",
        ("GET" | "HEAD", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "",
    }
}

impl Action {
    /// Makes an action with `verb` on the path `path`.
    pub fn on_path(verb: impl Into<String>, path: impl Into<String>) -> Self {
        Self { verb: verb.into(), target: Target::Path(path.into()) }
    }

    /// Makes an action with `verb` on objects; `resource` is `PLURAL` or `PLURAL/SUBRESOURCE`.
    pub fn on(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let target = Target::Resource {
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        Self { verb: verb.to_owned(), target }
    }

    /// Returns the namespace of the target; empty for a path or a cluster-scoped kind.
    pub fn namespace(&self) -> &str {
        match &self.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        }
    }

    /// Returns the message for a denied request, as in Kubernetes
    /// (pkg/endpoints/handlers/responsewriters): `User "x" cannot list resource "hardware" in API
    /// group "tinkerbell.org" at the cluster scope`.
    pub fn denial(&self, user: &User) -> String {
        let name = &user.name;
        let verb = &self.verb;
        let text = match &self.target {
            Target::Path(path) => format!("User {name:?} cannot {verb} path {path:?}"),
            Target::Resource { group, resource, subresource, namespace, .. } => {
                let resource = match subresource.as_str() {
                    "" => resource.clone(),
                    part => format!("{resource}/{part}"),
                };
                let place = match namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                format!(
                    "User {name:?} cannot {verb} resource {resource:?} in API group {group:?} \
                     {place}"
                )
            }
        };
        // Escapes all characters that a browser would read as an HTML tag.
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, verb};
    use crate::User;

    #[test]
    fn verbs() {
        for (method, named, watch, expected) in [
            ("GET", true, false, "get"),
            ("GET", true, true, "get"),
            ("HEAD", false, false, "list"),
            ("GET", false, true, "watch"),
            ("POST", false, false, "create"),
            ("POST", true, false, "create"),
            ("PUT", true, false, "update"),
            ("PATCH", true, false, "patch"),
            ("DELETE", true, false, "delete"),
            ("DELETE", false, false, "deletecollection"),
            ("OPTIONS", false, false, ""),
        ] {
            assert_eq!(verb(method, named, watch), expected, "{method}");
        }
    }

    #[test]
    fn denials_in_the_words_of_kubernetes() {
        let user = User::known("x", []);
        let denied = |action: Action| action.denial(&user);
        assert_eq!(
            denied(Action::on("list", "tinkerbell.org", "hardware", "", "")),
            "User \"x\" cannot list resource \"hardware\" in API group \"tinkerbell.org\" at the \
             cluster scope"
        );
        assert_eq!(
            denied(Action::on("create", "", "serviceaccounts/token", "rack", "capt")),
            "User \"x\" cannot create resource \"serviceaccounts/token\" in API group \"\" in the \
             namespace \"rack\""
        );
        assert_eq!(
            denied(Action::on_path("get", "/<x>")),
            "User \"x\" cannot get path \"/&lt;x&gt;\""
        );
    }
}
