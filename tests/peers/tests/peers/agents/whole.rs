//! Actions reach an agent unchanged and in order, and the result of an action becomes the result of
//! its workflow.

use serde_json::{Value, json};
use stdx::testing::PATIENCE;

use super::rack::{Generation, Rack, act, holding};

/// Runs a workflow of two tasks, from the first report to the last.
pub fn workflow(generation: Generation) {
    let rack = Rack::start();
    let id = generation.id();
    let _agent = rack.agent(generation, id);
    let record = rack.record().display().to_string();
    let mut first = holding(&rack, "first");
    first["command"] = json!(["one", "two words", "--three=\"3\""]);
    first["environment"]["BOTH"] = json!("the action's");
    first["environment"]["LONG"] = json!("a=b c\td");
    first["pid"] = json!("host");
    let mut third = act(&rack, "third");
    third["volumes"] = json!([]);
    let tasks = [
        json!({
            "name": "one",
            "worker": id,
            "environment": { "BOTH": "the task's", "TASK": "1" },
            "volumes": [format!("{record}:/task:ro")],
            "actions": [first, act(&rack, "second")],
        }),
        json!({
            "name": "two",
            "worker": id,
            "volumes": [format!("{record}:/record")],
            "actions": [third],
        }),
    ];
    rack.apply("whole", &tasks);
    rack.wait_log("begin first", 1);
    let name = rack.docker.containers().unwrap().remove(0);
    let spec = rack.docker.run(&["inspect", &name]).unwrap();
    check_spec(generation, &rack, &serde_json::from_str::<Value>(&spec).unwrap()[0]);
    let seen = std::fs::read_to_string(rack.record().join("first.seen")).unwrap();
    assert!(seen.starts_with("word one\nword two words\nword --three=\"3\"\n"), "{seen}");
    assert!(seen.contains("\nBOTH=the action's\n") && seen.contains("\nTASK=1\n"), "{seen}");
    assert!(seen.contains(" /record ") && seen.contains(" /task "), "{seen}");
    assert_eq!(rack.status("whole")["state"], "RUNNING");
    rack.go("first");
    let status = rack.wait("whole", "SUCCESS");
    let want =
        ["begin first", "end first", "begin second", "end second", "begin third", "end third"];
    assert_eq!(rack.log(), want);
    for action in ["first", "second", "third"] {
        rack.wait_action("whole", action, "SUCCESS");
    }
    let first = &status["tasks"][0]["actions"][0];
    assert!(first["executionStart"].is_string() && first["executionStop"].is_string(), "{first}");
    assert!(!first["executionDuration"].as_str().unwrap().is_empty(), "{first}");
    let events = rack.events(id);
    for action in ["first", "second", "third"] {
        let begun = ("ActionStarted".to_owned(), format!("action {action} started"));
        assert!(events.contains(&begun), "{events:?}");
        let ended = format!("action {action} succeeded");
        let told = events.iter().any(|it| it.0 == "ActionSucceeded" && it.1.starts_with(&ended));
        assert!(told, "{events:?}");
    }
    assert_eq!(rack.docker.containers().unwrap(), [""; 0], "agents tidy up");
}

fn check_spec(generation: Generation, rack: &Rack, container: &Value) {
    let (config, host) = (&container["Config"], &container["HostConfig"]);
    assert_eq!(config["Image"], rack.image);
    assert_eq!(config["Cmd"], json!(["one", "two words", "--three=\"3\""]));
    assert_eq!(config["Entrypoint"], json!(["/bin/act"]));
    // Sorted by key; a value of the action overrides the value of the task.
    let environment =
        json!(["BOTH=the action's", "HOLD=1", "LONG=a=b c\td", "NAME=first", "TASK=1"]);
    assert_eq!(config["Env"], environment);
    let record = rack.record().display().to_string();
    // The volumes of the task come first.
    let mut binds = vec![format!("{record}:/task:ro"), format!("{record}:/record")];
    if generation == Generation::Older {
        binds.insert(0, "/worker/default/whole:/workflow".to_owned());
    }
    assert_eq!(host["Binds"], json!(binds));
    assert_eq!((&host["PidMode"], &host["Privileged"]), (&json!("host"), &json!(true)));
}

/// Actions that fail or time out, in consecutive workflows of the same agent.
pub fn failures(generation: Generation) {
    let rack = Rack::start();
    let id = generation.id();
    let _agent = rack.agent(generation, id);
    let one = |actions: Value| [json!({ "name": "one", "worker": id, "actions": actions })];

    let mut fails = act(&rack, "fails");
    fails["environment"]["EXIT"] = json!("3");
    rack.apply("fails", &one(json!([act(&rack, "works"), fails, act(&rack, "never")])));
    let status = rack.wait("fails", "FAILED");
    let actions = &status["tasks"][0]["actions"];
    assert_eq!(actions[0]["state"], "SUCCESS");
    let stock = match generation {
        Generation::Today => "action completed",
        Generation::Older => "the action failed; an older tink-worker does not report the reason",
    };
    assert_eq!((&actions[1]["state"], &actions[1]["message"]), (&json!("FAILED"), &json!(stock)));
    assert_eq!(actions[2]["state"], "PENDING");
    assert!(!rack.log().contains(&"begin never".to_owned()));

    let mut slow = holding(&rack, "slow");
    slow["timeout"] = json!(2);
    rack.apply("slow", &one(json!([slow, act(&rack, "never")])));
    // An older worker reports the error that comes first: the timeout, or the engine's error about
    // the timeout.
    let ends: &[&str] = match generation {
        Generation::Today => &["TIMEOUT"],
        Generation::Older => &["TIMEOUT", "FAILED"],
    };
    rack.wait_log("begin slow", 1);
    let ended = || {
        let state = rack.status("slow")["state"].clone();
        ends.iter().any(|end| state == *end)
    };
    peers::poll("the slow workflow to end", PATIENCE, ended).unwrap();
    assert_eq!(rack.log(), ["begin works", "end works", "begin fails", "end fails", "begin slow"]);

    rack.apply("after", &one(json!([act(&rack, "after")])));
    rack.wait("after", "SUCCESS");
    for (name, end) in [("fails", &["FAILED"][..]), ("slow", ends)] {
        let state = rack.status(name)["state"].clone();
        assert!(end.iter().any(|end| state == *end), "{name} has moved to {state}");
    }
}
