//! Privileges of the supervisor, as the kernel reports them for each of its threads.

use std::fs;
use std::path::PathBuf;

use firmware::contained::Contained;
use firmware::{FIRST_LINE, PATIENCE};

use super::Lab;

/// `NET_BIND_SERVICE`, `NET_ADMIN` and `NET_RAW` (linux/capability.h). A contained box may not set
/// the host's clock.
const CAPABILITIES: u64 = 1 << 10 | 1 << 12 | 1 << 13;

/// Folder in `/proc` of the supervisor, the only child of process 1.
fn supervisor(machine: &Contained) -> PathBuf {
    let first = machine.process_1().unwrap();
    let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap();
    PathBuf::from(format!("/proc/{}", children.split_whitespace().next().unwrap()))
}

fn value<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect(status).trim()
}

#[test]
fn the_supervisor_keeps_no_right_that_it_does_not_need() {
    let lab = Lab::new("confined");
    let (place, disk) = (lab.place("box", 0x6c), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    let held = "the supervisor has capabilities NET_BIND_SERVICE, NET_ADMIN, NET_RAW; no new \
                privileges; seccomp; Landlock; no core dumps";
    serial.wait_for(held, PATIENCE).unwrap();
    serial.wait_for(FIRST_LINE, PATIENCE).unwrap();
    let supervisor = supervisor(&machine);
    let threads = fs::read_dir(supervisor.join("task")).unwrap();
    let mut count = 0;
    for thread in threads {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            let set = u64::from_str_radix(value(&status, set), 16).unwrap();
            assert_eq!(set, CAPABILITIES, "{status}");
        }
        for (name, expected) in [("CapInh", "0000000000000000"), ("CapAmb", "0000000000000000")] {
            assert_eq!(value(&status, name), expected, "{status}");
        }
        for (name, expected) in [("NoNewPrivs", "1"), ("Seccomp", "2"), ("Seccomp_filters", "2")] {
            assert_eq!(value(&status, name), expected, "{status}");
        }
        count += 1;
    }
    assert!(count > 2, "{count} threads");
    let limits = fs::read_to_string(supervisor.join("limits")).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>(), ["0", "0", "bytes"]);
    let first = machine.process_1().unwrap();
    let memory = |process: &str| fs::read_to_string(format!("{process}/status")).unwrap();
    for process in [format!("/proc/{first}"), supervisor.display().to_string()] {
        println!("resident: {process} {}", value(&memory(&process), "VmRSS"));
    }
    // Kernel settings that process 1 makes; the box has files of its own for them.
    for (name, expected) in [("kptr_restrict", "2"), ("dmesg_restrict", "1")] {
        let file = machine.root().join("proc/sys/kernel").join(name);
        let read = machine.command("cat").unwrap().arg(file).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&read.stdout).trim(), expected, "{name}");
    }
    drop(machine);
    lab.succeed();
}
