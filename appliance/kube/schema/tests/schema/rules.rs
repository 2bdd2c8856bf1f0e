//! Results of rules: the values of lists, sets, optionals and quantities.

use schema::{Schema, check_structural};
use serde_json::{Value, json};

fn properties() -> Value {
    let named = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "maxLength": 20}, "size": {"type": "integer"}}});
    json!({
        "text": {"type": "string", "maxLength": 200},
        "number": {"type": "integer"},
        "numbers": {"type": "array", "maxItems": 20, "items": {"type": "integer"}},
        "mixed": {"type": "array", "maxItems": 20, "items": {"x-kubernetes-int-or-string": true}},
        "object": {"type": "object", "properties": {"name": {"type": "string"}}},
        "list": {"type": "array", "maxItems": 20, "items": named},
        "other": {"type": "array", "maxItems": 20, "items": named},
        "set": {"type": "array", "maxItems": 20, "x-kubernetes-list-type": "set",
            "items": {"type": "integer"}},
        "map": {"type": "array", "maxItems": 20, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "items": named},
        "keyed": {"type": "object", "maxProperties": 20,
            "additionalProperties": {"type": "string", "maxLength": 20}},
    })
}

fn object() -> Value {
    json!({
        "text": "a.b-1e99",
        "numbers": [3, 1, 2],
        "mixed": ["b", 1, "a", 2, "c"],
        "object": {"name": "n"},
        "list": [{"name": "a"}, {"name": "b"}],
        "other": [{"name": "c"}],
        "set": [1, 2],
        "map": [{"name": "a", "size": 1}, {"name": "b", "size": 2}],
        "keyed": {"k": "v"},
    })
}

fn ruled(rule: &str) -> Value {
    let rules = json!([{"rule": rule}]);
    json!({"type": "object", "properties": properties(), "x-kubernetes-validations": rules})
}

/// Returns the message of the rule for the object; `None` if the rule holds.
fn failure(rule: &str) -> Option<String> {
    let schema = Schema::parse(&ruled(rule)).expect("the schema parses");
    schema.validate(&object(), None).first().map(|error| error.detail.clone())
}

/// Returns the rules that are rejected or do not hold, with their messages.
fn wrong<'r>(rules: &[&'r str]) -> Vec<(&'r str, String)> {
    let admitted = |rule: &&'r str| {
        let refused = check_structural(&ruled(rule), "schema");
        refused.first().map(|error| error.detail.clone()).or_else(|| failure(rule))
    };
    rules.iter().filter_map(|rule| Some((*rule, admitted(rule)?))).collect()
}

#[test]
fn libraries_compute_within_bounds() {
    for (rule, words) in [
        ("[9223372036854775807, 1].sum() > 0", "integer overflow"),
        ("'%.70000f'.format([1.0]) != ''", "precision 70000 is greater than 1000"),
        ("self.mixed.sort().size() > 0", "list elements must have the same type"),
        ("quantity('1e99').add(quantity('1')).sign() > 0", "quantity has too many digits"),
        ("quantity('1e99').isLessThan(quantity('1Gi'))", "failed rule"),
        ("duration('2562047h') + duration('2562047h') > duration('1s')", "overflow"),
    ] {
        let failure = failure(rule).unwrap_or_default();
        assert!(failure.contains(words), "{rule}: {failure}");
    }
    let rules = [
        "quantity('1e99').isGreaterThan(quantity('1Gi'))",
        "isQuantity('1.5e-2147483648') && isQuantity('-.5Ki') && !isQuantity('1x')",
        "quantity('1.5Gi').asInteger() == 1610612736 && quantity('1k').sub(1) == quantity('999')",
        "quantity('0.1').compareTo(quantity('100m')) == 0 && !quantity('100m').isInteger()",
        "['b', 'a'].sort() == ['a', 'b'] && self.numbers.sum() == 6 && [1.5, 2.5].sum() == 4.0",
        "self.numbers.min() == 1 && self.numbers.max() == 3 && !self.numbers.isSorted()",
        "'%.2f %s'.format([1.0, dyn('x')]) == '1.00 x'",
        "'añb'.indexOf('b') == 2 && 'abab'.lastIndexOf('ab') == 2 && 'a,b'.split(',')[1] == 'b'",
    ];
    assert_eq!(wrong(&rules), []);
}

#[test]
fn a_range_costs_what_it_makes() {
    let refused = check_structural(&ruled("lists.range(100000000000).size() > 0"), "schema");
    assert!(refused.iter().any(|error| error.detail.contains("exceeds budget")), "{refused:?}");
    assert_eq!(wrong(&["lists.range(3) == [0, 1, 2] && lists.range(0).size() == 0"]), []);
}

#[test]
fn patterns_are_those_of_go_in_every_function() {
    let rules = [
        "self.text.find('\\\\Q.\\\\Eb') == '.b' && self.text.findAll('[a-z]', 2) == ['a', 'b']",
        "self.text.findAll('[0-9]').size() == 3 && self.text.find('x') == ''",
    ];
    assert_eq!(wrong(&rules), []);
    let failure = failure("self.text.find('(' + self.text) == ''").unwrap_or_default();
    assert!(failure.contains("Illegal regex: error parsing regexp"), "{failure}");
}

#[test]
fn objects_are_themselves_in_library_functions() {
    let rules = [
        "!sets.contains(self.list, dyn(self.other))",
        "sets.contains(self.list, [self.list[1]])",
        "!sets.intersects(self.list, dyn(self.other))",
        "!sets.equivalent(self.list, dyn(self.other))",
        "self.list.distinct().size() == 2 && (self.list + self.list).distinct() == self.list",
        "self.list.indexOf(self.list[1]) == 1 && self.list.lastIndexOf(dyn(self.other[0])) == -1",
        "self.list.last().value().name == 'b' && self.list.first().value().name == 'a'",
        "self.list.reverse()[0].name == 'b' && self.list.slice(1, 2)[0].name == 'b'",
        "optional.ofNonZeroValue(self.object).value().name == 'n'",
        "!optional.ofNonZeroValue(self.text.find('x')).hasValue()",
        "[[self.list[0]], [dyn(self.other[0])]].flatten()[1].name == 'c'",
    ];
    assert_eq!(wrong(&rules), []);
}

#[test]
fn what_may_be_absent_is_optional() {
    let rules = [
        "self.?list[?1].value().name == 'b' && !self.?list[?2].hasValue()",
        "self.?keyed[?'k'].orValue('') == 'v' && !self.?keyed[?'x'].hasValue()",
        "self.?keyed['k'].orValue('') == 'v' && !self.?keyed['x'].hasValue()",
        "self.list[?0].hasValue() && !self.list[?7].hasValue() && !self.list[?-1].hasValue()",
        "!self.?number.hasValue() && [1, ?self.?number, 2].size() == 2",
        "[?self.?text] == [self.text] && {'a': 1, ?'b': self.?number}.size() == 1",
        "{?'b': self.?text}['b'] == self.text && {1: 'x'}[dyn(1u)] == 'x'",
    ];
    assert_eq!(wrong(&rules), []);
    let refused = check_structural(&ruled("[?self.text].size() == 1"), "schema");
    let words = "expected type 'optional_type(string)' but found 'string'";
    assert!(refused.iter().any(|error| error.detail.contains(words)), "{refused:?}");
}

#[test]
fn sums_of_lists_are_of_the_left_ones_type() {
    let rules = [
        // Items with the same keys replace the items on the left.
        "(self.map + dyn(self.list)).size() == 2 && !has((self.map + dyn(self.list))[0].size)",
        "(self.map + dyn(self.other)).map(x, x.name) == ['a', 'b', 'c']",
        "(self.map + dyn(self.other)) == [dyn(self.other[0]), self.map[1], self.map[0]]",
        "(self.set + [2, 3]) == [3, 2, 1] && ((self.set + [3]) + [3]).size() == 3",
        // The list on the left decides if order matters.
        "self.set == [2, 1] && [2, 1] != self.set && [1, 2] == self.set",
        "(self.list + dyn(self.other)).size() == 3 && (self.list + self.list).size() == 4",
    ];
    assert_eq!(wrong(&rules), []);
}
