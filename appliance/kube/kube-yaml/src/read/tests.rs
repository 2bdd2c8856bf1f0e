//! Tests of bodies, compared with the results of other parsers.

use serde_json::{Value, json};

use super::{Unreadable, read};

fn value(text: &str) -> Value {
    read(text).unwrap().value
}

/// The expected values were stored by a real API server for the same bodies.
#[test]
fn scalars_are_those_of_yaml_1_1() {
    let text = "\
a: yes\nb: 0o7\nc: 010\nd: 2020-01-01\ne: ~\nf: 1e3\ng: 0x10\nh: 1:30\ni: \"yes\"\n\
j: 1_000\nk: 0b11\nl: .5\nm: -0x1\nn1: +12\no: !!str 12\np: 12e3\nq: 1.0\nr: 190:20:30\n\
s: 0777\nt: 08\nu: NULL\nv: ''\nw: |\n  hi\nx:\ny1: Off\nz: -.5\n";
    let expected = json!({
        "a": true, "b": 7, "c": 8, "d": "2020-01-01", "e": null, "f": 1000, "g": 16,
        "h": "1:30", "i": "yes", "j": 1000, "k": 3, "l": 0.5, "m": -1, "n1": 12, "o": "12",
        "p": 12000, "q": 1, "r": "190:20:30", "s": 511, "t": 8, "u": null, "v": "",
        "w": "hi\n", "x": null, "y1": false, "z": -0.5,
    });
    assert_eq!(value(text), expected);
}

#[test]
fn keys_anchors_and_documents() {
    let text = "---\nn: 1\ntrue: 2\n1: 3\n1.5: 4\nu: &a {x: 1}\nv: *a\nw: {<<: *a, z: 2}\n\
        l: [<<, {<<: [*a, {x: 9, yy: 8}], q: 0}]\n---\nother: document\n";
    let expected = json!({
        "false": 1, "true": 2, "1": 3, "1.5": 4, "u": { "x": 1 }, "v": { "x": 1 },
        "w": { "x": 1, "z": 2 }, "l": ["<<", { "x": 1, "yy": 8, "q": 0 }],
    });
    assert_eq!(value(text), expected);
    assert_eq!(value(""), Value::Null);
    assert_eq!(value("# nothing\n"), Value::Null);
    assert_eq!(value("{\"a\": [1, \"b\"]}"), json!({ "a": [1, "b"] }));
    let twice = read("a: 1\nb: 2\na: 3\n").unwrap();
    assert_eq!(twice.value, json!({ "a": 3, "b": 2 }));
    assert_eq!(twice.duplicates, ["line 3: key \"a\" already set in map"]);
}

/// The expected values come from Go's library.
#[test]
fn a_block_ends_as_its_body_does() {
    for (text, expected) in [
        ("- |\n  l1\n  l2", "l1\nl2"),
        ("- |\n  l1\n  l2\n", "l1\nl2\n"),
        ("- >\n  l1\n  l2", "l1 l2"),
        ("- |+\n  l1", "l1"),
        ("- |-\n  l1", "l1"),
        ("- |\n  é", "é"),
        ("- |\n  l1\n- x", "l1\n"),
        ("- |\n  l1\n# x", "l1\n"),
    ] {
        assert_eq!(value(text)[0], expected, "{text:?}");
    }
}

#[test]
fn traps_are_refused() {
    let bomb: String =
        (0..40).map(|at| format!("a{}: &a{} [*a{at}, *a{at}, *a{at}]\n", at + 1, at + 1)).collect();
    assert_eq!(read(&format!("a0: &a0 [x]\n{bomb}")), Err(Unreadable::TooMuch));
    let deep: String = (0..200).map(|at| format!("a{}: &a{} [*a{at}]\n", at + 1, at + 1)).collect();
    assert_eq!(read(&format!("a0: &a0 [x]\n{deep}")), Err(Unreadable::TooMuch));
    assert!(read(&"[".repeat(100_000)).is_err());
    assert!(read(&format!("a: {}", "{b: ".repeat(5000))).is_err());
    for bad in [
        "a: .inf\n",
        "a: [.nan]\n",
        "a: &x [*x]\n",
        "? [a]\n: b\n",
        "a: *b\n",
        "<<: 1\n",
        "a: [\n",
        "a: b: c\n",
        "-) a\n- b: ~",
    ] {
        let error = read(bad).unwrap_err();
        assert!(error.to_string().starts_with("yaml: line "), "{bad:?}: {error}");
    }
}
