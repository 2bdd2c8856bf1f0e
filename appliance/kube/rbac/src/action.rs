//! What somebody wants to do, as rules speak of it (k8s.io/apiserver, pkg/authorization/authorizer
//! and pkg/endpoints/request).

use crate::User;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Objects of a kind.
    Resource {
        /// API group, empty for core.
        group: String,
        /// Plural, such as `hardware`.
        resource: String,
        /// Such as `status`; empty for the object itself.
        subresource: String,
        /// Empty for all namespaces, and for kinds of the whole box.
        namespace: String,
        /// Empty for collections, and for objects whose name is not chosen yet.
        name: String,
    },
    /// A path that names no objects, such as `/version`.
    Path(String),
}

/// A verb and what it is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// `get`, `list`, `watch`, `create`, …; on paths the HTTP method in lower case.
    pub verb: String,
    /// To what.
    pub target: Target,
}

/// The verb of a request for objects. A request without an object's name reads or deletes the
/// collection; a method that no rule knows gives the empty verb, which only `*` allows.
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
    /// `verb` on the path `path`.
    pub fn on_path(verb: impl Into<String>, path: impl Into<String>) -> Self {
        Self { verb: verb.into(), target: Target::Path(path.into()) }
    }

    /// `verb` on objects; `resource` may be `PLURAL/SUBRESOURCE`.
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

    /// The namespace; empty where there is none.
    pub fn namespace(&self) -> &str {
        match &self.target {
            Target::Resource { namespace, .. } => namespace,
            Target::Path(_) => "",
        }
    }

    /// Why `user` may not, in the words of Kubernetes (pkg/endpoints/handlers/responsewriters):
    /// `User "x" cannot list resource "hardware" in API group "tinkerbell.org" at the cluster
    /// scope`.
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
        // Nothing that a browser would take for a tag.
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
