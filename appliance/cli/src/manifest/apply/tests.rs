use serde_json::{Value, json};

use super::{LAST, applied, created};

fn file() -> Value {
    json!({
        "apiVersion": "tinkerbell.org/v1alpha1",
        "kind": "Hardware",
        "metadata": { "name": "nuc1", "labels": { "rack": "a" } },
        "spec": {
            "disks": [{ "device": "/dev/sda" }],
            "interfaces": [
                { "dhcp": { "mac": "52:54:00:00:00:01" }, "netboot": { "allowPXE": true } },
                { "dhcp": { "mac": "52:54:00:00:00:02" } },
            ],
        },
    })
}

/// Returns the object after a push and after writes of other clients.
fn live() -> Value {
    let mut live = created(&file());
    live["metadata"]["labels"]["other"] = json!("x");
    live["metadata"]["annotations"]["tinbox.dev/inventory"] = json!("{}");
    live["spec"]["userData"] = json!("#cloud-config");
    live["spec"]["metadata"] = json!({ "instance": { "id": "i-1" } });
    live["spec"]["bmcRef"] = json!({ "name": "bmc" });
    live["spec"]["interfaces"][0]["netboot"]["allowPXE"] = json!(false);
    live
}

#[test]
fn an_unchanged_file_changes_nothing() {
    assert_eq!(applied(&live(), &file()), live());
}

#[test]
fn a_change_of_the_file_is_the_only_change() {
    let mut file = file();
    file["spec"]["interfaces"][0]["dhcp"]["hostname"] = json!("nuc1");
    file["spec"]["agentID"] = json!("a");
    let wanted = applied(&live(), &file);
    let mut expected = live();
    expected["spec"]["interfaces"][0]["dhcp"]["hostname"] = json!("nuc1");
    expected["spec"]["agentID"] = json!("a");
    expected["metadata"]["annotations"][LAST] = json!(format!("{file}\n"));
    assert_eq!(wanted, expected);
    assert_eq!(applied(&wanted, &file), wanted);
}

#[test]
fn a_field_that_left_the_file_is_removed_and_no_other() {
    let mut file = file();
    file["metadata"].as_object_mut().unwrap().remove("labels");
    file["spec"].as_object_mut().unwrap().remove("disks");
    let wanted = applied(&live(), &file);
    assert_eq!(wanted["metadata"]["labels"], json!({ "other": "x" }));
    assert_eq!(wanted["spec"].get("disks"), None);
    assert_eq!(wanted["spec"]["userData"], "#cloud-config");
}

#[test]
fn another_element_takes_nothing_from_the_one_in_its_place() {
    let mut swapped = file();
    swapped["spec"]["interfaces"].as_array_mut().unwrap().swap(0, 1);
    let wanted = applied(&live(), &swapped);
    assert_eq!(wanted["spec"]["interfaces"], swapped["spec"]["interfaces"]);
    let mut one = file();
    one["spec"]["interfaces"].as_array_mut().unwrap().pop();
    let wanted = applied(&live(), &one);
    assert_eq!(wanted["spec"]["interfaces"], json!([live()["spec"]["interfaces"][0]]));
}

#[test]
fn an_object_of_another_tool_keeps_what_the_file_does_not_name() {
    let mut live = live();
    live["metadata"]["annotations"].as_object_mut().unwrap().remove(LAST);
    let wanted = applied(&live, &file());
    assert_eq!(wanted["spec"]["interfaces"][0]["netboot"]["allowPXE"], true, "as in the file");
    assert_eq!(wanted["spec"]["bmcRef"]["name"], "bmc");
}

#[test]
fn no_secret_is_kept_twice() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bmc" },
        "data": { "username": "YQ==", "password": "aHVudGVyMg==" },
    });
    let live = created(&secret);
    assert!(!live["metadata"].to_string().contains("aHVudGVyMg"), "{live}");
    let other = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bmc" },
        "data": { "username": "Yg==" },
    });
    assert_eq!(applied(&live, &other)["data"], json!({ "username": "Yg==" }));
}
