//! Tests that a value is equal after conversion to YAML and back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::write;
use kube_yaml::read;

fn and_back(value: &Value) -> Value {
    let text = write(value.to_string().as_bytes()).unwrap();
    read(&text).unwrap_or_else(|error| panic!("{error}: {text}")).value
}

#[test]
fn texts_stay_texts() {
    let words = [
        "",
        "yes",
        "No",
        "on",
        "~",
        "null",
        "010",
        "0x1f",
        "1e3",
        "1:30",
        ".5",
        "-",
        "- a",
        "a: b",
        "#",
        "a #b",
        "{",
        "[",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%",
        "@",
        "`",
        "'",
        "\"",
        " a",
        "a ",
        "a\nb",
        "a\n",
        "\n",
        "a\n\n",
        "\ta",
        "a\tb",
        "=",
        "<<",
        "---",
        "...",
        "2026-11-22",
        "2026-11-22T01:02:03Z",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        "é",
        "😀",
        "?",
    ];
    for word in words {
        let value = json!({ word: [word, { "a": word }], "b": word });
        assert_eq!(and_back(&value), value, "{word:?}");
    }
    let plain = json!({ "a": [], "b": {}, "c": null, "d": [[1, -2, 1.5], true], "e": [{}] });
    assert_eq!(and_back(&plain), plain);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(text in "\\PC*|[\n\t :#'\"a-c-]*", key in "\\PC{1,8}") {
        let value = json!({ key: [&text, { "a": &text }] });
        prop_assert_eq!(and_back(&value), value);
    }
}
