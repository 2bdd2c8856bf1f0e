//! Paths of objects in the API, from names that other clients chose.

use api::meta::{ObjectKey, Resource};
use objects::ObjectError;

/// Maximum length of a name (RFC 1123 subdomain, the longest form that Kubernetes has).
const NAME_CHARS_MAX: usize = 253;

/// Returns the path of all objects of a kind in `namespace`. An empty namespace stands for all
/// namespaces, or for a cluster-scoped kind.
///
/// # Errors
/// The namespace could change the path.
pub fn collection(resource: Resource, namespace: &str) -> Result<String, ObjectError> {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let version = resource.api_version();
    if namespace.is_empty() {
        return Ok(format!("{root}/{version}/{}", resource.plural));
    }
    check(resource, "namespace", namespace)?;
    Ok(format!("{root}/{version}/namespaces/{namespace}/{}", resource.plural))
}

/// Returns the path of the kind in the namespace of `key`, after a check of the name.
///
/// # Errors
/// The namespace or the name could change the path.
pub fn parent(resource: Resource, key: &ObjectKey) -> Result<String, ObjectError> {
    check(resource, "name", &key.name)?;
    collection(resource, &key.namespace)
}

/// Checks that a name is one path segment without escapes. A name such as `../secrets/x` in a field
/// of an object would else select another object.
fn check(resource: Resource, what: &str, name: &str) -> Result<(), ObjectError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    let is_valid = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(is_plain)
        && !matches!(name, "." | "..");
    if is_valid {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
    Err(ObjectError::Invalid(format!("{shown:?} is not a valid {what} of a {}", resource.kind)))
}

#[cfg(test)]
mod tests {
    use api::core::{CLUSTER_ROLE_BINDING, SECRET};
    use api::meta::ObjectKey;
    use api::tinkerbell::HARDWARE;
    use objects::ObjectError;

    use super::{collection, parent};

    #[test]
    fn a_path_has_the_group_the_version_and_the_namespace() {
        let path = |resource, namespace: &str| collection(resource, namespace).unwrap();
        assert_eq!(path(SECRET, "default"), "/api/v1/namespaces/default/secrets");
        assert_eq!(path(SECRET, ""), "/api/v1/secrets");
        let hardware = "/apis/tinkerbell.org/v1alpha1/namespaces/rack-1/hardware";
        assert_eq!(path(HARDWARE, "rack-1"), hardware);
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        assert_eq!(path(CLUSTER_ROLE_BINDING, ""), bindings);
        let key = ObjectKey::new("", "system:node");
        assert_eq!(parent(CLUSTER_ROLE_BINDING, &key).unwrap(), bindings);
    }

    #[test]
    fn a_name_cannot_change_the_path() {
        let long = "a".repeat(254);
        let bad =
            ["", ".", "..", "../secrets/x", "a/status", "a?dryRun=All", "a#b", "a%2fb", "a b"];
        for name in bad.into_iter().chain([long.as_str()]) {
            let error = parent(SECRET, &ObjectKey::new("default", name)).unwrap_err();
            assert!(matches!(error, ObjectError::Invalid(_)), "{name:?}: {error}");
            if !name.is_empty() {
                let error = collection(SECRET, name).unwrap_err();
                assert!(matches!(error, ObjectError::Invalid(_)), "{name:?}: {error}");
            }
        }
    }
}
