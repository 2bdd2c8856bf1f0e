//! Tests of the choice: each rule alone, and sequences of choices in different orders.

mod names;
mod refusals;

use api::infrastructure::{OWNER_NAME, OWNER_NAMESPACE, RELEASED_AT, TinkerbellMachine};
use api::meta::ObjectKey;
use api::tinkerbell::{AGENT_ATTRIBUTES, Hardware};
use serde_json::{Value, json};

use super::{Choice, HardwareRequest, SUMMARY_CHARS_MAX, choose, failure_domain};

fn host(name: &str) -> Value {
    let vendor = json!({ "product": { "vendor": "Intel(R) Client Systems", "name": "NUC8i5BEH" } });
    json!({
        "metadata": {
            "name": name, "namespace": "default", "labels": { "rack": "a" },
            "annotations": { AGENT_ATTRIBUTES: vendor.to_string() },
        },
        "spec": {
            "interfaces": [{ "dhcp": {
                "mac": "52:54:00:77:00:01", "ip": { "address": "10.77.0.11" },
            } }],
            "disks": [{ "device": "/dev/nvme0n1" }],
        },
    })
}

/// Returns a Hardware with the value `value` at a path.
fn with(mut host: Value, path: &[&str], value: Value) -> Value {
    let mut at = &mut host;
    for step in path {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[*step],
        };
    }
    *at = value;
    host
}

fn labeled(host: Value, key: &str, value: &str) -> Value {
    with(host, &["metadata", "labels", key], json!(value))
}

fn owned(host: Value, namespace: &str, name: &str) -> Value {
    labeled(labeled(host, OWNER_NAMESPACE, namespace), OWNER_NAME, name)
}

fn released(host: Value, at: &str) -> Value {
    with(host, &["metadata", "annotations", RELEASED_AT], json!(at))
}

fn hosts(hosts: Vec<Value>) -> Vec<Hardware> {
    hosts.into_iter().map(|host| serde_json::from_value(host).unwrap()).collect()
}

fn request(spec: Value) -> HardwareRequest {
    let object = json!({ "metadata": { "name": "m", "namespace": "default" }, "spec": spec });
    let machine: TinkerbellMachine = serde_json::from_value(object).unwrap();
    HardwareRequest::of(&machine, None, "box-1")
}

fn taken(spec: Value, all: Vec<Value>) -> Option<String> {
    choose(&request(spec), &hosts(all)).taken.map(|key| key.to_string())
}

/// Returns the items in every order.
fn orders<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for at in 0..items.len() {
        let mut rest = items.to_vec();
        let first = rest.remove(at);
        all.extend(orders(&rest).into_iter().map(|order| [vec![first.clone()], order].concat()));
    }
    all
}

#[test]
fn an_intel_nuc_is_selected_by_its_smbios_data_or_its_labels() {
    let spec = json!({ "hardwareSelector": { "manufacturer": "Intel", "plan": "NUC" } });
    let acme = with(host("a"), &["metadata", "annotations"], json!({}));
    let acme = labeled(labeled(acme, "manufacturer", "Acme"), "plan", "nuc");
    assert_eq!(taken(spec.clone(), vec![acme, host("b")]).unwrap(), "default/b");
    let by_label = labeled(labeled(host("c"), "manufacturer", "intel"), "plan", "nuc");
    let by_label = with(by_label, &["metadata", "annotations"], json!({}));
    assert_eq!(taken(spec.clone(), vec![by_label]).unwrap(), "default/c");
    // A label overrides the report.
    let other = labeled(host("d"), "manufacturer", "Acme");
    assert_eq!(taken(spec, vec![other]), None);
}

#[test]
fn the_hardware_of_the_machine_wins_over_every_rule() {
    let own = owned(host("z"), "default", "m");
    let own = with(own, &["metadata", "deletionTimestamp"], json!("2026-11-20T10:00:00Z"));
    let own = with(own, &["spec"], json!({}));
    let spec = json!({ "failureDomain": "rack-b", "hardwareName": "a" });
    let choice = choose(&request(spec), &hosts(vec![host("a"), own.clone()]));
    assert_eq!(choice.taken, Some(ObjectKey::new("default", "z")));
    assert_eq!(choice.summary, "default/z belongs to this machine");
    // Of two, the one with the requested name.
    let second = owned(host("y"), "default", "m");
    let spec = json!({ "providerID": "tinkerbell://default/z" });
    assert_eq!(taken(spec, vec![second.clone(), own.clone()]).unwrap(), "default/z");
    assert_eq!(taken(json!({}), vec![own, second]).unwrap(), "default/y");
    // The same name in another namespace is another machine.
    assert_eq!(taken(json!({}), vec![owned(host("x"), "other", "m")]), None);
}

#[test]
fn required_terms_are_alternatives_and_preferred_weights_are_summed() {
    let term = |key: &str, value: &str| {
        let labels = json!({ key: value });
        json!({ "labelSelector": { "matchLabels": labels } })
    };
    let prefer = |weight: i32, key: &str, value: &str| {
        let term = term(key, value);
        json!({ "weight": weight, "hardwareAffinityTerm": term })
    };
    let spec = json!({ "hardwareAffinity": {
        "required": [term("rack", "b"), term("rack", "c")],
        "preferred": [
            prefer(60, "disk", "ssd"), prefer(40, "cpu", "i7"), prefer(30, "gpu", "yes"),
        ],
    } });
    let of = |name, rack| labeled(host(name), "rack", rack);
    let all = hosts(vec![
        labeled(labeled(of("a", "a"), "cpu", "i7"), "gpu", "yes"),
        labeled(of("b", "b"), "disk", "ssd"),
        // 40 + 30 exceeds 60; the last matching weight alone does not.
        labeled(labeled(of("c", "c"), "cpu", "i7"), "gpu", "yes"),
        of("d", "c"),
    ]);
    let choice = choose(&request(spec), &all);
    assert_eq!(choice.taken, Some(ObjectKey::new("default", "c")));
    let scores: Vec<_> =
        choice.verdicts.iter().map(|verdict| verdict.result.as_ref().ok().copied()).collect();
    assert_eq!(scores, [None, Some(60), Some(70), Some(0)]);
    assert_eq!(choice.summary, "default/c was chosen; 3 of 4 Hardware can be used");
}

#[test]
fn of_equal_hardware_the_least_recently_used_wins() {
    let a = released(host("a"), "2026-11-20T10:00:00Z");
    let b = released(host("b"), "2026-11-19T12:00:00+02:00");
    let c = released(host("c"), "2026-11-19T10:00:01Z");
    assert_eq!(taken(json!({}), vec![a.clone(), b.clone(), c.clone()]).unwrap(), "default/b");
    assert_eq!(taken(json!({}), vec![a.clone(), b.clone(), host("z")]).unwrap(), "default/z");
    let unreadable = released(host("y"), "yesterday");
    assert_eq!(taken(json!({}), vec![a, b, c, unreadable]).unwrap(), "default/y");
    let near = with(host("b"), &["metadata", "namespace"], json!("a"));
    assert_eq!(taken(json!({}), vec![host("a"), near]).unwrap(), "a/b");
}

#[test]
fn a_failure_domain_is_a_label_or_the_name_of_the_box() {
    let in_rack = labeled(host("b"), super::FAILURE_DOMAIN, "rack-b");
    let all = || vec![host("a"), in_rack.clone()];
    assert_eq!(taken(json!({ "failureDomain": "rack-b" }), all()).unwrap(), "default/b");
    assert_eq!(taken(json!({ "failureDomain": "box-1" }), all()).unwrap(), "default/a");
    let domains: Vec<_> =
        hosts(all()).iter().map(|host| failure_domain(host, "box-1").to_owned()).collect();
    assert_eq!(domains, ["box-1", "rack-b"]);
    // The domain of the owning Machine takes precedence.
    let object = json!({ "spec": { "failureDomain": "rack-b" } });
    let machine: TinkerbellMachine = serde_json::from_value(object).unwrap();
    let request = HardwareRequest::of(&machine, Some("box-1"), "box-1");
    assert_eq!(choose(&request, &hosts(all())).taken.unwrap().name, "a");
    assert_eq!(HardwareRequest::of(&machine, Some(""), "box-1").failure_domain, "rack-b");
}

#[test]
fn an_invalid_selector_takes_nothing_and_is_named() {
    let invalid = json!({ "labelSelector": { "matchExpressions": [
        { "key": "rack", "operator": "Equals", "values": ["a"] },
    ] } });
    let message = "label rack: expected In, NotIn, Exists or DoesNotExist, found \"Equals\"";
    let required = json!({ "hardwareAffinity": { "required": [invalid] } });
    let choice = choose(&request(required), &hosts(vec![host("a")]));
    assert_eq!((choice.taken, choice.verdicts.len()), (None, 0));
    assert_eq!(choice.summary, format!("spec.hardwareAffinity.required[0]: {message}"));
    let preferred = json!({ "weight": 1, "hardwareAffinityTerm": invalid });
    let preferred = json!({ "hardwareAffinity": { "preferred": [preferred] } });
    let choice = choose(&request(preferred), &hosts(vec![host("a")]));
    assert_eq!(choice.summary, format!("spec.hardwareAffinity.preferred[0]: {message}"));
}

#[test]
fn the_summary_counts_the_reasons_and_lists_some_hardware() {
    let spec = json!({ "hardwareSelector": { "manufacturer": "Intel" } });
    let mut all: Vec<Value> = ["a", "b", "c"].map(|it| owned(host(it), "default", it)).into();
    all.push(labeled(host("d"), "manufacturer", "Acme"));
    all.push(with(host("e"), &["spec", "disks"], json!([])));
    let choice = choose(&request(spec.clone()), &hosts(all));
    assert_eq!(
        choice.summary,
        "0 of 5 Hardware can be used: 3 are in use, 1 has another manufacturer (Acme), 1 has \
         no disk. default/d has another manufacturer (Acme); default/e has no disk: set \
         spec.disks[0].device; default/a is in use by the machine default/a; default/b is in use \
         by the machine default/b; and 1 more"
    );
    assert_eq!(choose(&request(json!({})), &[]).summary, "there is no Hardware");
    let long = |number: usize| {
        labeled(host(&format!("{number:0>200}")), "manufacturer", &format!("{number:x>190}"))
    };
    let summary = choose(&request(spec), &hosts((0..100).map(long).collect())).summary;
    assert!(summary.starts_with("0 of 100 Hardware can be used: 100 have another manufacturer ("));
    assert_eq!(summary.chars().count(), SUMMARY_CHARS_MAX);
}

#[test]
fn the_order_of_the_hardware_does_not_matter() {
    let all = hosts(vec![
        released(host("a"), "2026-11-20T10:00:00Z"),
        owned(host("b"), "default", "other"),
        labeled(host("c"), "disk", "ssd"),
        with(host("d"), &["spec", "disks"], json!([])),
        labeled(host("e"), "disk", "ssd"),
        released(host("f"), "2026-11-19T10:00:00Z"),
    ]);
    let preferred = json!([{ "weight": 5, "hardwareAffinityTerm": {
        "labelSelector": { "matchLabels": { "disk": "ssd" } } } }]);
    let specs = [
        json!({}),
        json!({ "hardwareAffinity": { "preferred": preferred } }),
        json!({ "failureDomain": "none" }),
    ];
    let orders = orders(&all);
    assert_eq!(orders.len(), 720);
    for spec in specs {
        let request = request(spec);
        let expected: Choice = choose(&request, &all);
        assert_eq!(expected.verdicts.len(), all.len());
        assert!(orders.iter().all(|order| choose(&request, order) == expected));
    }
}

#[test]
fn of_n_machines_all_but_one_get_one_of_fewer_hardware() {
    for machines in 2..12_usize {
        let names: Vec<String> = (1..machines).map(|number| format!("nuc-{number}")).collect();
        let mut all: Vec<Value> = names.iter().map(|name| host(name)).collect();
        let mut claims = Vec::new();
        for number in 0..machines {
            all.rotate_left(number % (machines - 1));
            all.reverse();
            let name = format!("m-{number}");
            let mut wanted = request(json!({}));
            wanted.machine = ObjectKey::new("default", &name);
            let Some(host) = choose(&wanted, &hosts(all.clone())).taken else { continue };
            for object in all.iter_mut().filter(|it| it["metadata"]["name"] == host.name) {
                *object = owned(object.take(), "default", &name);
            }
            // A second run of the controller returns the same Hardware.
            assert_eq!(choose(&wanted, &hosts(all.clone())).taken, Some(host.clone()));
            claims.push(host.name);
        }
        claims.sort();
        let mut expected = names.clone();
        expected.sort();
        assert_eq!(claims, expected, "{machines} machines");
    }
}
