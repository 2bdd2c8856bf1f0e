//! Removal of a rack: nothing remains, however its harness ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use qemu::{NucConfig, Rack};

use crate::{LONG, config};

fn small() -> NucConfig {
    NucConfig { memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() }
}

/// Existing namespaces and work folder of rack `name`.
fn traces(name: &str) -> Vec<String> {
    [
        format!("/run/netns/{name}-rack"),
        format!("/run/netns/{name}-box"),
        format!("/var/tmp/tinbox-rack/{name}"),
    ]
    .into_iter()
    .filter(|path| Path::new(path).exists())
    .collect()
}

/// Processes whose command line contains the name of the rack: those of QEMU, ipmi_sim and the
/// warden.
fn processes(name: &str) -> Vec<String> {
    let lines = fs::read_dir("/proc").expect("read /proc").flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let words = |c: char| !c.is_ascii_alphanumeric();
        line.split(words).any(|word| word == name).then_some(line)
    });
    lines.collect()
}

#[test]
fn a_dropped_rack_leaves_no_process_namespace_or_file() {
    let rack = Rack::build(config("gone").nucs(2, &small())).expect("build the rack");
    let (name, dir) = (rack.name().to_owned(), rack.dir().to_owned());
    rack.nuc(1).power_on().expect("switch on");
    assert_eq!(traces(&name).len(), 3);
    assert!(processes(&name).len() >= 4, "QEMU, two BMCs and the warden");
    rack.succeed();
    assert_eq!(traces(&name), [""; 0]);
    assert_eq!(processes(&name), [""; 0]);
    assert!(!dir.exists(), "a success keeps no logs");
}

#[test]
fn a_failed_rack_keeps_its_logs_and_pictures_and_nothing_else() {
    let rack = Rack::build(config("failed").nuc(small())).expect("build the rack");
    let (name, dir) = (rack.name().to_owned(), rack.dir().to_owned());
    rack.nuc(1).power_on().expect("switch on");
    rack.nuc(1).serial().wait_for("SeaBIOS", LONG).expect("the firmware's banner");
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _rack = rack;
        panic!("a scenario fails");
    }));
    assert!(died.is_err());
    assert_eq!(traces(&name), [""; 0]);
    assert_eq!(processes(&name), [""; 0]);
    let serial = fs::read_to_string(dir.join("nuc1.serial.log")).expect("the console's log");
    assert!(serial.contains("SeaBIOS"));
    let power = fs::read_to_string(dir.join("power.log")).expect("the power log");
    assert!(power.ends_with(" nuc1 Harness On\n"), "{power}");
    assert!(dir.join("nuc1.png").exists());
    fs::remove_dir_all(&dir).expect("remove the logs");
}

#[test]
fn a_killed_or_interrupted_harness_is_cleaned_up_after() {
    for signal in ["KILL", "INT"] {
        let victim = format!("rack-victim-{signal}");
        // Tests started as a background job inherit an ignored SIGINT.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_rack-up")]);
        command.args(["--firmware", "bios", "--memory", "64", "--on", "--name", &victim]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("start the victim");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let name = output.lines().map_while(Result::ok).find_map(|line| {
            let rest = line.strip_prefix("rack ")?;
            rest.split_once(" is up").map(|(name, _)| name.to_owned())
        });
        let name = name.expect("the victim built its rack");
        assert_eq!(traces(&name).len(), 3);
        assert!(processes(&name).iter().any(|line| line.contains("qemu-system")));

        let mut kill = Command::new("kill");
        kill.args([format!("-{signal}"), child.id().to_string()]);
        assert!(kill.status().expect("run kill").success());
        child.wait().expect("the victim ends");
        qemu::poll("the warden to clean up", LONG, || {
            (traces(&name).is_empty() && processes(&name).is_empty()).then_some(())
        })
        .unwrap_or_else(|e| panic!("{e}: {:?} {:?}", traces(&name), processes(&name)));
        fs::remove_dir_all(qemu::out_dir().join(&victim)).expect("remove the victim's logs");
    }
}

#[test]
fn a_stale_rack_is_swept_and_a_living_one_is_not() {
    let mut dead = Command::new("true").spawn().expect("start true");
    dead.wait().expect("wait for true");
    let stale = format!("tb{}", dead.id());
    let living = Rack::build(config("living").nuc(small())).expect("build the rack");
    living.nuc(1).power_on().expect("switch on");
    for part in ["rack", "box"] {
        let added = Command::new("ip").args(["netns", "add", &format!("{stale}-{part}")]).status();
        assert!(added.expect("run ip").success());
    }
    fs::create_dir(format!("/var/tmp/tinbox-rack/{stale}")).expect("make the work folder");
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", &format!("{stale}-rack"), "sleep", "600"]);
    let mut inside = inside.spawn().expect("start a process inside");
    qemu::poll("the process to be inside", LONG, || {
        // Another test's rack may remove the stale one first.
        let swept = inside.try_wait().ok()?.is_some();
        let comm = fs::read_to_string(format!("/proc/{}/comm", inside.id())).unwrap_or_default();
        (swept || comm == "sleep\n").then_some(())
    })
    .expect("ip becomes sleep");
    // A folder with a similar name that belongs to no rack must survive.
    let foreign = &format!("/var/tmp/tinbox-rack/keep-{}", std::process::id());
    fs::create_dir_all(foreign).expect("make a foreign folder");

    // Another test's rack may have removed the stale rack at the same moment: only the result
    // counts.
    qemu::sweep_leftovers().expect("sweep");
    assert_eq!(traces(&stale), [""; 0]);
    assert!(!inside.wait().expect("reap").success(), "killed");
    assert!(Path::new(foreign).exists());
    fs::remove_dir(foreign).expect("remove the foreign folder");
    assert_eq!(traces(living.name()).len(), 3);
    assert!(living.nuc(1).is_on());
    living.succeed();
}
