//! The compiled-in custom kinds equal upstream's: the same names, fields, validations, defaults,
//! CEL rules and columns. Only the descriptions differ.

use std::path::{Path, PathBuf};

use peers::Tinboxd;
use serde_json::{Map, Value};

/// Folders of the compiled-in definitions.
const MANIFESTS: [&str; 2] = [
    "../../appliance/kube/resources/src/builtin/manifests",
    "../../appliance/api/src/infrastructure",
];
/// Schema field that the box's definitions may omit, and upstream's CRDs have.
const WORDS: &str = "description";
/// Field names of the box that upstream lacks: name of the kind, place in the first version of the
/// definition, names. No other difference is allowed.
const OF_THE_BOX: [(&str, &str, &[&str]); 17] = [
    (WORKFLOWS, "/schema/openAPIV3Schema/properties/spec/properties", &["paused", "retry"]),
    (
        WORKFLOWS,
        "/schema/openAPIV3Schema/properties/status/properties",
        &["attempts", "attemptStart", "chosenDisks", "ended", "history", "requests"],
    ),
    (
        WORKFLOWS,
        "/schema/openAPIV3Schema/properties/status/properties/tasks/items/properties/actions/items/\
         properties",
        &[
            "attempts",
            "bootID",
            "deadline",
            "history",
            "onFailure",
            "onTimeout",
            "retried",
            "retries",
            "retryAt",
            "retryWait",
        ],
    ),
    (
        "tinkerbellclusters.infrastructure.cluster.x-k8s.io",
        "/schema/openAPIV3Schema",
        &["x-kubernetes-validations"],
    ),
    (
        "tinkerbellclusters.infrastructure.cluster.x-k8s.io",
        "/schema/openAPIV3Schema/properties/spec/properties",
        &["controlPlaneEndpointProvider"],
    ),
    (
        "tinkerbellclusters.infrastructure.cluster.x-k8s.io",
        "/schema/openAPIV3Schema/properties/status/properties",
        &["failureDomains"],
    ),
    (
        "tinkerbellmachines.infrastructure.cluster.x-k8s.io",
        "/schema/openAPIV3Schema/properties/spec/properties",
        MACHINE_FIELDS,
    ),
    (
        "tinkerbellmachines.infrastructure.cluster.x-k8s.io",
        "/schema/openAPIV3Schema/properties/status/properties",
        &["failureDomain", "instanceState"],
    ),
    ("machines.bmc.tinkerbell.org", CONNECTION, &["plug", "poe", "wakeOnLAN"]),
    ("machines.bmc.tinkerbell.org", REDFISH, &["scheme"]),
    (
        "machines.bmc.tinkerbell.org",
        "/schema/openAPIV3Schema/properties/status/properties",
        &["capabilities", "missingCapabilities", "powerReason"],
    ),
    ("tasks.bmc.tinkerbell.org", CONNECTION, &["plug", "poe", "wakeOnLAN"]),
    ("tasks.bmc.tinkerbell.org", REDFISH, &["scheme"]),
    (TEMPLATES, "", &["additionalPrinterColumns", "subresources"]),
    (TEMPLATES, "/schema/openAPIV3Schema/properties", &["status"]),
    (
        TEMPLATES,
        "/schema/openAPIV3Schema/properties/spec/properties/template/properties",
        &["metadata"],
    ),
    (
        TEMPLATES,
        "/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties",
        MACHINE_FIELDS,
    ),
];
const WORKFLOWS: &str = "workflows.tinkerbell.org";
const CONNECTION: &str = "/schema/openAPIV3Schema/properties/spec/properties/connection/properties/\
                          providerOptions/properties";
const REDFISH: &str = "/schema/openAPIV3Schema/properties/spec/properties/connection/properties/\
                       providerOptions/properties/redfish/properties";
const TEMPLATES: &str = "tinkerbellmachinetemplates.infrastructure.cluster.x-k8s.io";
const MACHINE_FIELDS: &[&str] =
    &["failureDomain", "hardwareSelector", "osImage", "userDataSecret", "wipeOnRelease"];

fn published(script: &str, arguments: &[&str]) -> Vec<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    peers::printed(&script, arguments).unwrap()
}

/// Definition files of upstream: Tinkerbell's seven and CAPT's three.
fn upstream() -> Vec<PathBuf> {
    let mut files = published("tinkerbell/definitions.sh", &["v1alpha1"]);
    files.extend(published("kubernetes/definitions.sh", &[]));
    assert_eq!(files.len(), 10, "{files:?}");
    files
}

/// Files of the definitions that are built into the box.
pub fn files() -> Vec<PathBuf> {
    let folders = MANIFESTS.map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let entries = folders.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let files = entries.map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|it| it == "json")).collect()
}

fn ours() -> Vec<Value> {
    let read = |file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    files().into_iter().map(read).collect()
}

/// Removes the descriptions from a schema; a property named `description` stays.
fn wordless(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| *key != WORDS || !value.is_string());
            let fields = |value: &Value| -> Value {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .map(|(name, below)| (name.clone(), wordless(below)))
                    .collect::<Map<_, _>>()
                    .into()
            };
            let kept = kept.map(|(key, value)| match key.as_str() {
                "properties" => (key.clone(), fields(value)),
                _ => (key.clone(), wordless(value)),
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(wordless).collect(),
        other => other.clone(),
    }
}

/// Parts of a definition that are compared: all but descriptions and metadata of one side.
fn essence(crd: &Value, versions: &[&str]) -> Value {
    let mut crd = crd.clone();
    crd["metadata"].as_object_mut().unwrap().remove("annotations");
    let all = crd["spec"]["versions"].as_array_mut().unwrap();
    all.retain(|version| versions.contains(&version["name"].as_str().unwrap()));
    for version in all {
        *version = wordless(version);
    }
    crd
}

/// A definition without the fields of the box, each of which must exist.
fn without_own(definition: &Value) -> Value {
    let mut definition = definition.clone();
    let name = definition["metadata"]["name"].clone();
    for (_, place, fields) in OF_THE_BOX.iter().filter(|(kind, ..)| name == *kind) {
        let version = &mut definition["spec"]["versions"][0];
        let there = version.pointer_mut(place).unwrap().as_object_mut().unwrap();
        for field in *fields {
            assert!(there.remove(*field).is_some(), "{name}: {place} has no {field}");
        }
    }
    definition
}

#[test]
fn compiled_in_kinds_are_upstreams() {
    let ours = ours();
    for file in upstream() {
        let text = std::fs::read_to_string(&file).unwrap();
        let theirs: Value = serde_saphyr::from_str(&text).unwrap();
        let name = &theirs["metadata"]["name"];
        let own = ours.iter().find(|own| own["metadata"]["name"] == *name);
        let own = own.unwrap_or_else(|| panic!("{name} is not compiled in"));
        let own = &without_own(own);
        let versions = theirs["spec"]["versions"].as_array().unwrap().iter();
        let versions: Vec<&str> = versions.map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(essence(own, &versions), essence(&theirs, &versions), "{name}");
    }
}

#[test]
fn installers_find_their_definitions_in_place() {
    let tinboxd = Tinboxd::start().unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    let mut apply = vec!["apply".to_owned(), "--server-side=false".to_owned()];
    for file in upstream() {
        apply.push(format!("--filename={}", file.display()));
    }
    let apply: Vec<&str> = apply.iter().map(String::as_str).collect();
    let before = kubectl.run(&["get", "crds", "-o", "jsonpath={.items[*].spec}"], "").unwrap();
    let applied = kubectl.run(&apply, "").unwrap();
    assert!(applied.success, "{applied:?}");
    let after = kubectl.run(&["get", "crds", "-o", "jsonpath={.items[*].spec}"], "").unwrap();
    assert_eq!(before.out, after.out);
    let wait = ["wait", "--for=condition=Established", "crds", "--all", "--timeout=120s"];
    let waited = kubectl.run(&wait, "").unwrap();
    assert!(waited.success, "{waited:?}");
    // A newer generation of the same kinds applies too; the message names fields that the box
    // lacks.
    let newer = published("tinkerbell/definitions.sh", &["v1alpha2"]);
    let newer = newer.iter().find(|file| file.ends_with("tinkerbell.org_hardware.yaml")).unwrap();
    let applied = kubectl.run(&["apply", "-f", &newer.display().to_string()], "").unwrap();
    let told = "keeps the definition of the box, without version v1alpha2";
    assert!(applied.success && applied.err.contains(told), "{applied:?}");
}
