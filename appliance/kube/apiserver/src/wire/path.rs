//! Parser of request paths, used instead of a router because kinds change at run time.

use percent_encoding::percent_decode_str;

/// Name of an OpenAPI document in a request path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenApiName {
    /// Document `/openapi/v3`: list of all v3 documents.
    Index,
    /// Document `/openapi/v3/NAME`; NAME is `api/v1` or `apis/GROUP/VERSION`.
    Version(String),
    /// Document `/openapi/v2` as JSON.
    Swagger,
    /// Document `/openapi/v2` as protobuf.
    SwaggerProtobuf,
}

/// Target of a request path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Path `/version`: version of the server.
    Version,
    /// Paths `/healthz`, `/livez` and all paths below: health of the server.
    Health,
    /// Path `/readyz` and all paths below: readiness of the server.
    Readiness,
    /// Path `/.well-known/openid-configuration`: issuer of ServiceAccount tokens.
    TokenIssuer,
    /// Path `/openid/v1/jwks`: public keys of ServiceAccount tokens.
    TokenKeys,
    /// Paths `/openapi/v2`, `/openapi/v3` and `/openapi/v3/NAME`: OpenAPI documents.
    OpenApi(OpenApiName),
    /// Path `/api`: versions of the core group.
    CoreVersions,
    /// Path `/apis`: all groups except core.
    Groups,
    /// Path `/apis/GROUP`: versions of one group.
    Group(String),
    /// Path `/apis/GROUP/VERSION`, or `/api/v1` (empty group): resources of one version.
    Resources {
        /// API group; empty for core.
        group: String,
        /// API version, such as `v1alpha1`.
        version: String,
    },
    /// Path of objects or a subresource.
    Resource(ResourcePath),
}

/// Path of a request: `/apis/GROUP/VERSION[/namespaces/NAMESPACE]/PLURAL[/NAME[/SUBRESOURCE]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group, empty for core.
    pub group: String,
    /// API version, such as `v1alpha1`.
    pub version: String,
    /// Namespace; `None` for all namespaces and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Plural of the kind, such as `hardware`.
    pub plural: String,
    /// Object name; `None` for a collection.
    pub name: Option<String>,
    /// Subresource, such as `status`; `None` for the object itself.
    pub subresource: Option<String>,
}

impl ResourcePath {
    /// Returns `PLURAL` or `PLURAL/SUBRESOURCE`.
    pub fn resource(&self) -> String {
        match &self.subresource {
            Some(part) => format!("{}/{part}", self.plural),
            None => self.plural.clone(),
        }
    }
}

/// Subresources of Namespace objects. In `/namespaces/NAME/SEGMENT`, any other segment is the
/// plural of a namespaced kind.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

/// Parses a path; `None` for a path of an unknown form, which gets 404.
pub fn parse(path: &str) -> Option<Target> {
    let mut parts = Vec::new();
    for part in path.strip_prefix('/')?.trim_end_matches('/').split('/') {
        parts.push(percent_decode_str(part).decode_utf8().ok()?.into_owned());
    }
    if parts.iter().any(String::is_empty) {
        return None;
    }
    let mut parts = parts.into_iter();
    let root = parts.next()?;
    let rest: Vec<String> = parts.collect();
    match (root.as_str(), rest.as_slice()) {
        ("version", []) => Some(Target::Version),
        ("healthz" | "livez", _) => Some(Target::Health),
        ("readyz", _) => Some(Target::Readiness),
        (".well-known", [one]) if one == "openid-configuration" => Some(Target::TokenIssuer),
        ("openid", [version, keys]) if version == "v1" && keys == "jwks" => Some(Target::TokenKeys),
        ("openapi", [form]) if form == "v2" => Some(Target::OpenApi(OpenApiName::Swagger)),
        ("openapi", [form]) if form == "v3" => Some(Target::OpenApi(OpenApiName::Index)),
        ("openapi", [form, rest @ ..]) if form == "v3" => {
            Some(Target::OpenApi(OpenApiName::Version(rest.join("/"))))
        }
        ("api", []) => Some(Target::CoreVersions),
        ("api", [version, rest @ ..]) => below("", version, rest),
        ("apis", []) => Some(Target::Groups),
        ("apis", [group]) => Some(Target::Group(group.clone())),
        ("apis", [group, version, rest @ ..]) => below(group, version, rest),
        _ => None,
    }
}

fn below(group: &str, version: &str, rest: &[String]) -> Option<Target> {
    let (group, version) = (group.to_owned(), version.to_owned());
    let (namespace, rest) = match rest {
        [] => return Some(Target::Resources { group, version }),
        [word, namespace, rest @ ..]
            if word == "namespaces"
                && rest.first().is_some_and(|next| !OF_NAMESPACES.contains(&next.as_str())) =>
        {
            (Some(namespace.clone()), rest)
        }
        rest => (None, rest),
    };
    let mut rest = rest.iter().cloned();
    let plural = rest.next()?;
    let (name, subresource) = (rest.next(), rest.next());
    if rest.next().is_some() {
        return None;
    }
    let path = ResourcePath { group, version, namespace, plural, name, subresource };
    Some(Target::Resource(path))
}

#[cfg(test)]
mod tests {
    use super::{OpenApiName, ResourcePath, Target, parse};

    fn resource(parts: [&str; 6]) -> Option<Target> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let [group, version, namespace, plural, name, subresource] = parts;
        Some(Target::Resource(ResourcePath {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: some(namespace),
            plural: plural.to_owned(),
            name: some(name),
            subresource: some(subresource),
        }))
    }

    #[test]
    fn paths() {
        let group = |group: &str, version: &str| {
            Some(Target::Resources { group: group.to_owned(), version: version.to_owned() })
        };
        for (path, expected) in [
            ("/version", Some(Target::Version)),
            ("/livez", Some(Target::Health)),
            ("/readyz/store", Some(Target::Readiness)),
            ("/api", Some(Target::CoreVersions)),
            ("/apis/", Some(Target::Groups)),
            ("/apis/a.b", Some(Target::Group("a.b".to_owned()))),
            ("/api/v1", group("", "v1")),
            ("/apis/a.b/v1", group("a.b", "v1")),
            ("/api/v1/secrets", resource(["", "v1", "", "secrets", "", ""])),
            ("/api/v1/namespaces", resource(["", "v1", "", "namespaces", "", ""])),
            ("/api/v1/namespaces/x", resource(["", "v1", "", "namespaces", "x", ""])),
            ("/api/v1/namespaces/x/status", resource(["", "v1", "", "namespaces", "x", "status"])),
            ("/api/v1/namespaces/x/secrets", resource(["", "v1", "x", "secrets", "", ""])),
            ("/apis/a.b/v1/namespaces/x/hw/n", resource(["a.b", "v1", "x", "hw", "n", ""])),
            (
                "/apis/a.b/v1/namespaces/x/hw/n/status",
                resource(["a.b", "v1", "x", "hw", "n", "status"]),
            ),
            ("/apis/a.b/v1/hw/n%2fm", resource(["a.b", "v1", "", "hw", "n/m", ""])),
            ("/apis/a.b/v1/namespaces/x/hw/n/status/y", None),
            ("/apis//v1/hw", None),
            ("/api/v1/%ff", None),
            ("/openapi/v2", Some(Target::OpenApi(OpenApiName::Swagger))),
            ("/openapi/v3", Some(Target::OpenApi(OpenApiName::Index))),
            (
                "/openapi/v3/api/v1",
                Some(Target::OpenApi(OpenApiName::Version("api/v1".to_owned()))),
            ),
            ("/openapi/v1", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(parse(path), expected, "{path}");
        }
    }
}
