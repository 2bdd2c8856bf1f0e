//! A box that serves stock agents, a Docker engine, and an action that records its input.

use std::fs;
use std::path::PathBuf;

use peers::{Docker, Kubectl, Process, Tinboxd, built, poll};
use serde_json::{Value, json};
use stdx::testing::PATIENCE;
use tempfile::TempDir;

/// Agent IDs; each has Hardware of the same name.
const AGENTS: [&str; 2] = ["older", "today"];
/// Script of an action. It records its input. With `HOLD` it waits for a file, at most two minutes,
/// so that an aborted test does not leave it behind. With `FAILS` its first runs, this many, fail.
const ACT: &str = r#"#!/bin/sh
me=/record/$NAME
echo "begin $NAME" >>/record/log
{ for word in "$@"; do echo "word $word"; done; env | sort; cat /proc/self/mounts; } >"$me.seen"
ticks=0
while [ -n "$HOLD" ] && [ ! -e "$me.go" ] && [ $ticks -lt 1200 ]; do
  sleep 0.1
  ticks=$((ticks + 1))
done
[ "$(busybox grep -c "^begin $NAME\$" /record/log)" -gt "${FAILS:-0}" ] || exit 1
echo "end $NAME" >>/record/log
exit "${EXIT:-0}"
"#;

/// Generation of the stock agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// Current generation: the program tink-agent.
    Today,
    /// Older generation: the program tink-worker.
    Older,
}

impl Generation {
    /// ID that the agent sends to the box.
    pub fn id(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Older => "older",
        }
    }
}

/// The box, the Docker engine and the folder of the actions' records.
pub struct Rack {
    pub tinboxd: Tinboxd,
    pub docker: Docker,
    /// Image reference of the action.
    pub image: String,
    pub kubectl: Kubectl,
    record: TempDir,
}

impl Rack {
    pub fn start() -> Self {
        Self::start_named("", "")
    }

    /// Starts the box with `name` as a host name of its API, and with more sections of `box.toml`.
    pub fn start_named(name: &str, sections: &str) -> Self {
        let docker = Docker::start().unwrap();
        let image = docker.publish("act", ACT).unwrap();
        let sections = format!("[agents]\npermissive = true\n{sections}");
        let tinboxd = Tinboxd::start_named(name, &sections).unwrap();
        let kubectl = tinboxd.kubectl().unwrap();
        let rack = Self { tinboxd, docker, image, kubectl, record: TempDir::new().unwrap() };
        for (at, agent) in AGENTS.iter().enumerate() {
            let mac = format!("52:54:00:88:00:0{at}");
            rack.apply_object(&json!({
                "apiVersion": "tinkerbell.org/v1alpha1",
                "kind": "Hardware",
                "metadata": { "name": agent },
                "spec": { "agentID": agent, "interfaces": [{ "dhcp": { "mac": mac } }] },
            }));
        }
        rack
    }

    /// Starts a stock agent that connects to the box.
    pub fn agent(&self, generation: Generation, id: &str) -> Process {
        let server = format!("{}:42113", self.tinboxd.address());
        let log = self.record.path().join(format!("{id}.txt"));
        match generation {
            Generation::Today => {
                let program = built("tink-agent", &[]).unwrap().remove(0);
                let socket = self.docker.socket().display().to_string();
                let flags = [
                    ("--id", id),
                    ("--grpc-server", server.as_str()),
                    ("--docker-socket", socket.as_str()),
                    ("--backoff-max-interval", "1s"),
                ];
                let arguments: Vec<String> = flags
                    .iter()
                    .flat_map(|(flag, value)| [*flag, *value])
                    .map(str::to_owned)
                    .collect();
                Process::start(&program, &arguments, &log).unwrap()
            }
            Generation::Older => {
                let program = built("tink-worker", &[]).unwrap().remove(0).display().to_string();
                let engine = format!("DOCKER_HOST={}", self.docker.host());
                let arguments = [
                    engine.as_str(),
                    program.as_str(),
                    "--id",
                    id,
                    "--tinkerbell-grpc-authority",
                    server.as_str(),
                    "--tinkerbell-tls=false",
                    "--retry-interval=1s",
                ];
                let arguments = arguments.map(str::to_owned);
                Process::start("/usr/bin/env".as_ref(), &arguments, &log).unwrap()
            }
        }
    }

    pub fn apply_object(&self, object: &Value) {
        let printed = self.kubectl.run(&["apply", "-f", "-"], &object.to_string()).unwrap();
        assert!(printed.success, "{printed:?}");
    }

    /// Creates a Template of these tasks and a Workflow of this Template, both with this name.
    pub fn apply(&self, name: &str, tasks: &[Value]) {
        self.apply_with(name, tasks, json!({}));
    }

    /// As [`Rack::apply`], with more fields in the spec of the Workflow.
    pub fn apply_with(&self, name: &str, tasks: &[Value], mut spec: Value) {
        let template = json!({
            "version": "0.1",
            "name": name,
            "global_timeout": 600,
            "tasks": tasks,
        });
        let meta = json!({ "name": name });
        self.apply_object(&json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Template",
            "metadata": meta,
            "spec": { "data": template.to_string() },
        }));
        spec["templateRef"] = json!(name);
        spec["hardwareRef"] = json!(AGENTS[0]);
        self.apply_object(&json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Workflow",
            "metadata": meta,
            "spec": spec,
        }));
    }

    /// Pauses a workflow, or resumes it.
    pub fn pause(&self, name: &str, paused: bool) {
        let patch = json!({ "spec": { "paused": paused } }).to_string();
        let printed = self
            .kubectl
            .run(&["patch", "workflow", name, "--type=merge", "-p", &patch], "")
            .unwrap();
        assert!(printed.success, "{printed:?}");
    }

    /// Cancels a running workflow.
    pub fn cancel(&self, name: &str) {
        let annotation = "tinbox.dev/cancel=now";
        let printed = self.kubectl.run(&["annotate", "workflow", name, annotation], "").unwrap();
        assert!(printed.success, "{printed:?}");
    }

    pub fn get(&self, what: &[&str]) -> Value {
        let arguments = [&["get"], what, &["-o", "json"]].concat();
        let printed = self.kubectl.run(&arguments, "").unwrap();
        assert!(printed.success, "{printed:?}");
        serde_json::from_str(&printed.out).unwrap()
    }

    /// Status of a workflow, as JSON.
    pub fn status(&self, name: &str) -> Value {
        self.get(&["workflow", name])["status"].clone()
    }

    /// Events of a machine: reason and message.
    pub fn events(&self, hardware: &str) -> Vec<(String, String)> {
        let events = self.get(&["events"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut of_it: Vec<&Value> = events["items"].as_array().unwrap().iter().collect();
        of_it.retain(|event| event["involvedObject"]["name"] == hardware);
        of_it.iter().map(|it| (text(&it["reason"]), text(&it["message"]))).collect()
    }

    /// Waits until a workflow is in this state; fails early when the state can no longer be
    /// reached.
    pub fn wait(&self, name: &str, state: &str) -> Value {
        let mut status = Value::Null;
        let what = format!("workflow {name} to be {state}");
        let waited = poll(&what, PATIENCE, || {
            status = self.status(name);
            let now = status["state"].as_str().unwrap_or_default();
            let ended = ["SUCCESS", "FAILED", "TIMEOUT"].contains(&now);
            assert!(!ended || now == state, "{what}: {status}");
            now == state
        });
        waited.unwrap_or_else(|error| panic!("{error}\n{status}\n{}", self.words()));
        status
    }

    /// Waits until an action is in this state.
    pub fn wait_action(&self, name: &str, action: &str, state: &str) {
        let what = format!("action {action} of {name} to be {state}");
        let waited = poll(&what, PATIENCE, || self.state_of(name, action) == state);
        waited.unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.status(name), self.words()));
    }

    fn state_of(&self, name: &str, action: &str) -> String {
        let status = self.status(name);
        let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
        let mut actions = tasks.iter().flat_map(|task| task["actions"].as_array().unwrap());
        let found = actions.find(|it| it["name"] == action);
        found.map_or(String::new(), |it| it["state"].as_str().unwrap_or_default().to_owned())
    }

    /// Record of the actions: one line for each begin and end.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.record().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the actions have written this line this many times.
    pub fn wait_log(&self, line: &str, times: usize) {
        let count = || self.log().iter().filter(|it| *it == line).count();
        let waited = poll(&format!("{line:?} {times} times"), PATIENCE, || count() == times);
        waited.unwrap_or_else(|error| panic!("{error}\n{:?}\n{}", self.log(), self.words()));
    }

    /// Lets a holding action continue.
    pub fn go(&self, action: &str) {
        fs::write(self.record().join(format!("{action}.go")), "").unwrap();
    }

    /// Folder with the records of the actions.
    pub fn record(&self) -> PathBuf {
        self.record.path().to_owned()
    }

    /// Waits until an agent has logged these words.
    pub fn wait_said(&self, agent: &str, words: &str) {
        let log = self.record().join(format!("{agent}.txt"));
        let said = || fs::read_to_string(&log).is_ok_and(|text| text.contains(words));
        let waited = poll(&format!("{agent} to say {words:?}"), PATIENCE, said);
        waited.unwrap_or_else(|error| panic!("{error}\n{}", self.words()));
    }

    /// Simulates a power cut of the agents' machine: kills the agent and its containers.
    pub fn cut(&self, mut agent: Process) {
        agent.kill();
        self.docker.clear().unwrap();
    }

    /// Ends of the agents' logs, for messages of failed tests.
    fn words(&self) -> String {
        let of = |agent: &str| {
            let text = fs::read_to_string(self.record().join(format!("{agent}.txt")));
            let text = text.unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{agent}:\n{}\n", lines[lines.len().saturating_sub(12)..].join("\n"))
        };
        AGENTS.map(of).concat()
    }
}

/// An action of this name.
pub fn act(rack: &Rack, name: &str) -> Value {
    json!({
        "name": name,
        "image": rack.image,
        "timeout": 300,
        "environment": { "NAME": name },
        "volumes": [format!("{}:/record", rack.record().display())],
    })
}

/// An action of this name that waits for [`Rack::go`].
pub fn holding(rack: &Rack, name: &str) -> Value {
    let mut action = act(rack, name);
    action["environment"]["HOLD"] = json!("1");
    action
}
