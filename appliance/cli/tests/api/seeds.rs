//! Tests of the commands in Tinkerbell's documents, with their output.

use crate::place::{NUC1, Outcome, Place, end};

/// Template of the document, with its indentation restored.
const TEMPLATE: &str = "\
version: \"0.1\"
name: \"basic-provision\"
global_timeout: 3600
tasks:
  - name: \"disk-wipe\"
    worker: \"{{.device_1}}\"
    volumes:
      - /dev:/dev
    actions:
      - name: \"wipe-disk\"
        image: disk-wipe:latest
        timeout: 600
        environment:
          BLOCK_DEVICE: \"/dev/sda\"
  - name: \"os-install\"
    worker: \"{{.device_1}}\"
    actions:
      - name: \"install-os\"
        image: osie-installer:latest
        timeout: 2400
";

async fn tink(place: &Place, line: &str) -> Outcome {
    let words: Vec<&str> = line.strip_prefix("tink ").unwrap().split_whitespace().collect();
    end(place.command("tink", &words).spawn().unwrap()).await
}

/// Returns the id of `name`: the last word of its row.
fn id(table: &str, name: &str) -> String {
    let row = table.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    row.split_whitespace().last().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_commands_work() {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    place.file("template.yaml", TEMPLATE);

    let pushed = tink(&place, "tink hardware push --file hardware.yaml").await.good();
    let want = "secret/bmc-nuc1 created\nmachine.bmc.tinkerbell.org/bmc-nuc1 created\n\
                hardware/nuc1 created\n";
    assert_eq!(pushed, want);
    let machines = tink(&place, "tink hardware list").await.good();
    assert!(machines.starts_with("NAME   MAC "), "{machines}");

    let made = tink(&place, "tink template create --file template.yaml").await.good();
    let templates = tink(&place, "tink template list").await.good();
    let template = id(&templates, "basic-provision");
    assert_eq!(made, format!("template/basic-provision created, id {template}\n"));

    let hardware = id(&machines, "nuc1");
    let line = format!("tink workflow create --template {template} --hardware {hardware}");
    let made = tink(&place, &line).await.good();
    let workflow = made.trim_end().rsplit(' ').next().unwrap().to_owned();

    let stored = tink(&place, &format!("tink workflow get {workflow} -o json")).await.good();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(
        stored["spec"],
        serde_json::json!({
            "templateRef": "basic-provision",
            "hardwareRef": "nuc1",
            "hardwareMap": { "device_1": "52:54:00:77:00:01" },
            "bootOptions": { "toggleAllowNetboot": true, "bootMode": "netboot" },
        })
    );
    let name = stored["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("nuc1-"), "{name}");

    let events = tink(&place, &format!("tink workflow events {workflow}")).await.good();
    let headings = "WORKER ID   TASK   ACTION   EXECUTION TIME   MESSAGE   STATUS\n";
    assert_eq!(events, headings);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_forms_work_too() {
    let place = Place::start().await;
    place.file("template.yaml", TEMPLATE);
    let old = r#"{"id":"ce2e62ed-826f-4485-a39f-a82bb74338e2",
        "metadata":{"facility":{"facility_code":"onprem"},"instance":{}},
        "network":{"interfaces":[{"dhcp":{"mac":"08:00:27:00:00:01","arch":"x86_64",
        "ip":{"address":"192.168.1.5","netmask":"255.255.255.248"}},
        "netboot":{"allow_pxe":true,"allow_workflow":true}}]}}"#;
    place.file("hardware.json", old);
    tink(&place, "tink hardware push --file hardware.json").await.good();
    tink(&place, "tink template create --file template.yaml").await.good();
    for way in
        ["id ce2e62ed-826f-4485-a39f-a82bb74338e2", "mac 08:00:27:00:00:01", "ip 192.168.1.5"]
    {
        let shown = tink(&place, &format!("tink hardware {way} -o name")).await.good();
        assert_eq!(shown, "hardware/ce2e62ed-826f-4485-a39f-a82bb74338e2\n");
    }
    let by_mac = ["workflow", "create", "-t", "basic-provision", "-r"];
    let map = r#"{"device_1":"08:00:27:00:00:01"}"#;
    let made = place.run(&[&by_mac[..], &[map, "--name", "mine", "-o", "yaml"]].concat()).await;
    assert!(made.err.contains("switch it on"), "{made:?}");
    let made = made.good();
    assert!(made.contains("hardwareRef: ce2e62ed"), "{made}");
    assert!(made.contains("device_1: 08:00:27:00:00:01") || made.contains("device_1: '08:00"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_can_be_repeated() {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    let push = ["hardware", "push", "--file", "hardware.yaml"];
    assert_eq!(place.run(&push).await.good().matches(" created\n").count(), 3);
    let again = place.run(&push).await.good();
    assert_eq!(again.matches(" unchanged\n").count(), 3, "{again}");
    place.file("hardware.yaml", &NUC1.replace("10.77.0.11", "10.77.0.12"));
    let want = "secret/bmc-nuc1 unchanged\nmachine.bmc.tinkerbell.org/bmc-nuc1 unchanged\n\
                hardware/nuc1 changed\n";
    assert_eq!(place.run(&push).await.good(), want);
    let shown = place.run(&["hardware", "get", "10.77.0.12", "-o", "json"]).await.good();
    assert!(shown.contains("\"generation\": 2"), "{shown}");
    assert_eq!(
        place.run(&["hardware", "delete", "nuc1", "--yes"]).await.good(),
        "hardware/nuc1 deleted\n"
    );
    assert_eq!(place.run(&["hardware", "list", "-o", "name"]).await.good(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_verbs_and_options_work() {
    let place = Place::start().await;
    place.file("template.yaml", TEMPLATE);
    let mut push = place.command("tink", &["hardware", "push", "--file", "-"]);
    let mut child = push.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut typed, NUC1.as_bytes()).await.unwrap();
    drop(typed);
    assert!(end(child).await.good().ends_with("hardware/nuc1 created\n"));
    tink(&place, "tink template create --file template.yaml").await.good();
    let create = "tink workflow create -t basic-provision -r 52:54:00:77:00:01 --name w1 --no-boot";
    tink(&place, create).await.good();
    let action = |name: &str, state: &str| {
        let image = "wipe:latest";
        serde_json::json!(
            { "id": name, "name": name, "image": image, "timeout": 60, "state": state }
        )
    };
    let actions = [action("wipe-disk", "SUCCESS"), action("install-os", "RUNNING")];
    let agent = "52:54:00:77:00:01";
    let task = serde_json::json!({ "id": "1", "name": "os", "agentID": agent, "actions": actions });
    let current = serde_json::json!({
        "taskID": "1", "actionID": "install-os", "taskName": "os", "actionName": "install-os",
        "agentID": agent, "state": "RUNNING",
    });
    let status =
        serde_json::json!({ "state": "RUNNING", "tasks": [task], "currentState": current });
    place.write_status("tinkerbell.org/workflows", "w1", status).await;
    let state = tink(&place, "tink workflow state w1").await.good();
    let row = "w1         50 %       os     install-os   52:54:00:77:00:01   running\n";
    assert!(state.ends_with(row), "{state}");
    assert_eq!(tink(&place, "tink hardware ls -q").await.good(), "hardware/nuc1\n");
    let bare = tink(&place, "tink workflow list --no-headers").await.good();
    assert!(bare.starts_with("w1 ") && bare.lines().count() == 1, "{bare}");
    let old = tink(&place, "tink hardware list --tinkerbell-grpc-authority 10.0.0.1:42113").await;
    assert!(old.err.starts_with("hint: --tinkerbell-grpc-authority has no effect"), "{old:?}");
    old.good();
    for (line, now) in [
        ("tink hardware watch", "tinbox status --watch"),
        ("tink workflow data w1", "tinbox workflow get NAME -o yaml"),
    ] {
        let retired = tink(&place, line).await;
        assert_eq!(retired.code, 2);
        let said = format!("error: this command no longer exists\nhint: use `{now}`\n");
        assert_eq!(retired.err, said);
    }
    tink(&place, "tink workflow rm w1 --yes").await.good();
    tink(&place, "tink template delete basic-provision --yes").await.good();
    assert_eq!(tink(&place, "tink template list --no-headers").await.good().trim(), "");
}
