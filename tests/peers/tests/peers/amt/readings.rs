//! Event log, sensors and inventory of BMCs by one path of the API, as `tinbox bmc` shows them.

use std::process::Command;

use amt_sim::{AmtSim, Behavior};
use bmc::CipherSuite;
use peers::{IpmiSim, Ipmitool, Tinboxd};

use super::clients::python::RECORDS;
use super::objects::{SETTINGS, apply, machine, wait};
use crate::claim::program;

/// Secret and Machine of the simulated BMC with IPMI.
fn ipmi(address: &str) -> String {
    let (user, password) = (IpmiSim::USERNAME, IpmiSim::PASSWORD);
    format!(
        r#"
apiVersion: v1
kind: Secret
metadata: {{name: server, namespace: default}}
stringData: {{username: "{user}", password: "{password}"}}
---
apiVersion: bmc.tinkerbell.org/v1alpha1
kind: Machine
metadata: {{name: server, namespace: default}}
spec:
  connection:
    host: {address}
    port: 623
    insecureTLS: false
    authSecretRef: {{name: server, namespace: default}}
    providerOptions: {{ipmitool: {{cipherSuite: "3"}}}}
"#
    )
}

#[test]
fn one_command_reads_the_event_log_of_every_kind_of_bmc() {
    let amt = AmtSim::start(Behavior::default()).unwrap();
    for record in RECORDS.iter().rev() {
        amt.log(*record);
    }
    let server = IpmiSim::start().unwrap();
    let endpoint = server.endpoint(Some(CipherSuite::Three));
    let tool = Ipmitool::new(&endpoint, CipherSuite::Three).unwrap();
    // Add SEL Entry: button 40h, state 0.
    tool.run("raw 0x0a 0x44 0 0 2 0 0 0 0 0x20 0 4 0x14 0x40 0x6f 0 0xff 0xff").unwrap();
    let tinboxd = Tinboxd::start_with(SETTINGS).unwrap();
    let kubectl = tinboxd.kubectl().unwrap();
    apply(&kubectl, &machine("nuc", &amt, AmtSim::PASSWORD));
    apply(&kubectl, &ipmi(&endpoint.address.host));
    for name in ["nuc", "server"] {
        let machine = format!("machines.bmc.tinkerbell.org/{name}");
        wait(&kubectl, &machine, ".status.capabilities", "events");
    }
    let config = tinboxd.kubeconfig();
    let tinbox = |arguments: &[&str]| {
        let mut tinbox = Command::new(program("tinbox"));
        let output =
            tinbox.arg("--kubeconfig").arg(&config).arg("bmc").args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(&output.stdout), text(&output.stderr))
    };
    let (events, _) = tinbox(&["events", "nuc"]);
    let mut lines = events.lines();
    assert_eq!(lines.next().map(|line| line.split_whitespace().count()), Some(2), "{events}");
    let progress = "System Firmwares #0xff: Progress (asserted): PCI configuration";
    assert!(lines.next().unwrap().ends_with(progress), "{events}");
    assert!(lines.next().unwrap().ends_with("critical: 10 refused logins"), "{events}");
    assert_eq!(lines.next(), None, "{events}");

    let (events, _) = tinbox(&["events", "server"]);
    let button = "Button #0x40: Power Button pressed (asserted)";
    assert!(events.trim_end().ends_with(button), "{events}");
    let listed = tool.run("sel list").unwrap();
    assert_eq!(events.lines().count(), listed.lines().count() + 1, "{events}{listed}");

    let (sensors, _) = tinbox(&["sensors", "server"]);
    assert!(sensors.contains("CPU_Temp") && sensors.contains("warning"), "{sensors}");
    let (inventory, _) = tinbox(&["inventory", "nuc"]);
    let uuid = "33221100-5544-7766-8899-aabbccddeeff";
    assert!(inventory.contains("NUC9V7QNX") && inventory.contains(uuid), "{inventory}");
    let (json, _) = tinbox(&["inventory", "nuc", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["memoryBytes"], 32_u64 << 30);

    let (_, refused) = tinbox(&["sensors", "nuc"]);
    assert!(refused.contains("no access to sensors"), "{refused}");
    assert!(refused.contains("events, inventory, console"), "what it has: {refused}");
    let (_, unknown) = tinbox(&["events", "nuc9"]);
    assert!(unknown.contains("nuc9"), "{unknown}");
}
