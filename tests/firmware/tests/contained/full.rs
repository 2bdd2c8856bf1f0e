//! A STATE that is full, and one that has room again.

use std::fs;

use firmware::owner::{Owner, address};
use firmware::steps::CLAIM;
use firmware::{PATIENCE, run};
use qemu::{Mark, poll};

use super::Lab;

/// Objects of 256 KiB that are pushed until one does not fit.
const PUSHES: usize = 200;
const BYTES: usize = 256 * 1024;

#[test]
fn a_box_whose_disk_was_full_goes_on_when_there_is_room() {
    let lab = Lab::new("full");
    let (place, disk) = (lab.place("box", 0x64), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let line = machine.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), machine.serial(), lab.folder());
    let push = |number: usize| {
        let file = lab.folder().join("machine.yaml");
        let text = format!(
            "apiVersion: tinkerbell.org/v1alpha1\n\
             kind: Hardware\n\
             metadata: {{name: nuc{number}}}\n\
             spec: {{userData: {}}}\n",
            "x".repeat(BYTES)
        );
        fs::write(&file, text).unwrap();
        run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file))
    };
    push(0).unwrap();
    let filler = machine.root().join("state/filler").display().to_string();
    let mut fill = machine.command("dd").unwrap();
    fill.args(["if=/dev/zero", "bs=64k", &format!("of={filler}")]);
    let full = run(&mut fill).unwrap_err().to_string();
    assert!(full.contains("No space left"), "{full}");
    let refused = (1..PUSHES).find_map(|number| push(number).err().map(|error| (number, error)));
    let (number, refused) = refused.expect("something does not fit");
    assert!(refused.to_string().contains("No space left"), "{refused}");
    let stored = || run(owner.tinbox().args(["hardware", "list"]));
    assert!(stored().unwrap().contains("nuc0"), "what is stored can be read");

    run(machine.command("rm").unwrap().arg(&filler)).unwrap();
    poll("the box to store again", PATIENCE, || push(number).ok()).unwrap();
    let listed = stored().unwrap();
    for known in 0..=number {
        assert!(listed.contains(&format!("nuc{known} ")), "nuc{known}: {listed}");
    }
    drop(machine);
    lab.succeed();
}
