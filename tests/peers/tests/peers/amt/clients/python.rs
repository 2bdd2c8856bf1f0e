//! Clients in Python: `amt` 0.8, with the requests of Ironic's former driver, and napalm-amt 0.2.

use std::process::Command;

use amt_sim::{AmtSim, Behavior};
use serde_json::{Value, json};

use super::super::start;
use super::{answers, engines, script, value};

/// Records of the event log as AMT 12 stores them: a failed login, and the start of the firmware
/// (go-wsman-messages v2.50.1, `responses/amt/messagelog`).
pub const RECORDS: [[u8; 21]; 2] = [
    [
        0x63, 0xc8, 0x98, 0x65, 0xff, 0x06, 0x6f, 0x05, 0x68, 0x10, 0xff, 0x26, 0x61, 0xaa, 0x0a,
        0, 0, 0, 0, 0, 0,
    ],
    [
        0x22, 0x06, 0x01, 0x65, 0xff, 0x0f, 0x6f, 0x02, 0x68, 0x01, 0xff, 0x22, 0x00, 0x40, 0x07,
        0, 0, 0, 0, 0, 0,
    ],
];

fn run(client: &str, sim: &AmtSim, commands: &[&str]) -> Vec<Value> {
    let python = peers::built("amt-python", &[]).unwrap().remove(0);
    let mut program = Command::new(python);
    answers(program.arg(script("amt-python", "client.py")), client, sim, commands)
}

#[test]
fn ironics_requests_control_the_engine() {
    for sim in engines() {
        let commands =
            ["state", "boot=pxe", "on", "state", "cycle", "boot=hd", "cycle", "off", "state"];
        let expected = ["8", "", "0", "2", "0", "", "0", "0", "8"].map(|text| match text {
            "" => value(Value::Null),
            "0" => value(0),
            state => value(state),
        });
        assert_eq!(run("amtctrl", &sim, &commands), expected);
        assert_eq!(sim.boots(), ["PXE Boot", "default", "Hard-drive Boot"]);
        assert_eq!((sim.power(), sim.refused_logins()), (8, 0));
    }
}

#[test]
fn napalm_reads_and_controls_the_engine() {
    for sim in engines() {
        for record in RECORDS.iter().rev() {
            sim.log(*record);
        }
        let commands = [
            "state",
            "facts",
            "interfaces",
            "hardware",
            "firmware",
            "protocols",
            "power=On",
            "state",
            "power=ForceRestart",
            "power=PowerCycle",
            "power=ForceOff",
        ];
        let answers = run("napalm", &sim, &commands);
        let parts = |at: usize, names: &[&str]| {
            let found = names.iter().map(|name| answers[at]["value"].pointer(name).cloned());
            Value::from_iter(found.map(Option::unwrap_or_default))
        };
        assert_eq!(answers[0], value(json!({ "state": "Off", "actions": ["On"] })));
        let facts = parts(1, &["/vendor", "/model", "/serial_number", "/os_version", "/hostname"]);
        let maker = "Intel(R) Client Systems";
        assert_eq!(facts, json!([maker, "NUC9V7QNX", "SERIAL000001", "12.0.67", "nuc-1"]));
        let port = parts(2, &["/wired/is_up", "/wired/is_enabled", "/wired/mac_address"]);
        assert_eq!(port, json!([true, true, "02:00:00:00:00:01"]));
        let hardware = parts(3, &["/system_uuid", "/memory/1/size_bytes", "/drives/0/size_bytes"]);
        let uuid = "33221100-5544-7766-8899-aabbccddeeff";
        assert_eq!(hardware, json!([uuid, 16_u64 << 30, 960_197_124_000_u64]));
        let firmware = parts(4, &["/0/version", "/1/version"]);
        assert_eq!(firmware, json!(["12.0.67", "QNCFLX70.0054.2020.0810.2227"]));
        assert_eq!(parts(5, &["/virtual_media/enabled", "/kvm/enabled"]), json!([true, false]));
        let on = ["PowerCycle", "ForceRestart", "ForceOff"];
        for action in on {
            assert!(parts(7, &["/actions"])[0].as_array().unwrap().contains(&action.into()));
        }
        for at in [6, 8, 9, 10] {
            assert_eq!(answers[at], value(Value::Null), "{}", commands[at]);
        }
        assert_eq!(sim.boots(), ["default"; 3]);
        assert_eq!((sim.power(), sim.refused_logins()), (8, 0));
    }
}

/// Both read the same records of any form of the log.
#[tokio::test]
async fn napalm_and_our_driver_read_the_same_event_log() {
    for behavior in [
        Behavior::default(),
        Behavior { log_page: 1, ..Behavior::default() },
        Behavior { log_is_padded: true, ..Behavior::default() },
        Behavior { log_page: 100, log_is_padded: true, ..Behavior::default() },
    ] {
        let (sim, driver) = start(behavior);
        assert_eq!(driver.events().await.unwrap(), []);
        for record in RECORDS.iter().rev() {
            sim.log(*record);
        }
        let ours = driver.events().await.unwrap();
        let theirs = run("napalm", &sim, &["events"]).remove(0);
        let theirs = theirs["value"].as_array().unwrap().iter().rev();
        let theirs = theirs.filter(|entry| entry["timestamp"] != Value::Null);
        let theirs: Vec<_> = theirs
            .map(|entry| (entry["timestamp"].as_f64().unwrap() as i64, &entry["message"]))
            .collect();
        let (progress, login) = (&theirs[0], &theirs[1]);
        assert_eq!(progress.1, "BIOS: PCI resource configuration");
        assert!(login.1.as_str().unwrap().contains("Authentication failed 10 times"));
        let words = [
            "System Firmwares #0xff: Progress (asserted): PCI configuration",
            "Platform Security #0xff: Out-of-band access password violation (asserted), critical: \
             10 refused logins",
        ];
        assert_eq!((ours.len(), theirs.len()), (2, 2));
        for ((entry, words), their) in ours.iter().zip(words).zip(&theirs) {
            assert_eq!(entry.message, words);
            assert_eq!(entry.time.unwrap().as_second(), their.0);
        }
    }
}

#[tokio::test]
async fn the_newest_events_of_a_full_log_are_read() {
    let (sim, driver) = start(Behavior { log_page: 64, ..Behavior::default() });
    for number in 1..=390_u32 {
        let mut record = RECORDS[1];
        record[..4].copy_from_slice(&(1_700_000_000 + number).to_le_bytes());
        sim.log(record);
    }
    let events = driver.events().await.unwrap();
    assert_eq!(events.len(), 390);
    let second = |at: usize| events[at].time.unwrap().as_second();
    assert_eq!((second(0), second(389)), (1_700_000_001, 1_700_000_390));
    sim.behave(|behavior| behavior.absent = vec!["AMT_MessageLog"]);
    let error = driver.events().await.unwrap_err();
    assert!(error.sentence().contains("AMT_MessageLog"), "{}", error.sentence());
    assert!(!error.is_transient());
}
