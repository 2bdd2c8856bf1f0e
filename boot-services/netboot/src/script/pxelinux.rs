//! Renders the configuration for U-Boot, PXELINUX and extlinux (`pxelinux.cfg/01-<mac>`), which
//! boot machines without iPXE. Pure: a plan in, text out.
//!
//! Only keywords that all of them support are used (U-Boot's `doc/README.pxe`): DEFAULT, PROMPT,
//! LABEL, KERNEL, INITRD, APPEND, LOCALBOOT.

use crate::{AgentBoot, Boot, Plan, script};

/// Returns the configuration for a plan. `None`: the plan is an iPXE script, or forbids netboot.
/// `own`: base URL of this box's HTTP server, `http://10.77.0.1:7080`. Files on this server are
/// named by path only, so that a loader without HTTP fetches them as it fetched this configuration.
pub fn config(plan: &Plan, own: &str) -> Option<String> {
    let head = format!("# Tinbox: {} ({})\nPROMPT 0\n", word(&plan.hardware), plan.mac);
    match &plan.boot {
        Boot::Agent(boot) => Some(head + &agent(plan, boot, own)),
        Boot::LocalDisk | Boot::DiskLoader => {
            Some(head + "DEFAULT disk\nLABEL disk\n  LOCALBOOT 0\n")
        }
        Boot::Chain { .. } | Boot::Script { .. } | Boot::NotAllowed => None,
    }
}

fn agent(plan: &Plan, boot: &AgentBoot, own: &str) -> String {
    let folder = boot.base_url.strip_prefix(own).unwrap_or(&boot.base_url);
    let file = |name: &str| word(&format!("{folder}/{name}"));
    // PXELINUX would read `initrd=` as a second initramfs; INITRD names it.
    let line = script::command_line(plan.mac, boot);
    let line: Vec<String> = line.into_iter().filter(|arg| !arg.starts_with("initrd=")).collect();
    format!(
        "DEFAULT agent\nLABEL agent\n  KERNEL {}\n  INITRD {}\n  APPEND {}\n",
        file(&boot.kernel),
        file(&boot.initrd),
        line.join(" ")
    )
}

/// Returns text without the characters that would end a word or a line.
fn word(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::config;
    use crate::{AgentBoot, Boot, Plan};

    const OWN: &str = "http://10.77.0.1:7080";

    fn plan(boot: Boot) -> Plan {
        let mac = "52:54:00:77:00:01".parse().unwrap();
        Plan { mac, hardware: "default/nuc-1".to_owned(), addresses: Vec::new(), boot }
    }

    fn agent(base_url: &str) -> Plan {
        plan(Boot::Agent(AgentBoot {
            base_url: base_url.to_owned(),
            kernel: "vmlinuz-aarch64".to_owned(),
            initrd: "initramfs-aarch64".to_owned(),
            grpc_authority: "10.77.0.1:42113".to_owned(),
            worker_id: "pi".to_owned(),
            ..AgentBoot::default()
        }))
    }

    #[test]
    fn the_agent_is_started_with_the_arguments_of_its_script() {
        let text = config(&agent("http://10.77.0.1:7080/agent"), OWN).unwrap();
        let wanted = "# Tinbox: default/nuc-1 (52:54:00:77:00:01)\n\
            PROMPT 0\n\
            DEFAULT agent\n\
            LABEL agent\n  \
              KERNEL /agent/vmlinuz-aarch64\n  \
              INITRD /agent/initramfs-aarch64\n  \
              APPEND facility= grpc_authority=10.77.0.1:42113 tinkerbell_tls=false \
              tinkerbell_insecure_tls=false worker_id=pi hw_addr=52:54:00:77:00:01\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn files_that_lie_elsewhere_keep_their_address() {
        let text = config(&agent("http://mirror.example/hook"), OWN).unwrap();
        assert!(text.contains("  KERNEL http://mirror.example/hook/vmlinuz-aarch64\n"), "{text}");
    }

    #[test]
    fn no_field_adds_a_line() {
        let usual = config(&agent("http://a"), OWN).unwrap();
        let text = config(&agent("http://a\nLABEL evil\n KERNEL x"), OWN).unwrap();
        assert_eq!(text.lines().count(), usual.lines().count());
    }

    #[test]
    fn what_waits_for_nothing_boots_its_disk_and_what_may_not_netboot_gets_nothing() {
        assert!(config(&plan(Boot::LocalDisk), OWN).unwrap().ends_with("LOCALBOOT 0\n"));
        assert_eq!(config(&plan(Boot::NotAllowed), OWN), None);
        assert_eq!(config(&plan(Boot::Chain { url: "http://a".to_owned() }), OWN), None);
    }
}
