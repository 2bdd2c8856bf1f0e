//! Tests of both discovery forms, and of their selection by the Accept header.

use axum::response::Response;
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::respond;
use crate::wire::path::Target;
use resources::builtin;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2BETA1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

fn ask(target: &Target, headers: &[(http::HeaderName, &str)]) -> Response {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(name, value.parse().unwrap());
    }
    respond(&builtin::registry().unwrap(), target, &map).unwrap()
}

async fn document(response: Response) -> Value {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn a_client_is_given_the_form_it_asks_for() {
    let both = format!("{V2},{V2BETA1},application/json");
    let old = format!("{V2BETA1},application/json");
    let strange = format!("{},application/json", V2.replace("v=v2", "v=v3"));
    for (accept, kind, version) in [
        ("", "APIGroupList", "v1"),
        ("application/json, */*", "APIGroupList", "v1"),
        (&both, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"),
        (&old, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2beta1"),
        (&strange, "APIGroupList", "v1"),
        (&format!("application/json,{V2}"), "APIGroupList", "v1"),
        (
            &format!("application/yaml,{V2};profile=nopeer"),
            "APIGroupDiscoveryList",
            "apidiscovery.k8s.io/v2",
        ),
    ] {
        let response = ask(&Target::Groups, &[(ACCEPT, accept)]);
        assert_eq!(response.headers()[VARY], "Accept", "{accept}");
        let form = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        assert_eq!(form.contains("as=APIGroupDiscoveryList"), kind == "APIGroupDiscoveryList");
        let document = document(response).await;
        assert_eq!((&document["kind"], &document["apiVersion"]), (&json!(kind), &json!(version)));
    }
    let mut nothing = HeaderMap::new();
    nothing.insert(ACCEPT, "text/html".parse().unwrap());
    let refused = respond(&builtin::registry().unwrap(), &Target::Groups, &nothing).unwrap_err();
    assert_eq!(refused.reason.code(), 406);
}

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again() {
    let first = ask(&Target::CoreVersions, &[(ACCEPT, V2)]);
    let tag = first.headers()[ETAG].to_str().unwrap().to_owned();
    let again = ask(&Target::CoreVersions, &[(ACCEPT, V2), (IF_NONE_MATCH, &tag)]);
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(again.headers()[ETAG].to_str().unwrap(), tag);
    assert!(again.into_body().collect().await.unwrap().to_bytes().is_empty());
    let other = ask(&Target::Groups, &[(ACCEPT, V2), (IF_NONE_MATCH, &tag)]);
    assert_eq!(other.status(), StatusCode::OK);
}

#[tokio::test]
async fn both_forms_tell_the_same() {
    let all = document(ask(&Target::Groups, &[(ACCEPT, V2)])).await;
    let group = all["items"].as_array().unwrap().iter();
    let group = group.into_iter().find(|one| one["metadata"]["name"] == "tinkerbell.org").unwrap();
    let version = &group["versions"][0];
    assert_eq!(
        (&version["version"], &version["freshness"]),
        (&json!("v1alpha1"), &json!("Current"))
    );
    let find = |list: &Value, field: &str, name: &str| {
        list.as_array().unwrap().iter().find(|one| one[field] == name).unwrap().clone()
    };
    let hardware = find(&version["resources"], "resource", "hardware");
    assert_eq!(hardware["scope"], "Namespaced");
    assert_eq!(hardware["responseKind"]["kind"], "Hardware");
    assert_eq!(hardware["subresources"][0]["subresource"], "status");
    let target =
        Target::Resources { group: "tinkerbell.org".to_owned(), version: "v1alpha1".to_owned() };
    let legacy = document(ask(&target, &[])).await;
    let entry = find(&legacy["resources"], "name", "hardware");
    assert_eq!(entry["shortNames"], hardware["shortNames"]);
    assert_eq!(entry["verbs"], hardware["verbs"]);
    assert_eq!(
        find(&legacy["resources"], "name", "hardware/status")["verbs"].as_array(),
        hardware["subresources"][0]["verbs"].as_array()
    );
    let core = Target::Resources { group: String::new(), version: "v1".to_owned() };
    let core = document(ask(&core, &[])).await;
    // Values of a real API server, so that clients do not see a migration.
    assert_eq!(
        find(&core["resources"], "name", "namespaces")["storageVersionHash"],
        "Q3oi5N2YM8M="
    );
    assert_eq!(find(&core["resources"], "name", "secrets")["storageVersionHash"], "S6u1pOWzb84=");
}
