//! Clients of MeshCentral 1.1.55 under Node.js: its server for WS-Management, and its page for
//! serial-over-LAN. The serial-over-LAN of its server is switched off in its source.

use std::process::Command;

use amt_sim::{AmtSim, Behavior};
use peers::poll;
use serde_json::{Value, json};
use stdx::testing::PATIENCE;

use super::super::start;
use super::python::RECORDS;
use super::{answers, engines, script, value};

fn run(client: &str, sim: &AmtSim, commands: &[&str]) -> Vec<Value> {
    let library = peers::built("amt-meshcentral", &[]).unwrap().remove(0);
    let mut program = Command::new("node");
    // It adds the time zone to the times of events.
    program.env("TZ", "UTC").arg(script("amt-meshcentral", "client.cjs")).arg(library);
    answers(&mut program, client, sim, commands)
}

#[test]
fn the_server_of_meshcentral_controls_the_engine() {
    for sim in engines() {
        let commands = [
            "state",
            "boot=Force PXE Boot",
            "power=2",
            "state",
            "power=2",
            "boot=",
            "power=10",
            "redirection=32768",
            "power=8",
            "version",
            "realm",
        ];
        let expected = [
            value(8),
            value(json!([0, 0, 0])),
            value(0),
            value(2),
            value(2),
            value(json!([0, 0])),
            value(0),
            value(0),
            value(0),
            value("12.0.67"),
            value("Digest:4BB90000000000000000000000000000"),
        ];
        assert_eq!(run("wsman", &sim, &commands), expected);
        assert_eq!(sim.boots(), ["PXE Boot", "setup"]);
        assert_eq!((sim.power(), sim.redirection()), (8, 32_768));
        assert_eq!(sim.refused_logins(), 0);
    }
}

/// Its reader of XML takes no empty-element tags, and shows a namespace of an inner element as a
/// value.
#[tokio::test]
async fn the_server_of_meshcentral_reads_lists_and_the_event_log() {
    let (sim, driver) = start(Behavior { page_items: 1, ..Behavior::default() });
    for record in RECORDS.iter().rev() {
        sim.log(*record);
    }
    let commands = ["list=CIM_SoftwareIdentity", "list=CIM_PhysicalMemory", "events"];
    let answers = run("wsman", &sim, &commands);
    let versions = json!([
        { "InstanceID": "Flash", "VersionString": "12.0.67" },
        { "InstanceID": "AMT", "VersionString": "12.0.67" },
        { "InstanceID": "Sku", "VersionString": 16392 },
    ]);
    assert_eq!(answers[0], value(versions));
    assert_eq!(answers[1]["value"][1]["BankLabel"], "BANK 2");
    let login = "Authentication failed 10 times. The system may be under attack.";
    let events = driver.events().await.unwrap();
    let seconds = |at: usize| events[at].time.unwrap().as_second();
    let expected = json!([[seconds(1), login], [seconds(0), "PCI resource configuration"]]);
    assert_eq!(answers[2], value(expected));
}

#[test]
fn the_page_of_meshcentral_opens_the_serial_console() {
    for sim in engines() {
        sim.serial().print(b"Booting Linux\r\nnuc-1 login: ");
        let commands = ["open", "shown=login: ", "type=root"];
        let shown = value("Booting Linux\r\nnuc-1 login: ");
        let expected = [value(3), shown, value(Value::Null)];
        assert_eq!(run("serial", &sim, &commands), expected);
        poll("typed characters", PATIENCE, || sim.serial().typed() == b"root\r").unwrap();
        poll("the end of the session", PATIENCE, || !sim.serial().is_open()).unwrap();
        // By digest, without a refused login.
        assert_eq!(sim.serial().logins(), (vec![4], 0));
    }
}
