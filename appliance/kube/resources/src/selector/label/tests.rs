use serde_json::json;

use super::LabelSelector;

#[test]
fn labels() {
    let object = json!({ "metadata": { "labels": { "a": "1", "x.y/b": "", "tier": "web" } } });
    for (selector, expected) in [
        ("", true),
        ("a=1", true),
        ("a==1", true),
        ("a=2", false),
        ("a!=2", true),
        ("a!=1", false),
        ("missing!=1", true),
        ("x.y/b", true),
        ("x.y/b=", true),
        ("!x.y/b", false),
        ("!missing", true),
        ("tier in (web, db)", true),
        ("tier in (db)", false),
        ("tier notin (db,web)", false),
        ("missing notin (db)", true),
        ("a=1,tier in (web),!missing", true),
        ("a=1,tier in (db),!missing", false),
        ("a in ()", false),
        ("x.y/b in ()", true),
    ] {
        let parsed = LabelSelector::parse(selector).unwrap();
        assert_eq!(parsed.matches(&object), expected, "{selector}");
    }
}

#[test]
fn numbers() {
    let object = json!({ "metadata": { "labels": { "n": "5", "t": "x" } } });
    for (selector, expected) in [
        ("n>4", true),
        ("n>5", false),
        ("n<6,n>4", true),
        ("n<5", false),
        ("t>1", false),
        ("missing<1", false),
    ] {
        let parsed = LabelSelector::parse(selector).unwrap();
        assert_eq!(parsed.matches(&object), expected, "{selector}");
    }
}

/// Tests of selectors that a real API server accepts, and of its messages for invalid selectors.
#[test]
fn the_grammar_is_upstreams() {
    for good in [
        "a in ()",
        "a in (,)",
        "a<1,b",
        "!a,b",
        "in",
        "in in (in)",
        "a=",
        "a!=",
        "a = b",
        "a=in",
        "notin=x",
        "A=b",
        "a= ",
        " ",
        "a notin (x)",
    ] {
        assert!(LabelSelector::parse(good).is_ok(), "{good}");
    }
    for (bad, why) in [
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        ),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=>b", "unable to parse requirement: found '>', expected: identifier"),
    ] {
        assert_eq!(LabelSelector::parse(bad).unwrap_err().message, why, "{bad}");
    }
    let begins = |bad: &str, why: &str| {
        let message = LabelSelector::parse(bad).unwrap_err().message;
        assert!(message.starts_with(why), "{bad}: {message}");
    };
    begins("-a=b", "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must");
    begins("a=-b", "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid");
}
