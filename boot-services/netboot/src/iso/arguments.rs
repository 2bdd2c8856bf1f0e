//! Kernel arguments of a medium for one machine.

use crate::plan::Medium;
use crate::script;

/// Returns the kernel arguments of a medium: the arguments of the machine's script, and its static
/// addresses if it has any. `initrd=` is omitted, because the medium's boot loader sets it.
///
/// A facility that names consoles (`onprem console=ttyS1`) is how users of Smee choose the consoles
/// of one machine. The default consoles are then left out, as in Smee's ISOs.
pub fn arguments(medium: &Medium) -> Vec<String> {
    let mut boot = medium.boot.clone();
    if boot.facility.contains("console=") {
        boot.consoles.clear();
    }
    let mut line = script::command_line(medium.mac, &boot);
    line.retain(|argument| !argument.starts_with("initrd="));
    line.extend(medium.ipam.as_ref().map(|ipam| ipam.argument(medium.mac)));
    line
}

#[cfg(test)]
mod tests {
    use super::arguments;
    use crate::plan::{AgentBoot, Ipam, Medium};

    fn medium() -> Medium {
        let boot = AgentBoot {
            initrd: "initramfs-x86_64".to_owned(),
            facility: "onprem".to_owned(),
            vlan_id: Some("7".to_owned()),
            syslog_host: Some("10.77.0.1".to_owned()),
            grpc_authority: "10.77.0.1:42113".to_owned(),
            tls: true,
            insecure_tls: true,
            worker_id: "rack1-nuc7".to_owned(),
            consoles: vec!["tty0".to_owned(), "ttyS0,115200".to_owned()],
            args: vec!["tinbox.token=00ff".to_owned()],
            ..AgentBoot::default()
        };
        Medium { boot, ..Medium::new("52:54:00:77:00:01".parse().unwrap(), "default/nuc-1") }
    }

    #[test]
    fn says_what_the_script_says() {
        assert_eq!(
            arguments(&medium()).join(" "),
            "vlan_id=7 facility=onprem syslog_host=10.77.0.1 grpc_authority=10.77.0.1:42113 \
             tinkerbell_tls=true tinkerbell_insecure_tls=true worker_id=rack1-nuc7 \
             hw_addr=52:54:00:77:00:01 console=tty0 console=ttyS0,115200 tinbox.token=00ff"
        );
    }

    #[test]
    fn a_facility_may_choose_the_consoles() {
        let mut medium = medium();
        medium.boot.facility = "onprem console=ttyS1,115200".to_owned();
        let line = arguments(&medium).join(" ");
        assert!(line.contains("facility=onprem console=ttyS1,115200 "), "{line}");
        assert_eq!(line.matches("console=").count(), 1, "{line}");
    }

    #[test]
    fn addresses_are_nine_fields() {
        let mut medium = medium();
        medium.ipam = Some(Ipam {
            vlan_id: Some("7".to_owned()),
            address: Some([10, 77, 0, 11].into()),
            netmask: Some([255, 255, 255, 0].into()),
            gateway: Some([10, 77, 0, 1].into()),
            hostname: "nuc:1".to_owned(),
            name_servers: vec![[10, 77, 0, 1].into(), [10, 77, 0, 2].into()],
            search: vec!["rack.example".to_owned()],
            time_servers: Vec::new(),
        });
        assert_eq!(
            arguments(&medium).last().unwrap(),
            "ipam=52-54-00-77-00-01:7:10.77.0.11:255.255.255.0:10.77.0.1:nuc1:\
             10.77.0.1,10.77.0.2:rack.example:"
        );
        medium.ipam = Some(Ipam::default());
        assert_eq!(arguments(&medium).last().unwrap(), "ipam=52-54-00-77-00-01::::::::");
    }
}
