//! Steps: a claimed box starts once in safe mode, and is then reset to its factory state.

use std::fs;
use std::path::Path;

use qemu::{Host, Mark, poll};

use super::{CLAIM, grubenv};
use crate::machines::{Machine, RunningBox as _};
use crate::owner::{self, Owner};
use crate::{FIRST_LINE, PATIENCE, boot_volume, run};

/// Configuration with the line ends of an editor on Windows.
const BOX_TOML: &str = "name = \"cellar\"\r\n";
const MACHINE: &str = "apiVersion: tinkerbell.org/v1alpha1\n\
    kind: Hardware\n\
    metadata: {name: nuc1}\n\
    spec:\n\
    \x20 interfaces:\n\
    \x20 - dhcp:\n\
    \x20     mac: 52:54:00:77:00:01\n\
    \x20     ip: {address: 10.77.0.11, netmask: 255.255.255.0}\n";

/// Runs the steps on the box of the fresh disk at `disk`; `name` is the box's default name, from
/// its MAC address. `host` is the owner's machine.
pub fn safe_mode_then_factory(
    machine: &impl Machine,
    (disk, name): (&Path, &str),
    host: &Host,
    folder: &Path,
) {
    boot_volume::put(disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let running = machine.switch_on(disk).unwrap();
    let serial = running.serial();
    let (told, mark) = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap();
    let owner = Owner::claims(host, &owner::address(&told.text), serial, folder);
    let file = folder.join("nuc1.yaml");
    fs::write(&file, MACHINE).unwrap();
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file)).unwrap();

    let said = run(owner.tinbox().args(["box", "reset", "--level", "safe", "--yes"])).unwrap();
    assert!(said.contains("cellar restarts in safe mode"), "{said}");
    let safe = "tinbox: safe mode, because it was requested";
    let (_, mark) = serial.wait_for_after(mark, safe, PATIENCE).unwrap();
    // Safe mode ignores the owner's configuration, so the box has its default name. The stored
    // objects are present.
    serial.wait_for_after(mark, &format!("{name} .* slot A"), PATIENCE).unwrap();
    let (_, mark) = serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    let listed = || run(owner.tinbox().args(["hardware", "list"])).ok();
    let said = poll("the API of safe mode", PATIENCE, listed).unwrap();
    assert!(said.contains("nuc1"), "{said}");
    assert!(said.contains("warning: this box is in safe mode and serves no machines"), "{said}");
    owner.log_in();
    let page = run(&mut owner.curl("/machines")).unwrap();
    assert!(page.contains("This box is in safe mode"), "{page}");

    let reset = ["box", "reset", "--level", "factory", "--yes"];
    let said = run(owner.tinbox().args(reset)).unwrap();
    assert!(said.contains(&format!("factory reset of {name}: erases 1 machine, ")), "{said}");
    let erased = "tinbox: factory reset: everything of the owner is erased";
    let (_, mark) = serial.wait_for_after(mark, erased, PATIENCE).unwrap();
    let (told, _) = serial.wait_for_whole(mark, CLAIM, PATIENCE).unwrap();
    let said = owner.refused(&["hardware", "list"]);
    assert!(said.contains("cannot reach the box") && said.contains("certificate"), "{said}");
    let again = folder.join("again");
    fs::create_dir(&again).unwrap();
    let heir = Owner::claims_again(host, &owner::address(&told.text), (serial, mark), &again);
    let said = run(heir.tinbox().args(["hardware", "list"])).unwrap();
    assert!(!said.contains("nuc1") && !said.contains("safe mode"), "{said}");
    running.cut().unwrap();
    let variables = grubenv(disk);
    assert!(variables.contains("A_OK=1\n") && variables.contains("B_OK=1\n"), "{variables}");
    let settings = boot_volume::read(disk, "box.toml");
    assert!(settings.is_err(), "its settings are there still: {settings:?}");
}
