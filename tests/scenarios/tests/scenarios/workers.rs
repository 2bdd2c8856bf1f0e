//! One workflow on two machines, with one task for each.

use std::fs;

use scenarios::{BootOrder, Lab, LabConfig, NucConfig, RackConfig, poll};

use crate::watch::{SMALL, tiny};

fn template(lab: &Lab) -> String {
    let image = tiny(lab);
    let action = |name: &str, rest: &str| format!("  - name: {name}\n    timeout: 900\n{rest}");
    let write = format!(
        "    image: image2disk\n    environment: {{IMG_URL: {}, IMG_SHA256: {}, \
         DEST_DISK: /dev/vda}}\n",
        image.url, image.sha256
    );
    let task = |name: &str, worker: &str, actions: &str| {
        format!("- name: {name}\n  worker: \"{{{{.{worker}}}}}\"\n  actions:\n{actions}")
    };
    let reboot = action("leave", "    image: reboot\n");
    let tasks = [
        task("first", "device_1", &action("write-one", &write)),
        task("second", "device_2", &(action("write-two", &write) + &reboot)),
        task("third", "device_1", &reboot.replace("leave", "leave-last")),
    ];
    format!("version: \"0.1\"\nname: both\nglobal_timeout: 3600\ntasks:\n{}", tasks.concat())
}

#[test]
fn two_machines_do_the_tasks_of_one_workflow() {
    let nuc = NucConfig { boot_order: BootOrder::NetworkFirst, ..NucConfig::bios() };
    let rack = RackConfig::new("workers").nuc(nuc.clone()).nuc(nuc);
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    for number in [1, 2] {
        lab.push_nuc(number, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    }
    // Network boot: the workflow permits it for its own machine, the owner for the other one.
    let pushed = lab.file("machines", "").unwrap().with_file_name("nuc2.yaml");
    let permitted =
        fs::read_to_string(pushed).unwrap().replace("allowPXE: false", "allowPXE: true");
    let file = lab.file("nuc2.yaml", &permitted).unwrap();
    lab.tinbox(&["hardware", "push", "--file", file.to_str().unwrap()]).unwrap();
    let file = lab.file("both.yaml", &template(&lab)).unwrap();
    lab.tinbox(&["template", "create", "--file", file.to_str().unwrap()]).unwrap();
    let [one, two] = [1, 2].map(|number| lab.rack.nuc(number).mac());
    let machines = format!(r#"{{"device_1": "{one}", "device_2": "{two}"}}"#);
    let create = ["workflow", "create", "--template", "both", "--name", "both"];
    lab.tinbox(&[&create[..], &["--hardware", &machines]].concat()).unwrap();
    // The box powers on only the machine of the first variable.
    lab.rack.nuc(2).power_on().unwrap();

    lab.wait_success("both", SMALL * 2).unwrap();
    for number in [2, 1] {
        lab.rack.nuc(number).serial().wait_for("TINY-BOOTED", SMALL).unwrap();
    }
    let begun = |number: usize, action: &str| {
        let lines = lab.rack.nuc(number).serial().lines();
        let says = format!("action begins action={action}");
        lines.iter().filter(|line| line.text.contains(&says)).count()
    };
    assert_eq!([begun(1, "write-one"), begun(1, "write-two"), begun(1, "leave-last")], [1, 0, 1]);
    assert_eq!([begun(2, "write-one"), begun(2, "write-two"), begun(2, "leave")], [0, 1, 1]);
    let told = |machine: &str, words: &str| lab.story(machine).unwrap().contains(words);
    let heard = || (told("nuc2", "write-two") && told("nuc1", "leave-last")).then_some(());
    poll("each machine's story to have its own actions", SMALL, heard).unwrap();
    lab.rack.succeed();
}
