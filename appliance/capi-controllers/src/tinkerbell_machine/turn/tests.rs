use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::infrastructure::{FAILURE_DOMAIN, FailureDomain, FailureDomains, TinkerbellCluster};
use api::meta::{Condition, ObjectKey};
use api::tinkerbell::Hardware;

use super::{
    BOX_TIME, BOXES, DOMAIN_TIME, HARDWARE, WAITING_MAX, Waiting, is_of_other_boxes, wait,
};
use crate::ClusterIdentity;
use crate::tinkerbell_machine::decide::BOX;
use crate::tinkerbell_machine::observe::Observed;

const NAMES: [&str; 3] = ["box-a", "box-b", "box-c"];

/// Returns a machine as the box `name` sees it; `domains` are the domains with their boxes.
fn machine(name: &str, uid: &str, domains: &[(&str, &str)]) -> Observed {
    let domain = |boxes: &str| FailureDomain {
        control_plane: true,
        attributes: BTreeMap::from([(BOXES.to_owned(), boxes.to_owned())]),
    };
    let all = domains.iter().map(|(name, boxes)| ((*name).to_owned(), domain(boxes)));
    let mut cluster = TinkerbellCluster::default();
    cluster.status.failure_domains = FailureDomains::Map(all.collect());
    let mut observed = Observed {
        management_cluster: Some(ClusterIdentity::default()),
        infrastructure: Some(cluster),
        box_id: format!("id of {name}"),
        ..Observed::default()
    };
    observed.machine.metadata.uid = uid.to_owned();
    observed.request.box_name = name.to_owned();
    observed
}

/// Returns the places of the boxes in the order for a machine.
fn order(uid: &str) -> Vec<u64> {
    let domains = NAMES.map(|name| (name, name));
    let place = |name: &&str| {
        let wait = wait(&machine(name, uid, &domains));
        wait.unwrap_or_default().as_secs() / BOX_TIME.as_secs()
    };
    NAMES.iter().map(place).collect()
}

fn report(observed: &mut Observed, status: &str) {
    observed.machine.status.conditions = vec![Condition {
        kind: HARDWARE.to_owned(),
        status: status.to_owned(),
        ..Condition::default()
    }];
}

#[test]
fn exactly_one_box_is_the_first_and_each_is_about_as_often() {
    let mut firsts = [0; 3];
    for number in 0..300 {
        let order = order(&format!("6a1c8a52-0000-4000-8000-{number:012}"));
        let mut places = order.clone();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
        firsts[order.iter().position(|place| *place == 0).unwrap()] += 1;
    }
    assert!(firsts.iter().all(|count| (70..130).contains(count)), "{firsts:?}");
    // The order is the same in every release.
    assert_eq!(order("6a1c8a52-0000-4000-8000-000000000000"), [2, 1, 0]);
}

#[test]
fn a_box_follows_a_dead_one_and_one_without_hardware() {
    let domains = NAMES.map(|name| (name, name));
    let uid = "6a1c8a52-0000-4000-8000-000000000000";
    let last = NAMES[order(uid).iter().position(|place| *place == 2).unwrap()];
    let mut observed = machine(last, uid, &domains);
    assert_eq!(wait(&observed), Some(BOX_TIME * 2));
    observed.waited = BOX_TIME * 2 - Duration::from_secs(1);
    assert_eq!(wait(&observed), Some(Duration::from_secs(1)));
    observed.waited = BOX_TIME * 2;
    assert_eq!(wait(&observed), None);
    observed.waited = Duration::ZERO;
    report(&mut observed, "False");
    assert_eq!(wait(&observed), None);
}

#[test]
fn the_boxes_of_a_failure_domain_act_alone() {
    let domains = [("rack-1", "box-a"), ("rack-2", "box-b,box-c"), ("by-hand", "")];
    let request = |name: &str, domain: &str| {
        let mut observed = machine(name, "u", &domains);
        observed.request.failure_domain = domain.to_owned();
        observed
    };
    assert_eq!(wait(&request("box-a", "rack-1")), None);
    for (name, domain) in [("box-b", "rack-1"), ("box-a", "rack-2")] {
        let mut other = request(name, domain);
        assert!(is_of_other_boxes(&other));
        let wait_for_domain = wait(&other).unwrap();
        assert!(wait_for_domain >= DOMAIN_TIME, "{wait_for_domain:?}");
        // All boxes of the domain are switched off: one of the others reports it.
        other.waited = wait_for_domain;
        assert_eq!((wait(&other), is_of_other_boxes(&other)), (None, false));
    }
    let of_rack_2 = ["box-b", "box-c"].map(|name| wait(&request(name, "rack-2")));
    assert!(of_rack_2.contains(&None) && of_rack_2.contains(&Some(BOX_TIME)));
    // A domain that no box has: one box reports it.
    let of_none = NAMES.map(|name| wait(&request(name, "by-hand")));
    assert_eq!(of_none.iter().filter(|wait| wait.is_none()).count(), 1, "{of_none:?}");
    // Hardware of the domain that is not in the list yet.
    let mut observed = request("box-a", "rack-2");
    let mut host = Hardware::default();
    host.metadata.labels.insert(FAILURE_DOMAIN.to_owned(), "rack-2".to_owned());
    observed.hosts.push(host);
    assert!(!is_of_other_boxes(&observed));
    assert!(wait(&observed).is_none_or(|wait| wait < DOMAIN_TIME));
    let mut observed = request("box-a", "rack-2");
    report(&mut observed, "False");
    assert_eq!(wait(&observed), None);
}

#[test]
fn a_box_does_not_wait_for_others_with_its_own_machine() {
    let domains = NAMES.map(|name| (name, name));
    let uid = "6a1c8a52-0000-4000-8000-000000000000";
    let last = NAMES[order(uid).iter().position(|place| *place == 2).unwrap()];
    let case = |change: &dyn Fn(&mut Observed)| {
        let mut observed = machine(last, uid, &domains);
        change(&mut observed);
        wait(&observed)
    };
    assert_ne!(case(&|_| ()), None);
    assert_eq!(case(&|it| it.management_cluster = None), None);
    assert_eq!(case(&|it| it.host = Some(Hardware::default())), None);
    assert_eq!(case(&|it| it.infrastructure = None), None);
    let register = |it: &mut Observed| {
        it.machine.metadata.annotations.insert(BOX.to_owned(), it.box_id.clone());
    };
    assert_eq!(case(&register), None);
    let named = |it: &mut Observed| {
        it.request.hardware_name = "nuc1".to_owned();
        let mut host = Hardware::default();
        host.metadata.name = "nuc1".to_owned();
        it.hosts.push(host);
    };
    assert_eq!(case(&named), None);
    assert_ne!(case(&|it| it.request.hardware_name = "nuc1".to_owned()), None);
}

#[test]
fn the_wait_begins_when_the_inputs_are_complete() {
    let (waiting, key) = (Waiting::default(), ObjectKey::new("default", "worker"));
    let (second, start) = (Duration::from_secs(1), Instant::now());
    let time = |uid, is_complete, seconds: u32| {
        waiting.time(&key, uid, is_complete, start + second * seconds)
    };
    assert_eq!(time("u1", false, 0), Duration::ZERO);
    assert_eq!(time("u1", false, 1), second);
    assert_eq!(time("u1", true, 1), Duration::ZERO);
    assert_eq!(time("u1", true, 3), second * 2);
    assert_eq!(time("u2", true, 3), Duration::ZERO);
    waiting.forget(&key);
    for number in 0..WAITING_MAX {
        let key = ObjectKey::new("default", number.to_string());
        assert_eq!(waiting.time(&key, "u", true, start), Duration::ZERO);
    }
    assert_eq!(time("u2", true, 3), Duration::MAX);
}
