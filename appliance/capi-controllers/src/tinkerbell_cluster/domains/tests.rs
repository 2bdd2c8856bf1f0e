use std::collections::{BTreeMap, BTreeSet};

use api::infrastructure::FailureDomain;
use serde_json::json;

use super::{BOXES, DOMAINS_MAX, merged, own};

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the domains with the boxes of each; `None` for a domain without the attribute.
fn boxes(domains: &BTreeMap<String, FailureDomain>) -> Vec<(&str, Option<&str>)> {
    domains
        .iter()
        .map(|(name, it)| (name.as_str(), it.attributes.get(BOXES).map(String::as_str)))
        .collect()
}

#[test]
fn a_box_has_the_domains_of_its_hardware_or_its_own_name() {
    let host =
        |labels| serde_json::from_value(json!({ "metadata": { "labels": labels } })).unwrap();
    let label = api::infrastructure::FAILURE_DOMAIN;
    assert_eq!(own(&[], "box-1"), names(&["box-1"]));
    assert_eq!(own(&[host(json!({ label: "b" }))], "box-1"), names(&["b"]));
    let all = [host(json!({ label: "b" })), host(json!({})), host(json!({ label: "a" }))];
    assert_eq!(own(&all, "box-1"), names(&["a", "b", "box-1"]));
}

#[test]
fn each_box_adds_and_removes_only_its_own_name() {
    let foreign = FailureDomain::default();
    let by_hand: BTreeMap<String, FailureDomain> = [("hand".to_owned(), foreign)].into();
    let one = merged(by_hand, &names(&["a", "b", "hand"]), "box-1");
    assert_eq!(boxes(&one), [("a", Some("box-1")), ("b", Some("box-1")), ("hand", None)]);
    let two = merged(one.clone(), &names(&["b", "c"]), "box-2");
    let expected =
        [("a", Some("box-1")), ("b", Some("box-1,box-2")), ("c", Some("box-2")), ("hand", None)];
    assert_eq!(boxes(&two), expected);
    // Both are at rest.
    assert_eq!(merged(two.clone(), &names(&["a", "b", "hand"]), "box-1"), two);
    assert_eq!(merged(two.clone(), &names(&["b", "c"]), "box-2"), two);
    let moved = merged(two, &names(&["c"]), "box-1");
    assert_eq!(boxes(&moved), [("b", Some("box-2")), ("c", Some("box-1,box-2")), ("hand", None)]);
}

#[test]
fn the_order_in_which_boxes_report_does_not_matter() {
    let reports = [
        ("box-1", names(&["a", "b"])),
        ("box-2", names(&["b"])),
        ("box-3", names(&["box-3"])),
        ("box-10", names(&["a", "b", "c"])),
    ];
    let mut results = Vec::new();
    for first in 0..4 {
        for second in (0..4).filter(|it| *it != first) {
            for third in (0..4).filter(|it| *it != first && *it != second) {
                let fourth = 6 - first - second - third;
                let order = [first, second, third, fourth].map(|at| &reports[at]);
                let report = |before, (name, own): &(&str, _)| merged(before, own, name);
                results.push(order.into_iter().fold(BTreeMap::new(), report));
            }
        }
    }
    assert_eq!(results.len(), 24);
    assert!(results.iter().all(|it| *it == results[0]));
    assert_eq!(results[0]["b"].attributes[BOXES], "box-1,box-10,box-2");
}

#[test]
fn the_domains_have_a_limit() {
    let many: BTreeSet<String> = (0..2 * DOMAINS_MAX).map(|it| format!("rack-{it:04}")).collect();
    let all = merged(BTreeMap::new(), &many, "box-1");
    assert_eq!(all.len(), DOMAINS_MAX);
    assert_eq!(all.keys().last().unwrap(), "rack-0099");
    assert_eq!(merged(all.clone(), &many, "box-1"), all);
}
