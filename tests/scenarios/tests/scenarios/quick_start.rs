//! The steps of `make demo-capi`: stock clusterctl and the box turn a machine into a node.

use scenarios::QuickStart;

use crate::watch::{ONE_START, switched_on};

#[test]
fn clusterctl_and_the_box_turn_a_machine_into_a_node() {
    let quick_start = QuickStart::start("quick-start").unwrap();
    let management = &quick_start.management;
    assert!(!management.lab.rack.nuc(1).is_on(), "the machine begins switched off");
    let name = quick_start.create().unwrap();
    let machine =
        || management.object(management.kubeconfig(), "machines", &name).unwrap().unwrap();
    assert!(
        machine()["status"]["nodeRef"].is_null(),
        "the machine joins only when its system calls kubeadm"
    );
    quick_start.join().unwrap();
    let joined = machine();
    assert_eq!(joined["status"]["nodeRef"]["name"], "nuc1", "{joined}");
    assert_eq!(joined["spec"]["providerID"], "tinkerbell://default/nuc1", "{joined}");
    assert_eq!(switched_on(&management.lab), 1, "{ONE_START}");
    quick_start.delete().unwrap();
    quick_start.succeed();
}
