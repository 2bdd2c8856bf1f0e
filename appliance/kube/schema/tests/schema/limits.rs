//! Schemas and rules that are too deep, too long or too expensive are rejected, quickly and without
//! a crash.

use schema::{Schema, check_structural};
use serde_json::{Value, json};

fn ruled(rule: &str) -> Value {
    json!({"type": "object", "properties": {
        "a": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "string"}},
    }, "x-kubernetes-validations": [{"rule": rule}]})
}

/// Returns true if a rule is rejected or fails; it must not crash.
fn is_refused(rule: &str) -> bool {
    let source = ruled(rule);
    let refused = !check_structural(&source, "schema").is_empty();
    let schema = Schema::parse(&source).expect("the schema parses");
    let object = json!({"a": 1, "l": ["x"]});
    refused && !schema.validate(&object, None).is_empty()
}

#[test]
fn deep_rules_are_refused() {
    for rule in [
        format!("{}true{}", "(".repeat(400), ")".repeat(400)),
        format!("{}true{}", "(".repeat(20_000), ")".repeat(20_000)),
        format!("{}self.a > 1", "!".repeat(5_000)),
        format!("self.a{} > 1", " + 1".repeat(900)),
        format!("self.a{} > 1", " + 1".repeat(5_000)),
        format!("self{} == 1", ".a".repeat(900)),
        format!("{}1{} == 1", "[".repeat(300), "]".repeat(300)),
        format!("{}true{}", "true ? ".repeat(400), " : false".repeat(400)),
        format!("{}true{}", "self.l.all(x, ".repeat(300), ")".repeat(300)),
        "a".repeat(20_000),
        format!("'{}", "x".repeat(10_000)),
        "(".repeat(999),
        format!("self.a{}", " in self.l".repeat(1_500)),
        format!("// '\n1{} > 1", "+1".repeat(7_000)),
        format!("r'\\' != 'a' && 1{} > 1", "+1".repeat(7_000)),
        format!("'\\q + 1{} > 1", "+1".repeat(7_000)),
        // In these rules, the repeated operators are outside of any text.
        format!("//'\n1{} > 1", "+1".repeat(8_000)),
        format!("r'\\'==''{} == ''", "+''".repeat(4_000)),
        format!("'\n'{} > 1", " +1".repeat(5_000)),
        format!("1{}", " in 1".repeat(3_000)),
    ] {
        assert!(is_refused(&rule), "must be refused: {}…", &rule[..rule.len().min(60)]);
    }
}

#[test]
fn rules_that_would_run_long_are_stopped() {
    let words: Vec<String> = (0..20_000).map(|index| format!("word{index}")).collect();
    let object = json!({"a": 1, "l": words});
    for rule in [
        "self.l.all(x, self.l.all(y, self.l.all(z, x != 'a' + y + z)))",
        "self.l.all(x, x.matches('^(a|b|c|d)*(e|f|g)+x{1,100}y{1,100}$') || self.l.size() > 1)",
        "self.l.map(x, self.l.map(y, x + y)).size() > 1",
        "self.l.map(x, self.l.join('-')).size() > 1",
        "self.l.exists(x, self.l.exists(y, x + y == 'z'))",
        "self.l.join('a').replace('a', self.l.join('b')).size() > 1",
        "self.l.all(x, x in self.l && self.l.indexOf(x) >= 0 && self.l == self.l)",
        "self.l.all(x, self.l.all(y, self.l[0] != '' && y != ''))",
        "self.l.all(x, self.l.map(y, y).exists(y, y != ''))",
        "[self.l].all(l, l.all(x, (l + [x]).size() > 0))",
        "self.l.all(x, (self.l + self.l).size() > 0)",
        "lists.range(100000000000).size() > 0",
        "self.l.all(x, sets.contains(self.l, [x]))",
        "sets.equivalent(self.l, self.l) && self.l.distinct().size() > 0",
        "self.l.all(x, x.find('(a|b)*' + x) != 'y' && x.findAll('x' + x).size() == 0)",
        "self.l.join('&').split('').size() > 0 && self.l.all(x, self.l.join('').size() > 0)",
        "self.l.all(x, '%.900f'.format([1.0]) != x)",
        "self.l.all(x, [self.l].flatten().size() > 0)",
    ] {
        let schema = Schema::parse(&ruled(rule)).expect("the schema parses");
        let found = schema.validate(&object, None);
        assert!(
            found.iter().any(|error| {
                error.detail.contains("cost limit exceeded")
                    || error.detail.contains("running out of cost budget")
            }),
            "{rule}: {found:?}"
        );
    }
}

#[test]
fn all_rules_of_an_object_share_one_budget() {
    let schema = Schema::parse(&json!({"type": "array", "items": {
        "type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x + y > 0))"}],
    }}))
    .expect("the schema parses");
    let list: Vec<i64> = (1..300).collect();
    let object = Value::Array((0..40).map(|_| json!(list)).collect());
    let found = schema.validate(&object, None);
    let last = found.last().map(ToString::to_string).unwrap_or_default();
    assert!(last.contains("running out of cost budget"), "{found:?}");
}

#[test]
fn errors_are_bounded() {
    let source = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "integer"}}}});
    let schema = Schema::parse(&source).expect("the schema parses");
    let object = json!({"l": vec!["x"; 50_000]});
    let found = schema.validate(&object, None);
    assert!(found.len() <= 1_000, "{} errors", found.len());
    assert!(!found.is_empty());
}

#[test]
fn what_errors_show_is_bounded() {
    let long: Vec<String> = (0..1_000).map(|index| format!("{index:0>1000}")).collect();
    let source = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "string", "enum": long}},
        "m": {"type": "object", "additionalProperties": {"type": "array", "items": {
            "type": "integer"}}},
        "t": {"type": "string", "maxLength": 10_000_000, "pattern": "^y"},
    }, "x-kubernetes-validations": [{"rule": "self.t == ''", "fieldPath": ".t"}]});
    let schema = Schema::parse(&source).expect("the schema parses");
    let object = json!({
        "l": vec!["x"; 2_000],
        "m": {"k".repeat(100_000): vec!["x"; 2_000]},
        "t": "x".repeat(1_000_000),
    });
    for fields in [vec!["l"], vec!["m"], vec!["t"]] {
        let object: serde_json::Map<String, Value> =
            fields.iter().map(|name| ((*name).to_owned(), object[name].clone())).collect();
        let found = schema.validate(&Value::Object(object), None);
        let longest = found.iter().map(|error| error.to_string().len()).max().unwrap_or_default();
        assert!((1..40_000).contains(&longest), "{fields:?}: {longest} bytes");
    }
}

#[test]
fn patterns_and_rules_of_a_schema_are_bounded() {
    let refused = |properties: serde_json::Map<String, Value>| {
        let source = json!({"type": "object", "properties": properties});
        Schema::parse(&source).expect_err("it is too much").to_string()
    };
    let pattern = |at: usize| json!({"type": "string", "pattern": format!("x{at}[a-z]{{900}}")});
    let patterns = (0..2_000).map(|at| (format!("p{at}"), pattern(at)));
    assert!(refused(patterns.collect()).contains("its patterns take more than"));
    // An equal pattern is compiled only once.
    let same = (0..2_000).map(|at| (format!("p{at}"), pattern(0)));
    let source = json!({"type": "object",
        "properties": same.collect::<serde_json::Map<String, Value>>()});
    Schema::parse(&source).expect("it is one pattern");
    let ruled = |rule: &str| {
        json!({"type": "integer", "x-kubernetes-validations": [
        {"rule": rule}]})
    };
    let many = (0..2_001).map(|at| (format!("p{at}"), ruled("self > 0")));
    assert!(refused(many.collect()).contains("more than 2000 rules"));
    let long = "self > 0 || ".repeat(1_000) + "true";
    let long = (0..30).map(|at| (format!("p{at}"), ruled(&long)));
    assert!(refused(long.collect()).contains("rules of more than"));
}

#[test]
fn defaults_fill_an_object_up_to_a_size() {
    let wide: serde_json::Map<String, Value> = (0..40)
        .map(|at| (format!("field{at}"), json!({"type": "string", "default": "a default text"})))
        .collect();
    let source = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "object", "properties": wide}}}});
    let schema = Schema::parse(&source).expect("the schema parses");
    let mut object = json!({"l": vec![json!({}); 200_000]});
    schema.default(&mut object);
    let bytes = object.to_string().len();
    // The result is larger than an object may be, so that the object is rejected, but not much
    // larger.
    assert!((3 * 1024 * 1024..8 * 1024 * 1024).contains(&bytes), "{bytes} bytes");
    let mut small = json!({"l": [{}]});
    schema.default(&mut small);
    assert_eq!(small["l"][0].as_object().map(serde_json::Map::len), Some(40));
}

#[test]
fn large_sets_are_checked_in_little_time() {
    let source = json!({"type": "object", "properties": {
        "l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}});
    let schema = Schema::parse(&source).expect("the schema parses");
    let words: Vec<String> = (0..100_000).map(|index| format!("word{index}")).collect();
    assert!(schema.validate(&json!({"l": words}), None).is_empty());
}

/// Large lists. The test would take hours if access to one item created all items, or if each item
/// were compared with every other.
#[test]
fn items_are_fetched_and_found_one_by_one() {
    let source = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
    }, "x-kubernetes-validations": [
        {"rule": "self.l.all(x, self.l[0] != x || x == self.l[0])"},
        {"rule": "self.l.all(x, self.l.exists(y, true))"},
        {"rule": "self.set == oldSelf.set && self.map == oldSelf.map"},
        {"rule": "(self.set + oldSelf.set) == self.set && (self.map + oldSelf.map) == self.map"},
    ]});
    let schema = Schema::parse(&source).expect("the schema parses");
    let words: Vec<String> = (0..40_000).map(|index| format!("w{index}")).collect();
    let keyed: Vec<Value> = words.iter().map(|word| json!({"k": word})).collect();
    let turned = |all: &[Value]| all.iter().rev().cloned().collect::<Vec<_>>();
    let sets: Vec<Value> = words.iter().map(|word| json!(word)).collect();
    let old = json!({"l": words, "set": sets, "map": keyed});
    let new = json!({"l": words, "set": turned(&sets), "map": turned(&keyed)});
    let found = schema.validate(&new, Some(&old));
    assert!(found.is_empty(), "{:?}", found.first());
}
