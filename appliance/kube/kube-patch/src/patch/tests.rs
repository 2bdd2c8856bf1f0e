//! Tests with the examples of both RFCs' appendices, and with patches that need too many resources.

use super::Patch;
use crate::error::Reason;
use serde_json::{Value, json};

fn apply(target: Value, operations: &Value) -> Result<Value, Reason> {
    let patch = Patch::json(operations).map_err(|error| error.reason)?;
    patch.apply(target).map_err(|error| error.reason)
}

#[test]
fn merge_patch_follows_the_rfcs_table() {
    // RFC 7386 appendix A: original, patch, result (object patches only).
    for (original, patch, result) in [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b"}), json!({"a":null}), json!({})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
    ] {
        let patch = Patch::merge(patch).unwrap();
        assert_eq!(patch.apply(original).unwrap(), result);
    }
    assert_eq!(Patch::merge(json!(["a"])).unwrap_err().reason, Reason::BadRequest);
    assert_eq!(Patch::merge(json!(null)).unwrap_err().reason, Reason::BadRequest);
}

#[test]
fn json_patch_follows_the_rfcs_examples() {
    for (original, operations, result) in [
        (
            json!({"foo":"bar"}),
            json!([{"op":"add","path":"/baz","value":"qux"}]),
            Ok(json!({"baz":"qux","foo":"bar"})),
        ),
        (
            json!({"foo":["bar","baz"]}),
            json!([{"op":"add","path":"/foo/1","value":"qux"}]),
            Ok(json!({"foo":["bar","qux","baz"]})),
        ),
        (
            json!({"baz":"qux","foo":"bar"}),
            json!([{"op":"remove","path":"/baz"}]),
            Ok(json!({"foo":"bar"})),
        ),
        (
            json!({"foo":["bar","qux","baz"]}),
            json!([{"op":"remove","path":"/foo/1"}]),
            Ok(json!({"foo":["bar","baz"]})),
        ),
        (
            json!({"baz":"qux"}),
            json!([{"op":"replace","path":"/baz","value":"boo"}]),
            Ok(json!({"baz":"boo"})),
        ),
        (
            json!({"foo":{"a":1},"qux":{}}),
            json!([{"op":"move","from":"/foo/a","path":"/qux/b"}]),
            Ok(json!({"foo":{},"qux":{"b":1}})),
        ),
        (
            json!({"a":[1,2,3]}),
            json!([{"op":"move","from":"/a/0","path":"/a/2"}]),
            Ok(json!({"a":[2,3,1]})),
        ),
        (
            json!({"foo":"bar"}),
            json!([{"op":"add","path":"/child","value":{"grand":{}}}]),
            Ok(json!({"foo":"bar","child":{"grand":{}}})),
        ),
        (
            json!({"/":9,"~1":10}),
            json!([{"op":"test","path":"/~01","value":10}]),
            Ok(json!({"/":9,"~1":10})),
        ),
        (
            json!({"foo":["bar"]}),
            json!([{"op":"add","path":"/foo/-","value":["abc"]}]),
            Ok(json!({"foo":["bar",["abc"]]})),
        ),
        (json!({"a":1}), json!([{"op":"copy","from":"/a","path":"/b"}]), Ok(json!({"a":1,"b":1}))),
        // Not from the RFC: upstream's library adds a field that does not exist yet.
        (json!({"a":1}), json!([{"op":"replace","path":"/b","value":2}]), Ok(json!({"a":1,"b":2}))),
    ] {
        assert_eq!(apply(original, &operations), result, "{operations}");
    }
}

#[test]
fn json_patch_refuses_what_does_not_fit() {
    for (original, operations, result) in [
        (json!({"a":1}), json!([{"op":"test","path":"/a","value":2}]), Err(Reason::Invalid)),
        (json!({"a":1}), json!([{"op":"add","path":"/b/c","value":2}]), Err(Reason::Invalid)),
        (json!({"a":{}}), json!([{"op":"move","from":"/a","path":"/a/b"}]), Err(Reason::Invalid)),
        (json!({"a":[1]}), json!([{"op":"add","path":"/a/01","value":1}]), Err(Reason::Invalid)),
        (json!({"a":[1]}), json!([{"op":"remove","path":"/a/1"}]), Err(Reason::Invalid)),
        (json!({"a":[1]}), json!([{"op":"replace","path":"/a/1","value":1}]), Err(Reason::Invalid)),
        (json!({}), json!([{"op":"replace","path":"/a/b","value":1}]), Err(Reason::Invalid)),
        (json!({}), json!([{"op":"remove","path":""}]), Err(Reason::Invalid)),
        (json!({}), json!([{"op":"fly","path":"/a"}]), Err(Reason::Invalid)),
        (json!({}), json!([{"op":"add","path":"a","value":1}]), Err(Reason::Invalid)),
        (json!({}), json!([{"op":"add","path":"/a"}]), Err(Reason::Invalid)),
        (json!({}), json!({"op":"add"}), Err(Reason::BadRequest)),
    ] {
        assert_eq!(apply(original, &operations), result, "{operations}");
    }
}

#[test]
fn a_small_patch_cannot_ask_for_much() {
    let copy = |path: String| json!({ "op": "copy", "from": "/a", "path": path });
    let mut wide = vec![json!({ "op": "add", "path": "/a", "value": { "x": "y".repeat(100) } })];
    wide.extend((0..200).map(|at| copy(format!("/a/{at}"))));
    assert_eq!(apply(json!({}), &json!(wide)), Err(Reason::RequestEntityTooLarge));
    // Copies the whole object into itself, one level deeper each time.
    let deep: Vec<Value> =
        (0..200).map(|_| json!({ "op": "copy", "from": "", "path": "/a" })).collect();
    assert_eq!(apply(json!({}), &json!(deep)), Err(Reason::Invalid));
    let path = |levels: usize| "/a".repeat(levels);
    let ladder: Vec<Value> =
        (1..200).map(|at| json!({ "op": "add", "path": path(at), "value": {} })).collect();
    assert_eq!(apply(json!({}), &json!(ladder)), Err(Reason::Invalid));
    let long = json!({ "a": vec![0; 200_000] });
    let shift: Vec<Value> =
        (0..1000).map(|_| json!({ "op": "move", "from": "/a/0", "path": "/a/-" })).collect();
    assert_eq!(apply(long, &json!(shift)), Err(Reason::RequestEntityTooLarge));
}
