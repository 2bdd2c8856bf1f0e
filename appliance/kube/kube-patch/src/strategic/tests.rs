//! Table of patches. Expected results are those of a real API server; where it returns an internal
//! error, this crate refuses the patch.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value, json};

use super::apply;
use crate::error::Reason;

fn pod(containers: Value) -> Value {
    json!({ "kind": "Pod", "spec": { "containers": containers } })
}

#[test]
fn lists_of_objects_are_merged_by_key() {
    let two = || pod(json!([{ "name": "a", "image": "1" }, { "name": "b", "image": "1" }]));
    for (patch, expected) in [
        (json!([{ "name": "b", "image": "2" }]), json!([["a", "1"], ["b", "2"]])),
        (json!([{ "name": "c", "image": "3" }]), json!([["c", "3"], ["a", "1"], ["b", "1"]])),
        (json!([{ "name": "a", "$patch": "delete" }]), json!([["b", "1"]])),
        (json!([{ "$patch": "replace" }, { "name": "z", "image": "9" }]), json!([["z", "9"]])),
        (json!([]), json!([["a", "1"], ["b", "1"]])),
    ] {
        let patched = apply("Pod", two(), &json!({ "spec": { "containers": patch } })).unwrap();
        let list = patched["spec"]["containers"].as_array().unwrap().iter();
        let list: Vec<Value> = list.map(|one| json!([one["name"], one["image"]])).collect();
        assert_eq!(json!(list), expected, "{patch}");
    }
}

#[test]
fn orders_are_set() {
    let three = || pod(json!([{ "name": "a" }, { "name": "b" }, { "name": "c" }]));
    let names = |patched: &Value| -> Vec<String> {
        let list = patched["spec"]["containers"].as_array().unwrap().iter();
        list.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    for (order, list, expected) in [
        (json!(["c", "a"]), None, vec!["b", "c", "a"]),
        (json!(["d", "a"]), Some(json!([{ "name": "d" }])), vec!["d", "a", "b", "c"]),
    ] {
        let order: Vec<Value> =
            order.as_array().unwrap().iter().map(|name| json!({ "name": name })).collect();
        let mut spec = json!({ "$setElementOrder/containers": order });
        if let Some(list) = list {
            spec["containers"] = list;
        }
        let patched = apply("Pod", three(), &json!({ "spec": spec })).unwrap();
        assert_eq!(names(&patched), expected, "{spec}");
    }
    let wrong = json!({ "spec": {
        "$setElementOrder/containers": [{ "name": "x" }], "containers": [{ "name": "d" }],
    } });
    assert_eq!(apply("Pod", three(), &wrong).unwrap_err().reason, Reason::BadRequest);
}

#[test]
fn scalars_and_fields() {
    let secret = || {
        json!({
            "kind": "Secret", "metadata": { "name": "s", "finalizers": ["a/b", "c/d"] },
            "data": { "x": "1", "y": "2" },
        })
    };
    for (patch, pointer, expected) in [
        (json!({ "data": { "x": null, "z": "3" } }), "/data", json!({ "y": "2", "z": "3" })),
        (json!({ "data": { "$patch": "replace", "z": "3" } }), "/data", json!({ "z": "3" })),
        (json!({ "data": { "$patch": "delete" } }), "/data", json!({})),
        (json!({ "data": { "$retainKeys": ["y"], "y": "5" } }), "/data", json!({ "y": "5" })),
        (json!({ "data": null }), "/data", Value::Null),
        (json!({ "type": { "a": null, "b": 1 } }), "/type", json!({ "b": 1 })),
        (
            json!({ "metadata": { "finalizers": ["e/f", "a/b"] } }),
            "/metadata/finalizers",
            json!(["e/f", "a/b", "c/d"]),
        ),
        (
            json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["a/b", "q/q"] } }),
            "/metadata/finalizers",
            json!(["c/d"]),
        ),
        (
            json!({ "metadata": { "$deleteFromPrimitiveList/nothing": ["a/b"] } }),
            "/metadata/nothing",
            Value::Null,
        ),
    ] {
        let patched = apply("Secret", secret(), &patch).unwrap();
        assert_eq!(*patched.pointer(pointer).unwrap_or(&Value::Null), expected, "{patch}");
    }
    for (patch, reason) in [
        (json!([]), Some(Reason::BadRequest)),
        (json!({ "data": { "$patch": "merge" } }), Some(Reason::Invalid)),
        (json!({ "data": { "$retainKeys": ["y"], "z": "5" } }), Some(Reason::BadRequest)),
        (json!({ "data": { "$retainKeys": "y" } }), Some(Reason::BadRequest)),
        (json!({ "metadata": { "$setElementOrder/finalizers": "a" } }), Some(Reason::BadRequest)),
        (json!({ "metadata": { "$setElementOrder": [] } }), Some(Reason::BadRequest)),
        (json!({ "metadata": { "$deleteFromPrimitiveList": [] } }), Some(Reason::BadRequest)),
        (json!({ "metadata": { "finalizers": [{}] } }), Some(Reason::Invalid)),
        (json!({ "metadata": { "ownerReferences": [1] } }), None),
    ] {
        let answer = apply("Secret", secret(), &patch);
        assert_eq!(answer.as_ref().err().map(|error| error.reason), reason, "{patch}: {answer:?}");
    }
    let owned = json!({ "metadata": { "ownerReferences": [{ "uid": "1" }] } });
    let nameless = json!({ "metadata": { "ownerReferences": [{ "name": "x" }] } });
    assert_eq!(apply("Secret", owned, &nameless).unwrap_err().reason, Reason::Invalid);
}

#[test]
fn many_keys_are_kept_in_little_time() {
    let cost = |keys: usize| {
        let names: Vec<String> = (0..keys).map(|index| format!("name{index}")).collect();
        let data: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!("a"))).collect();
        let object = json!({ "data": data });
        let mut patch = object.clone();
        patch["data"]["$retainKeys"] = json!(names);
        let began = cpu_time();
        let patched = apply("Secret", object.clone(), &patch).unwrap();
        let took = cpu_time() - began;
        assert_eq!(patched, object);
        took
    };
    // Ten times the keys take ten times the time; with a linear search for each key, a hundred
    // times.
    let least = |keys| (0..3).map(|_| cost(keys)).min().unwrap();
    let (few, many) = (least(3_000), least(30_000));
    assert!(many < few * 30, "3,000 keys take {few:?}, 30,000 take {many:?}");
}

/// CPU time of this thread, which does not grow while another thread runs.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}
