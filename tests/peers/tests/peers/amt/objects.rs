//! Objects of Tinkerbell on a real box that lead to the driver of Intel AMT.

use amt_sim::{AmtSim, Behavior};
use peers::{Kubectl, Tinboxd, poll};
use stdx::testing::PATIENCE;

/// Seconds between two readings of each machine's power state.
pub const SETTINGS: &str = "[bmc]\npoll_secs = 1\n";

/// Secret and Machine of an engine.
pub fn machine(name: &str, sim: &AmtSim, password: &str) -> String {
    let scheme = if sim.fingerprint().is_some() { "https" } else { "http" };
    let pin = sim.fingerprint().map(|pin| format!(", certificateFingerprint: \"{pin}\""));
    format!(
        r#"
apiVersion: v1
kind: Secret
metadata: {{name: {name}}}
stringData: {{username: {user}, password: "{password}"{pin}}}
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Machine
metadata: {{name: {name}}}
spec:
  connection:
    host: {host}
    port: 623
    authSecretRef: {{name: {name}, namespace: default}}
    insecureTLS: true
    providerOptions:
      intelAMT: {{hostScheme: {scheme}, port: {port}}}
"#,
        user = AmtSim::USERNAME,
        pin = pin.unwrap_or_default(),
        host = sim.address().ip(),
        port = sim.address().port(),
    )
}

/// Job with the actions of Cluster API Provider Tinkerbell.
pub fn job(name: &str, machine: &str, tasks: &str) -> String {
    format!(
        r#"
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Job
metadata: {{name: {name}}}
spec:
  machineRef: {{name: {machine}, namespace: default}}
  tasks: [{tasks}]
"#
    )
}

pub fn apply(kubectl: &Kubectl, manifest: &str) {
    let printed = kubectl.run(&["apply", "-f", "-"], manifest).unwrap();
    assert!(printed.success, "{printed:?}");
}

/// Waits until a field of an object contains `expected`.
pub fn wait(kubectl: &Kubectl, object: &str, path: &str, expected: &str) {
    let output = format!("-ojsonpath={{{path}}}");
    let mut last = String::new();
    let is_reached = poll(expected, PATIENCE, || {
        last = kubectl.run(&["get", object, &output], "").unwrap().out;
        last.contains(expected)
    });
    assert!(is_reached.is_ok(), "{object} {path}: expected {expected:?}, found {last:?}");
}

#[test]
fn a_job_controls_the_machine_of_its_provider_options() {
    let (plain, tls) = (
        AmtSim::start(Behavior::default()).unwrap(),
        AmtSim::start_with_tls(Behavior::default()).unwrap(),
    );
    let tinboxd = Tinboxd::start_with(SETTINGS).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    for (name, sim) in [("plain", &plain), ("tls", &tls)] {
        apply(&kubectl, &machine(name, sim, AmtSim::PASSWORD));
        let object = format!("machines.bmc.tinkerbell.org/{name}");
        wait(&kubectl, &object, ".status.powerState", "off");
        let boot = r#"{oneTimeBootDeviceAction: {device: ["pxe"], efiBoot: true}}"#;
        let tasks = format!("{{powerAction: \"off\"}}, {boot}, {{powerAction: \"on\"}}");
        apply(&kubectl, &job(name, name, &tasks));
        let object = format!("jobs.bmc.tinkerbell.org/{name}");
        wait(&kubectl, &object, ".status.conditions[*].type", "Completed");
        assert_eq!((sim.power(), sim.boots()), (2, vec!["PXE Boot".to_owned()]), "{name}");
        // Without LMS in the operating system.
        apply(&kubectl, &job("soft", name, "{powerAction: soft}"));
        let object = "jobs.bmc.tinkerbell.org/soft";
        wait(&kubectl, object, ".status.conditions[*].type", "Failed");
        let task = "tasks.bmc.tinkerbell.org/soft-task-0";
        wait(&kubectl, task, ".status.conditions[*].message", "Intel LMS");
        assert_eq!(sim.power(), 2, "{name}");
        kubectl.run(&["delete", object, "--timeout=60s"], "").unwrap();
    }
    assert_eq!((plain.refused_logins(), tls.refused_logins()), (0, 0));
}

#[test]
fn another_certificate_than_the_pinned_one_gets_no_login() {
    let sim = AmtSim::start_with_tls(Behavior::default()).unwrap();
    let pin = sim.fingerprint().unwrap().to_string();
    let tinboxd = Tinboxd::start_with(SETTINGS).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    let right = machine("nuc", &sim, AmtSim::PASSWORD);
    apply(&kubectl, &right.replace(&pin, &"0".repeat(64)));
    let object = "machines.bmc.tinkerbell.org/nuc";
    let expected = format!("the TLS certificate changed: expected {}, found {pin}", "0".repeat(64));
    wait(&kubectl, object, ".status.conditions[*].message", &expected);
    assert_eq!(sim.executed(), [""; 0]);
    apply(&kubectl, &right);
    wait(&kubectl, object, ".status.powerState", "off");
    // A pin is never given up for plain HTTP.
    apply(&kubectl, &right.replace("hostScheme: https", "hostScheme: http"));
    wait(&kubectl, object, ".status.conditions[*].message", "needs hostScheme https");
}

#[test]
fn a_wrong_password_is_a_condition_and_not_repeated() {
    let sim = AmtSim::start(Behavior::default()).unwrap();
    let tinboxd = Tinboxd::start_with(SETTINGS).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    apply(&kubectl, &machine("nuc", &sim, "wrong"));
    let message = ".status.conditions[*].message";
    let object = "machines.bmc.tinkerbell.org/nuc";
    wait(&kubectl, object, message, "the user name or password of user \"admin\" was rejected");
    // The next Secret is used at once, and only then is there another login.
    apply(&kubectl, &machine("nuc", &sim, AmtSim::PASSWORD));
    wait(&kubectl, object, ".status.powerState", "off");
    assert_eq!(sim.refused_logins(), 1);
}
