//! OpenAPI documents of the box, compared with those of a real kube-apiserver.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use peers::{Cluster, ClusterConfig, Kubectl, Tinboxd};
use serde_json::{Map, Value, json};

/// Fields of an operation that clients read.
const OF_OPERATIONS: [&str; 4] =
    ["operationId", "tags", "x-kubernetes-action", "x-kubernetes-group-version-kind"];

/// Accepted differences: the end of their path, and the reason.
const EXPECTED: [(&str, &str); 3] = [
    (
        "\"customresourcedefinitions\"/storageVersionHash",
        "upstream still stores definitions in a version that it no longer serves",
    ),
    ("meta.v1.DeleteOptions/x-kubernetes-group-version-kind", "only versions that are served"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "no store here has such an error"),
];

fn get(kubectl: &Kubectl, path: &str) -> Result<Value> {
    let printed = kubectl.run(&["get", "--raw", path], "")?;
    ensure!(printed.success, "cannot get {path}: {}", printed.err);
    serde_json::from_str(&printed.out).with_context(|| format!("no JSON at {path}"))
}

/// A schema without our own descriptions, and with one spelling for equivalent forms.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut out: Map<String, Value> = fields
                .iter()
                .filter(|(name, value)| *name != "description" || !value.is_string())
                .map(|(name, value)| (name.clone(), bare(value)))
                .collect();
            // An empty default is equal to no default.
            let nothing = [json!({}), json!(""), json!(0), json!(false)];
            if out.get("default").is_some_and(|default| nothing.contains(default)) {
                out.remove("default");
            }
            if let Some([one]) = out.get("allOf").and_then(Value::as_array).map(Vec::as_slice)
                && let Some(reference) = one.get("$ref").cloned()
            {
                out.remove("allOf");
                out.insert("$ref".to_owned(), reference);
            }
            if let Some(Value::Array(names)) = out.get_mut("required") {
                names.sort_by_key(ToString::to_string);
            }
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(bare).collect(),
        value => value.clone(),
    }
}

/// Appends the paths at which two values differ.
fn compare(place: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(left), Value::Object(right)) => {
            let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for name in names {
                let (left, right) = (&ours[name], &theirs[name]);
                compare(&format!("{place}/{name}"), left, right, found);
            }
        }
        _ if ours != theirs => found.push(format!("{place}: {ours} instead of {theirs}")),
        _ => {}
    }
}

fn names(parameters: [&Value; 2]) -> BTreeSet<String> {
    let all = parameters.into_iter().filter_map(Value::as_array).flatten();
    all.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

/// Appends the differences between operations of one path; a parameter may belong to the path or to
/// each operation.
fn compare_paths(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    let methods = ["get", "put", "post", "delete", "patch"];
    for method in methods.into_iter().filter(|method| ours.get(method).is_some()) {
        let (left, right) = (&ours[method], &theirs[method]);
        let place = format!("{path} {method}");
        for field in OF_OPERATIONS {
            compare(&format!("{place} {field}"), &left[field], &right[field], found);
        }
        let left_names = names([&ours["parameters"], &left["parameters"]]);
        let right_names = names([&theirs["parameters"], &right["parameters"]]);
        for name in left_names.symmetric_difference(&right_names) {
            found.push(format!("{place} parameter {name}"));
        }
        let answers = |operation: &Value| -> Value {
            let all = operation["responses"].as_object().into_iter().flatten();
            let schema = |answer: &Value| answer["content"]["application/json"]["schema"].clone();
            all.map(|(code, answer)| (code.clone(), schema(answer))).collect()
        };
        compare(&format!("{place} answers"), &answers(left), &answers(right), found);
    }
}

fn unexpected(found: Vec<String>) -> Vec<String> {
    let known = |one: &String| {
        let place = one.split(": ").next().unwrap_or_default();
        EXPECTED.iter().any(|(end, _)| place.ends_with(end))
    };
    found.into_iter().filter(|one| !known(one)).collect()
}

#[test]
fn kinds_look_as_they_do_in_a_real_cluster() -> Result<()> {
    let (cluster, tinboxd) = (Cluster::start(&ClusterConfig::default())?, Tinboxd::start()?);
    let (theirs, ours) = (cluster.kubectl()?, tinboxd.kubectl()?);
    let index = get(&ours, "/openapi/v3")?;
    let real = get(&theirs, "/openapi/v3")?;
    let (mut found, mut compared) = (Vec::new(), 0);
    for (name, at) in index["paths"].as_object().context("an index has paths")? {
        let Some(real) = real["paths"][name]["serverRelativeURL"].as_str() else { continue };
        let mine = get(&ours, at["serverRelativeURL"].as_str().unwrap_or_default())?;
        let real = get(&theirs, real)?;
        let schemas = mine["components"]["schemas"].as_object().context("there are schemas")?;
        for (schema, mine) in schemas {
            let real = &real["components"]["schemas"][schema];
            compare(&format!("{name} {schema}"), &bare(mine), &bare(real), &mut found);
            compared += 1;
        }
        for (path, mine) in mine["paths"].as_object().context("there are paths")? {
            compare_paths(path, mine, &real["paths"][path], &mut found);
        }
    }
    ensure!(compared > 50, "only {compared} schemas are in both");
    let found = unexpected(found);
    ensure!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    Ok(())
}

/// The documents of the groups and versions that a server serves.
fn served(kubectl: &Kubectl) -> Result<BTreeSet<String>> {
    let groups = get(kubectl, "/apis")?;
    let mut documents = BTreeSet::from(["/api/v1".to_owned()]);
    for group in groups["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["groupVersion"].as_str().unwrap_or_default();
            documents.insert(format!("/apis/{version}"));
        }
    }
    Ok(documents)
}

#[test]
fn resources_are_told_of_as_in_a_real_cluster() -> Result<()> {
    let (cluster, tinboxd) = (Cluster::start(&ClusterConfig::default())?, Tinboxd::start()?);
    let (theirs, ours) = (cluster.kubectl()?, tinboxd.kubectl()?);
    let real = served(&theirs)?;
    let (mut found, mut compared) = (Vec::new(), 0);
    for document in served(&ours)?.intersection(&real) {
        let (mine, real) = (get(&ours, document)?, get(&theirs, document)?);
        for mine in mine["resources"].as_array().into_iter().flatten() {
            let all = real["resources"].as_array().into_iter().flatten();
            let real = all.into_iter().find(|one| one["name"] == mine["name"]);
            let place = format!("{document} {}", mine["name"]);
            compare(&place, mine, real.unwrap_or(&Value::Null), &mut found);
            compared += 1;
        }
    }
    ensure!(compared > 10, "only {compared} resources are in both");
    let found = unexpected(found);
    ensure!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
    Ok(())
}
