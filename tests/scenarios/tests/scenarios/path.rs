//! From power-on to a booted Debian that knows who it is.

use std::time::Duration;

use scenarios::{CLOUD_INIT, Lab, LabConfig, NucConfig, RackConfig, poll};

use crate::watch::{switched_on, told};

/// Boot, 1.5 GiB of image, Debian with cloud-init: all emulated, perhaps beside another.
const WHOLE: Duration = Duration::from_secs(1500);

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8jv7k4W4v0o4pZxw0n3Vm3R4oZ8V3Tq0r2cYp3D8aB owner";

const USER_DATA: &str = "#cloud-config\n\
    write_files:\n\
    - {path: /etc/issue.d/tinbox.issue, content: \"told by the box\\n\"}\n\
    runcmd:\n\
    - \"KEYS=$(grep -c 'owner$' /home/debian/.ssh/authorized_keys); \
         echo KEYS=$KEYS HOST=$(hostname) >/dev/ttyS0\"\n\
    phone_home:\n\
    \x20 url: http://10.77.0.1:7080/phone-home\n\
    \x20 post: [instance_id, hostname, fqdn, pub_key_ed25519]\n\
    \x20 tries: 10\n";

fn whole_path(name: &str, nuc: NucConfig) {
    let filter = "udp port 67 or udp port 68 or udp port 69";
    let rack = RackConfig::new(name).nuc(nuc).capture(filter);
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    lab.push_nuc(1, KEY, USER_DATA).unwrap();
    let image = lab.image("debian.raw.zst").unwrap();
    lab.push_template("debian", &image, CLOUD_INIT).unwrap();
    assert!(!lab.rack.nuc(1).is_on(), "the machine begins switched off");
    let workflow = lab.create_workflow("debian", 1).unwrap();

    lab.wait_success(&workflow, WHOLE).unwrap();
    let serial = lab.rack.nuc(1).serial();
    serial.wait_for("KEYS=1 HOST=nuc1", WHOLE).unwrap();
    let home = || (told(&lab, "phoned home as nuc1") > 0).then_some(());
    poll("Debian to phone home", Duration::from_secs(300), home).unwrap();

    assert_eq!(switched_on(&lab), 1);
    assert_eq!(told(&lab, "action stream-image started"), 1);
    crate::path::capture::check(&lab);
    lab.rack.succeed();
}

#[test]
fn debian_on_uefi() {
    whole_path("debian-uefi", NucConfig::uefi());
}

#[test]
fn debian_on_bios() {
    whole_path("debian-bios", NucConfig::bios());
}

mod capture {
    //! What was on the wire, against what the reference says of each ROM and of our answers.

    use scenarios::{Firmware, Lab};

    /// One DHCP message of a capture.
    struct Message<'a> {
        kind: u8,
        options: Vec<(u8, &'a [u8])>,
        bytes: &'a [u8],
    }

    fn read(bytes: &[u8]) -> Option<Message<'_>> {
        let mut rest = bytes.strip_prefix(bytes.get(..240)?)?;
        if bytes.get(236..240)? != [0x63, 0x82, 0x53, 0x63] {
            return None;
        }
        let mut options = Vec::new();
        while let [code, tail @ ..] = rest {
            match code {
                0 => rest = tail,
                255 => break,
                code => {
                    let (length, tail) = tail.split_first()?;
                    let (value, tail) = tail.split_at_checked(usize::from(*length))?;
                    options.push((*code, value));
                    rest = tail;
                }
            }
        }
        let kind = *options.iter().find(|(code, _)| *code == 53)?.1.first()?;
        Some(Message { kind, options, bytes })
    }

    impl Message<'_> {
        fn option(&self, code: u8) -> Option<&[u8]> {
            self.options.iter().find(|(known, _)| *known == code).map(|(_, value)| *value)
        }

        fn text(&self, code: u8) -> String {
            String::from_utf8_lossy(self.option(code).unwrap_or_default()).into_owned()
        }

        fn address(&self, at: usize) -> [u8; 4] {
            self.bytes[at..at + 4].try_into().unwrap()
        }
    }

    pub fn check(lab: &Lab) {
        let datagrams = lab.rack.capture().unwrap().datagrams().unwrap();
        let messages: Vec<Message<'_>> =
            datagrams.iter().filter_map(|datagram| read(&datagram.payload)).collect();
        let firmware = lab.rack.nuc(1).config().firmware;
        let (arch, class) = match firmware {
            Firmware::Bios => ([0_u8, 0], "PXEClient:Arch:00000:UNDI:002001"),
            Firmware::Uefi => ([0, 7], "PXEClient:Arch:00007:UNDI:003000"),
        };

        let first = messages.iter().find(|message| message.kind == 1).unwrap();
        assert_eq!(first.option(93), Some(&arch[..]), "architecture of the first DISCOVER");
        assert_eq!(first.text(60), class);
        let guid = first.option(97).unwrap();
        assert_eq!(&guid[..9], [0, 0x77, 0x77, 0x77, 0x77, 0, 0, 0, 0x40], "SMBIOS byte order");

        let answers: Vec<_> = messages.iter().filter(|it| matches!(it.kind, 2 | 5)).collect();
        assert!(answers.len() >= 4, "an OFFER and an ACK for firmware and for the agent");
        for answer in &answers {
            assert_eq!(answer.bytes[0], 2, "op is BOOTREPLY");
            assert_eq!(answer.address(16), [10, 77, 0, 11], "yiaddr");
            assert_eq!(answer.option(54), Some(&[10, 77, 0, 1][..]), "server id");
            assert_eq!(answer.option(1), Some(&[255, 255, 255, 0][..]), "netmask");
            assert_eq!(answer.option(3), Some(&[10, 77, 0, 1][..]), "router");
            assert_eq!(answer.option(51), Some(&86_400_u32.to_be_bytes()[..]), "lease time");
            assert_eq!(answer.text(12), "nuc1");
            assert!(answer.bytes.len() >= 300, "BOOTP's least length");
        }
        let booting = answers.iter().find(|it| it.kind == 5).unwrap();
        let file = String::from_utf8_lossy(&booting.bytes[108..236]).replace('\0', "");
        match firmware {
            Firmware::Bios => {
                let script = "http://10.77.0.1:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";
                assert!([file, booting.text(67)].contains(&script.to_owned()), "iPXE's script");
            }
            Firmware::Uefi => {
                assert_eq!(booting.address(20), [10, 77, 0, 1], "siaddr");
                assert!(file == "snponly.efi" || booting.text(67).starts_with("snponly.efi"));
            }
        }
        let foreign = answers.iter().any(|it| it.bytes[28..34] != [0x52, 0x54, 0, 0x77, 0, 1]);
        assert!(!foreign, "only the known machine was answered");
    }
}
