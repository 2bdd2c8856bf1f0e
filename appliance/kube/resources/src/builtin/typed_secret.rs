//! Validation of typed Secrets: the keys that each `type` requires (Kubernetes
//! `pkg/apis/core/validation`, `ValidateSecret`).

use serde_json::{Map, Value, json};

use crate::object::bytes;
use schema::FieldError;

/// Type of a Secret that holds the token of a ServiceAccount.
pub const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
/// Annotation with the name of the ServiceAccount whose token a Secret holds.
pub const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// Returns an error for each key that the type of `secret` requires and that is missing or invalid.
pub fn mistakes(secret: &Value) -> Vec<FieldError> {
    let has = |key: &str| secret["data"].get(key).is_some();
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    match secret["type"].as_str().unwrap_or_default() {
        TOKEN_TYPE => {
            let account = secret["metadata"]["annotations"][ACCOUNT_NAME].as_str();
            let named = account.is_some_and(|name| !name.is_empty());
            let field = format!("metadata.annotations[{ACCOUNT_NAME}]");
            let missing = (!named).then(|| FieldError::required(field, ""));
            missing.into_iter().collect()
        }
        "kubernetes.io/dockercfg" => json_object(secret, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_object(secret, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            ["username", "password"].map(required).to_vec()
        }
        "kubernetes.io/ssh-auth" => {
            let key = secret["data"]["ssh-privatekey"].as_str().unwrap_or_default();
            let missing = key.is_empty().then(|| required("ssh-privatekey"));
            missing.into_iter().collect()
        }
        "kubernetes.io/tls" => {
            let keys = ["tls.crt", "tls.key"].into_iter();
            keys.filter(|key| !has(key)).map(required).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns an error if the value of `key` is missing or not a JSON object.
fn json_object(secret: &Value, key: &str) -> Vec<FieldError> {
    let field = format!("data[{key}]");
    let Some(text) = secret["data"][key].as_str() else {
        return vec![FieldError::required(field, "")];
    };
    // The base64 check reports invalid base64.
    let Ok(bytes) = bytes::decode(text) else { return Vec::new() };
    match serde_json::from_slice::<Map<String, Value>>(&bytes) {
        Ok(_) => Vec::new(),
        Err(_) => {
            let why = "must be an object in JSON";
            vec![FieldError::invalid(field, &json!("<secret contents redacted>"), why)]
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ACCOUNT_NAME, TOKEN_TYPE, mistakes};

    fn fields(kind: &str, data: Value) -> Vec<String> {
        let secret = json!({ "type": kind, "data": data });
        mistakes(&secret).into_iter().map(|mistake| mistake.field).collect()
    }

    #[test]
    fn each_type_of_secret_has_its_keys() {
        let none = json!({});
        for (kind, data, wrong) in [
            ("Opaque", none.clone(), vec![]),
            ("example.org/own", none.clone(), vec![]),
            ("kubernetes.io/tls", json!({ "tls.crt": "" }), vec!["data[tls.key]"]),
            ("kubernetes.io/tls", json!({ "tls.crt": "", "tls.key": "" }), vec![]),
            (
                "kubernetes.io/ssh-auth",
                json!({ "ssh-privatekey": "" }),
                vec!["data[ssh-privatekey]"],
            ),
            ("kubernetes.io/ssh-auth", json!({ "ssh-privatekey": "eA==" }), vec![]),
            ("kubernetes.io/basic-auth", none.clone(), vec!["data[username]", "data[password]"]),
            ("kubernetes.io/basic-auth", json!({ "password": "" }), vec![]),
            ("kubernetes.io/dockercfg", none.clone(), vec!["data[.dockercfg]"]),
            (
                "kubernetes.io/dockerconfigjson",
                json!({ ".dockerconfigjson": "eA==" }),
                vec!["data[.dockerconfigjson]"],
            ),
            ("kubernetes.io/dockerconfigjson", json!({ ".dockerconfigjson": "e30=" }), vec![]),
        ] {
            assert_eq!(fields(kind, data.clone()), wrong, "{kind} {data}");
        }
        let at = format!("metadata.annotations[{ACCOUNT_NAME}]");
        assert_eq!(fields(TOKEN_TYPE, none), [at]);
        let annotations = json!({ ACCOUNT_NAME: "capt" });
        let secret = json!({ "type": TOKEN_TYPE, "metadata": { "annotations": annotations } });
        assert_eq!(mistakes(&secret), []);
    }
}
