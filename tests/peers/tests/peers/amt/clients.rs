//! The simulated engine against clients that others wrote, and their view of our driver's changes.

mod meshcentral;
pub mod python;

use std::path::{Path, PathBuf};
use std::process::Command;

use amt_sim::{AmtSim, Behavior};
use bmc::{BootDevice, BootOverride, PowerAction};
use serde_json::{Value, json};

use super::start;

/// Runs commands of a client in Go, and returns one answer for each.
pub fn run(client: &str, sim: &AmtSim, commands: &[&str]) -> Vec<Value> {
    let program = peers::built("amt-clients", &[]).unwrap().remove(0);
    answers(&mut Command::new(program), client, sim, commands)
}

/// Path of a script in a folder of the peers.
fn script(folder: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)
}

fn answers(program: &mut Command, client: &str, sim: &AmtSim, commands: &[&str]) -> Vec<Value> {
    let scheme = if sim.fingerprint().is_some() { "https" } else { "http" };
    let address = sim.address().ip().to_string();
    let output = program
        .args([client, &address, scheme, AmtSim::USERNAME, AmtSim::PASSWORD])
        .args(commands)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), commands.len(), "{}", String::from_utf8_lossy(&output.stderr));
    answers
}

pub fn value(value: impl Into<Value>) -> Value {
    json!({ "value": value.into() })
}

/// Engines without and with TLS.
fn engines() -> [AmtSim; 2] {
    let plain = AmtSim::start(Behavior::default()).unwrap();
    [plain, AmtSim::start_with_tls(Behavior::default()).unwrap()]
}

#[test]
fn intels_client_controls_the_engine() {
    for sim in engines() {
        let commands = [
            "state",
            "states",
            "boot=Intel(r) AMT: Force PXE Boot",
            "power=2",
            "state",
            "power=2",
            "boot=",
            "power=10",
            "redirection=32768",
            "power=8",
            "uuid",
            "versions",
        ];
        let versions = json!({ "Flash": "12.0.67", "AMT": "12.0.67", "Sku": "16392" });
        let expected = [
            value(8),
            value(Value::Null),
            value(Value::Null),
            value(0),
            value(2),
            value(2),
            value(Value::Null),
            value(0),
            value(0),
            value(0),
            value("00112233445566778899AABBCCDDEEFF"),
            value(versions),
        ];
        assert_eq!(run("intel", &sim, &commands), expected);
        assert_eq!(sim.boots(), ["PXE Boot", "setup"]);
        assert_eq!((sim.power(), sim.redirection()), (8, 32_768));
        assert_eq!(sim.refused_logins(), 0);
    }
}

#[test]
fn rufios_client_controls_the_engine() {
    for sim in engines() {
        let commands = ["open", "state", "pxe", "on", "state", "cycle", "off", "state"];
        let null = || value(Value::Null);
        let expected =
            [null(), value(false), null(), null(), value(true), null(), null(), value(false)];
        assert_eq!(run("rufio", &sim, &commands), expected);
        assert_eq!(sim.boots(), ["PXE Boot", "default"]);
        assert_eq!(sim.power(), 8);
        assert_eq!(sim.refused_logins(), 0);
    }
}

#[tokio::test]
async fn other_clients_see_what_our_driver_did() {
    let (sim, driver) = start(Behavior::default());
    let boot = BootOverride { device: BootDevice::Pxe, persistent: false, efi: true };
    driver.set_boot_device(boot).await.unwrap();
    driver.set_power(PowerAction::On).await.unwrap();
    assert_eq!(run("intel", &sim, &["state"]), [value(2)]);
    assert_eq!(run("rufio", &sim, &["open", "state"])[1], value(true));
    // A session of the other client does not disturb ours.
    driver.set_power(PowerAction::Off).await.unwrap();
    assert_eq!(run("intel", &sim, &["state"]), [value(8)]);
    assert_eq!(sim.boots(), ["PXE Boot"]);
}
