//! Malicious rules. Each would run for hours if the cost of a step were less than its time.

use schema::{Schema, check_structural};
use serde_json::{Value, json};

fn ruled(rule: &str) -> Value {
    json!({"type": "object", "properties": {
        "a": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "string"}},
    }, "x-kubernetes-validations": [{"rule": rule}]})
}

/// Steps whose time is proportional to the size of their operands, but whose count is small.
#[test]
fn no_step_is_longer_than_what_it_costs() {
    let names: Vec<String> = (0..100_000).map(|index| format!("name{index}")).collect();
    let map: serde_json::Map<_, _> = names.iter().map(|name| (name.clone(), json!("x"))).collect();
    let object = json!({
        "l": vec![0; 300_000], "s": names, "m": map, "t": "a".repeat(1_000_000),
        "o": names.iter().map(|name| json!({ "k": name })).collect::<Vec<_>>(),
    });
    let text = |more: Value| {
        let mut text = json!({"type": "string"});
        text.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        text
    };
    let source = |rule: &str| {
        json!({"type": "object", "properties": {
            "l": {"type": "array", "items": {"type": "integer"}},
            "s": {"type": "array", "items": text(json!({})), "x-kubernetes-list-type": "set"},
            "o": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"], "items": {
                    "type": "object", "properties": {"k": text(json!({}))}}},
            "m": {"type": "object", "additionalProperties": text(json!({}))},
            "t": text(json!({})),
        }, "x-kubernetes-validations": [{"rule": rule}]})
    };
    for rule in [
        "self.l.all(x, self.l[0] == 0)",
        "self.l.all(x, self.?l[?0].hasValue())",
        "[self.l].all(l, self.l.all(x, (l + [1]).size() > 0))",
        "self.l.all(x, self.l.exists(y, true))",
        "self.l.all(x, self.m.exists(y, true))",
        "self.l.all(x, self.m == self.m)",
        "self.l.all(x, self.m != {'a': 'b'})",
        "self.l.all(x, self.t.size() > 0)",
        "self.l.all(x, self.t != 'a')",
        "self.l.all(x, self.l != [1])",
        "self.s + self.s == self.s",
        "self.o + self.o == self.o || self.o == self.o",
        "self.s.distinct().size() > 0",
        "sets.contains(self.s, self.s)",
        "self.t.lastIndexOf(self.t + 'a') < 0",
        "self.t.indexOf('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab') < 0",
        "self.t.replace('a', self.t) == ''",
        "self.l.all(x, 'a'.find('(a{1,30}){1,30}') == '')",
        "lists.range(1000000000000000).size() > 0",
        "'%.99999999999f'.format([1.0]) == ''",
        "[1.0, 0.0 / 0.0, 2.0, 0.0 / 0.0].sort().size() == 4",
    ] {
        let schema = Schema::parse(&source(rule)).expect("the schema parses");
        let _ = schema.validate(&object, None);
    }
}

/// Values and types that contain another value or type twice, over many levels.
#[test]
fn what_doubles_is_not_followed() {
    let doubled = |times: usize, double: fn(&str) -> String| {
        (0..times).fold("[[1]]".to_owned(), |made, level| {
            let name = format!("x{level}");
            format!("{made}.map({name}, {})", double(&name))
        })
    };
    let lists = doubled(40, |name| format!("[{name}, {name}]"));
    let maps = doubled(40, |name| format!("{{{name}: {name}}}"));
    let values = doubled(40, |name| format!("{{'a': {name}, 'b': {name}}}"));
    let object = json!({"a": 1, "l": ["x"]});
    for rule in [
        format!("{lists} == {lists}"),
        format!("dyn({lists}) == 1"),
        format!("{lists} in [{lists}]"),
        format!("'%s'.format({lists}) == ''"),
        format!("{lists}.isSorted()"),
        format!("{maps} == 1"),
        format!("{maps} == {maps}"),
        format!("{values} == {values}"),
        format!("optional.of({values}) == optional.of({values})"),
    ] {
        let source = ruled(&rule);
        let _ = check_structural(&source, "schema");
        let _ = Schema::parse(&source).expect("the schema parses").validate(&object, None);
    }
}

#[test]
fn what_is_told_of_rules_is_bounded() {
    let rule = format!("{}a{}", " ".repeat(12_000), "||a".repeat(180));
    let rules = vec![json!({"rule": rule}); 200];
    let source = json!({"type": "object", "x-kubernetes-validations": rules});
    let length: usize = check_structural(&source, "s").iter().map(|it| it.to_string().len()).sum();
    assert!((1..8 << 20).contains(&length), "{length} bytes");
}

#[test]
fn what_is_told_of_values_is_bounded() {
    let allowed: Vec<String> = (0..50_000).map(|index| format!("word{index}")).collect();
    let source = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "string", "enum": allowed}}}});
    let schema = Schema::parse(&source).expect("the schema parses");
    let words: Vec<String> = (0..100_000).map(|index| format!("other{index}")).collect();
    let found = schema.validate(&json!({"l": words}), None);
    let length: usize = found.iter().map(|error| error.to_string().len()).sum();
    assert!((1..16 << 20).contains(&length), "{length} bytes");
}

#[test]
fn patterns_of_a_schema_share_what_they_may_take() {
    let field = |index: usize| {
        let pattern = format!("^[[:alpha:]]{{{}}}[\\pL\\d]{{300}}$", index + 100);
        (format!("f{index}"), json!({"type": "string", "pattern": pattern}))
    };
    let fields: serde_json::Map<_, _> = (0..400).map(field).collect();
    let source = json!({"type": "object", "properties": fields});
    let refused = check_structural(&source, "schema");
    assert!(refused.iter().any(|error| error.detail.contains("too large")), "{refused:?}");
    let one = json!({"type": "string", "pattern": "^[\\pL\\d]{8}$"});
    let fields: serde_json::Map<_, _> =
        (0..400).map(|at| (format!("f{at}"), one.clone())).collect();
    let source = json!({"type": "object", "properties": fields});
    assert!(check_structural(&source, "schema").is_empty(), "one pattern is compiled once");
}
