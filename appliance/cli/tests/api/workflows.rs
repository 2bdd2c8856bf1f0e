//! Tests of workflows that are followed from their creation to their end.

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::place::{DEBIAN, NUC1, Outcome, Place, end, until};

const WORKFLOW: &str = "tinkerbell.org/workflows";

async fn rack() -> Place {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    place.file("template.yaml", DEBIAN);
    place.run(&["hardware", "push", "-f", "hardware.yaml"]).await.good();
    place.run(&["template", "create", "-f", "template.yaml"]).await.good();
    place
}

fn status(state: &str, image: &str, reboot: &str, message: &str) -> Value {
    let action = |name: &str, state: &str, message: &str| {
        let id = format!("id-of-{name}");
        let mut action = json!({ "id": id, "name": name, "image": name, "timeout": 60,
                                 "state": state, "message": message });
        if state != "PENDING" {
            action["executionStart"] = json!("2030-01-01T00:00:00Z");
        }
        if state != "PENDING" && state != "RUNNING" {
            action["executionStop"] = json!("2030-01-01T00:00:41Z");
        }
        action
    };
    let actions = [action("stream-image", image, message), action("reboot", reboot, "")];
    let agent = "52:54:00:77:00:01";
    let tasks = json!([{ "id": "1", "name": "os-install", "agentID": agent, "actions": actions }]);
    json!({ "state": state, "tasks": tasks })
}

async fn created(place: &Place, name: &str) {
    until(|| async { place.engine.get(WORKFLOW, "default", name).await.ok() }).await;
}

fn progress(done: u64) -> Option<Value> {
    Some(json!({ "action": "id-of-stream-image", "message": "", "bytesDone": done << 20,
                 "bytesTotal": 300 << 20, "millis": done * 10 }))
}

/// Reads a program's standard error until it contains `part`.
async fn prints(child: &mut tokio::process::Child, part: &str) {
    receives(child.stderr.as_mut().unwrap(), part).await;
}

async fn receives(stream: &mut (impl AsyncRead + Unpin), part: &str) {
    let mut text = Vec::new();
    let whole = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let deadline = tokio::time::Instant::now() + crate::place::PATIENCE;
    while !whole(&text).contains(part) {
        let mut byte = [0];
        match tokio::time::timeout_at(deadline, stream.read(&mut byte)).await {
            Ok(Ok(1)) => text.push(byte[0]),
            other => panic!("{other:?} before {part:?} in {:?}", whole(&text)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_lasts_across_a_restart_of_the_box() {
    let place = rack().await;
    let line = ["workflow", "create", "-t", "debian", "-r", "nuc1", "--name", "a", "--wait"];
    let mut child = place.spawn(&line);
    created(&place, "a").await;
    place.write_status(WORKFLOW, "a", status("PENDING", "PENDING", "PENDING", "")).await;
    prints(&mut child, "workflow a: waiting for the agent\n").await;
    *place.progress.lock().unwrap() = progress(90);
    place.write_status(WORKFLOW, "a", status("RUNNING", "RUNNING", "PENDING", "")).await;
    prints(&mut child, "stream-image 30 %, 90 MiB of 300 MiB, 100 MiB/s, 2.1 s left\n").await;

    let stopped = place.stop().await;
    prints(&mut child, "; waiting for the box\n").await;
    let place = stopped.start().await;
    prints(&mut child, "workflow a: running stream-image\n").await;
    *place.progress.lock().unwrap() = progress(240);
    prints(&mut child, "stream-image 80 %").await;
    place.write_status(WORKFLOW, "a", status("SUCCESS", "SUCCESS", "SUCCESS", "")).await;

    let Outcome { code, out, .. } = end(child).await;
    assert_eq!(code, 0);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("workflow/a created, id "), "{out}");
    assert!(lines[1].starts_with("workflow a succeeded after "), "{out}");
    assert_eq!(lines.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn following_a_failure_ends_with_its_reason() {
    let place = rack().await;
    let line = ["workflow", "create", "-t", "debian", "-r", "nuc1", "--name", "a"];
    place.run(&line).await.good();
    let child = place.spawn(&["workflow", "events", "a", "--follow"]);
    place.write_status(WORKFLOW, "a", status("RUNNING", "RUNNING", "PENDING", "")).await;
    let sentence = "sha256 of the image is 00, expected ff";
    place.write_status(WORKFLOW, "a", status("FAILED", "FAILED", "PENDING", sentence)).await;
    let ended = end(child).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.out.starts_with("TASK         ACTION "), "{ended:?}");
    assert!(ended.out.ends_with(&format!("{sentence}   failed\n")), "{ended:?}");
    let want = format!(
        "error: workflow a failed: action stream-image: {sentence}\n\
         hint: `tinbox workflow get a` shows more\n"
    );
    assert!(ended.err.ends_with(&want), "{ended:?}");
    // The command reports a workflow that has already ended at once, in the same form.
    let again = place.run(&["workflow", "events", "a", "-f", "-o", "json"]).await;
    assert_eq!(again.code, 1);
    let row: Value = serde_json::from_str(again.out.trim()).unwrap();
    assert_eq!((&row["status"], &row["executionTime"]), (&json!("FAILED"), &json!("41 s")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_workflow_and_a_slow_one_end_the_waiting() {
    let place = rack().await;
    let line = ["workflow", "create", "-t", "debian", "-r", "nuc1", "--name", "a", "--no-boot"];
    place.run(&line).await.good();
    let slow = place.run(&["workflow", "events", "a", "-f", "--timeout", "1s"]).await;
    assert_eq!(slow.code, 7);
    assert!(slow.err.contains("error: workflow a has not ended after 1.0 s"), "{slow:?}");
    let mut child = place.spawn(&["workflow", "events", "a", "-f"]);
    prints(&mut child, "workflow a: new\n").await;
    let error = json!({ "type": "BmcError", "status": "True", "message": "no response" });
    let preparing = json!({ "state": "PREPARING", "conditions": [error] });
    place.write_status(WORKFLOW, "a", preparing).await;
    prints(&mut child, "workflow a: booting its machine (no response)\n").await;
    place.run(&["workflow", "delete", "a", "--yes"]).await.good();
    let ended = end(child).await;
    assert_eq!((ended.code, ended.out.as_str()), (1, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_one_line_moves() {
    let place = rack().await;
    let line = ["workflow", "create", "-t", "debian", "-r", "nuc1", "--name", "a"];
    place.run(&line).await.good();
    *place.progress.lock().unwrap() = progress(150);
    place.write_status(WORKFLOW, "a", status("RUNNING", "RUNNING", "PENDING", "")).await;
    // `script` (package bsdutils, on every Debian) gives the program a terminal.
    let program = env!("CARGO_BIN_EXE_tinbox");
    let mut child = tokio::process::Command::new("script")
        .args(["-qec", &format!("{program} workflow events a -f"), "/dev/null"])
        .env("TINBOX_KUBECONFIG", &place.kubeconfig)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .kill_on_drop(true)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("script runs (package bsdutils)");
    // A terminal is one stream.
    let mut out = child.stdout.take().unwrap();
    receives(&mut out, "50 %, 150 MiB of 300 MiB, 100 MiB/s, 1.5 s left").await;
    place.write_status(WORKFLOW, "a", status("SUCCESS", "SUCCESS", "SUCCESS", "")).await;
    receives(&mut out, "workflow a succeeded after ").await;
    let ended = tokio::time::timeout(crate::place::PATIENCE, child.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_left_for_the_box_to_answer() {
    let place = rack().await;
    let line = ["workflow", "create", "-t", "debian", "-r", "nuc1", "--name", "a"];
    place.run(&line).await.good();
    let early = place.run(&["workflow", "retry", "a"]).await;
    assert_eq!(early.code, 4, "{early:?}");
    assert!(early.err.starts_with("error: cannot retry workflow a: "), "{early:?}");

    place.run(&["workflow", "pause", "a"]).await.good();
    let paused = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    assert_eq!(paused["spec"]["paused"], true);
    assert_eq!(paused["spec"]["templateRef"], "debian", "nothing else is touched");
    place.run(&["workflow", "resume", "a"]).await.good();
    let resumed = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    assert_eq!(resumed["spec"].get("paused"), None);

    let printed = place.run(&["workflow", "cancel", "a", "--yes"]).await.good();
    assert_eq!(printed, "workflow/a cancel requested\n");
    place.write_status(WORKFLOW, "a", status("FAILED", "FAILED", "PENDING", "no")).await;
    let late = place.run(&["workflow", "cancel", "a", "--yes"]).await;
    assert!(late.code == 4 && late.err.contains("in state FAILED: failed"), "{late:?}");

    place.run(&["workflow", "retry", "a", "--from", "start"]).await.good();
    let first = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    let annotations = &first["metadata"]["annotations"];
    assert_eq!(annotations["tinbox.dev/retry-from"], "start");
    place.run(&["workflow", "retry", "a"]).await.good();
    let second = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    let again = &second["metadata"]["annotations"];
    assert_ne!(again["tinbox.dev/retry"], annotations["tinbox.dev/retry"]);
    assert_eq!(again.get("tinbox.dev/retry-from"), None, "it is not taken over");
    assert_eq!(place.run(&["workflow", "retry", "a", "--from", "middle"]).await.code, 2);
}
