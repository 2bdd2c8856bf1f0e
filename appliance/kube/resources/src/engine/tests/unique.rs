//! Tests of values that no two objects of a kind may share.

use serde_json::{Value, json};

use super::{Bench, HARDWARE, bench, reason};
use crate::engine::write::unique::OUTDATED_MAX;
use crate::engine::{DeleteOptions, WriteOptions};
use crate::status_error::Reason;

const MAC: &str = "52:54:00:77:00:01";

fn machine(name: &str, mac: &str, address: &str) -> Value {
    let dhcp = json!({ "mac": mac, "ip": { "address": address } });
    json!({ "metadata": { "name": name }, "spec": { "interfaces": [{ "dhcp": dhcp }] } })
}

async fn refusal(bench: &Bench, object: Value) -> String {
    let error = bench.create(HARDWARE, object).await.unwrap_err();
    assert_eq!(error.reason, Reason::Invalid);
    error.message
}

#[tokio::test]
async fn two_machines_with_one_address_are_refused_with_the_name_of_the_other() {
    let bench = bench().await;
    bench.create(HARDWARE, machine("first", MAC, "10.88.0.11")).await.unwrap();
    let message = refusal(&bench, machine("second", "52:54:00:77:00:02", "10.88.0.11")).await;
    assert_eq!(
        message,
        "Hardware.tinkerbell.org \"second\" is invalid: \
         spec.interfaces[0].dhcp.ip.address: Invalid value: \"10.88.0.11\": is already the \
         address of Hardware default/first: change one of the two objects, or delete the other"
    );
    let message = refusal(&bench, machine("second", MAC, "10.88.0.12")).await;
    assert!(message.contains("is already the MAC address of Hardware default/first"), "{message}");
    // The check covers updates, and other spellings of the same address.
    bench.create(HARDWARE, machine("v6", "52:54:00:77:00:06", "fd77::1:1")).await.unwrap();
    let taken = machine("third", "52:54:00:77:00:03", "fd77:0:0::1:1");
    bench.create(HARDWARE, machine("third", "52:54:00:77:00:03", "10.88.0.13")).await.unwrap();
    let error = bench.merge("third", json!({ "spec": taken["spec"] })).await.unwrap_err();
    assert!(error.message.contains("Hardware default/v6"), "{}", error.message);
    // A machine may have one address on two of its own NICs.
    let nics = &machine("", "52:54:00:77:00:04", "10.88.0.14")["spec"]["interfaces"][0];
    let mut bonded = machine("bonded", "52:54:00:77:00:05", "10.88.0.14");
    bonded["spec"]["interfaces"].as_array_mut().unwrap().push(nics.clone());
    bench.create(HARDWARE, bonded).await.unwrap();
}

#[tokio::test]
async fn a_value_is_free_once_its_object_has_lost_it() {
    let bench = bench().await;
    bench.create(HARDWARE, machine("first", MAC, "10.88.0.11")).await.unwrap();
    let other = machine("first", "52:54:00:77:00:09", "10.88.0.11");
    let dry_run = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let would_be = machine("none", "52:54:00:77:00:02", "10.88.0.12");
    bench.engine.create(HARDWARE, "default", would_be, dry_run).await.unwrap();
    bench.create(HARDWARE, machine("second", "52:54:00:77:00:02", "10.88.0.12")).await.unwrap();
    bench.merge("first", json!({ "spec": other["spec"] })).await.unwrap();
    bench.create(HARDWARE, machine("third", MAC, "10.88.0.13")).await.unwrap();
    bench.engine.delete(HARDWARE, "default", "first", DeleteOptions::default()).await.unwrap();
    bench.create(HARDWARE, machine("fourth", "52:54:00:77:00:09", "10.88.0.11")).await.unwrap();
}

#[tokio::test]
async fn a_machine_that_enrolled_itself_holds_nothing_against_its_owner() {
    let bench = bench().await;
    let mut enrolled = machine("discovery-1", MAC, "");
    enrolled["metadata"]["labels"] = json!({ "tinkerbell.org/auto-discovered": "true" });
    bench.create(HARDWARE, enrolled).await.unwrap();
    bench.create(HARDWARE, machine("nuc1", MAC, "10.88.0.11")).await.unwrap();
    // Without the label, the object would be a second record of the machine.
    let unlabeled = json!({ "metadata": { "labels": null } });
    let accepted = bench.merge("discovery-1", unlabeled).await;
    assert_eq!(reason(accepted), Reason::Invalid);
}

#[tokio::test]
async fn values_that_no_object_has_leave_the_index() {
    let bench = bench().await;
    bench.create(HARDWARE, machine("first", MAC, "10.88.0.11")).await.unwrap();
    let dry_run = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let (nic, mut most) = (&machine("", "52:54:00:77:00:02", "")["spec"]["interfaces"][0], 0);
    for turn in 0..3 * OUTDATED_MAX / 64 {
        // Each of these objects has 64 addresses that no other object has.
        let mut nics = vec![nic.clone(); 64];
        for (number, nic) in nics.iter_mut().enumerate() {
            nic["dhcp"]["ip"]["address"] = json!(format!("fd77::{turn:x}:{number:x}"));
        }
        let object = json!({ "metadata": { "name": "spare" }, "spec": { "interfaces": nics } });
        bench.engine.create(HARDWARE, "default", object, dry_run.clone()).await.unwrap();
        most = most.max(bench.engine.inner.unique.kinds()[HARDWARE].0.len());
    }
    assert!((OUTDATED_MAX..OUTDATED_MAX + 128).contains(&most), "{most} entries");
    refusal(&bench, machine("second", MAC, "10.88.0.12")).await;
    bench.create(HARDWARE, machine("third", "52:54:00:77:00:03", "fd77::1:1")).await.unwrap();
}
