//! From power-on to a booted Debian that knows its name, with a package that a workflow installed.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use scenarios::{BoxProcess, Lab, LabConfig, NucConfig, RackConfig, poll};

use crate::watch::{ONE_START, file_server, switched_on, told};

/// Timeout for boot, 1.5 GiB of image and Debian with cloud-init: all emulated, possibly in
/// parallel with another test.
const WHOLE: Duration = Duration::from_secs(1500);

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8jv7k4W4v0o4pZxw0n3Vm3R4oZ8V3Tq0r2cYp3D8aB owner";

const USER_DATA: &str = "#cloud-config\n\
    write_files:\n\
    - {path: /etc/issue.d/tinbox.issue, content: \"told by the box\\n\"}\n\
    runcmd:\n\
    - \"KEYS=$(grep -c 'owner$' /home/debian/.ssh/authorized_keys); \
         echo KEYS=$KEYS HOST=$(hostname) PACKAGE=$(tinbox-greeting) >/dev/ttyS0\"\n\
    phone_home:\n\
    \x20 url: http://10.77.0.1:7080/phone-home\n\
    \x20 post: [instance_id, hostname, fqdn, pub_key_ed25519]\n\
    \x20 tries: 10\n";

/// A package whose program prints its own dpkg status.
const CONTROL: &str = "Package: tinbox-greeting\nVersion: 1.0\nArchitecture: all\n\
    Maintainer: nobody <nobody@example.org>\nDescription: says that it is here\n";
const PROGRAM: &str = "#!/bin/sh\nexec dpkg-query -W -f '${Status} ${Version}' tinbox-greeting\n";

fn succeeds(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Serves the package in an archive; returns the archive's SHA-256.
fn package(lab: &Lab) -> (BoxProcess, String) {
    let (tree, folder) = (lab.rack.work_dir().join("tree"), lab.rack.work_dir().join("served"));
    for place in [tree.join("DEBIAN"), tree.join("usr/bin"), folder.clone()] {
        std::fs::create_dir_all(place).unwrap();
    }
    let program = tree.join("usr/bin/tinbox-greeting");
    std::fs::write(tree.join("DEBIAN/control"), CONTROL).unwrap();
    std::fs::write(&program, PROGRAM).unwrap();
    let runs = std::fs::Permissions::from_mode(0o755);
    for place in [&tree, &tree.join("DEBIAN"), &tree.join("usr"), &tree.join("usr/bin"), &program] {
        std::fs::set_permissions(place, runs.clone()).unwrap();
    }
    let package = folder.join("greeting.deb");
    let build = ["--root-owner-group", "--build"];
    succeeds(Command::new("dpkg-deb").args(build).args([&tree, &package]));
    let archive = folder.join("greeting.tar.gz");
    let mut tar = Command::new("tar");
    succeeds(tar.arg("-czf").arg(&archive).arg("-C").arg(&folder).arg("greeting.deb"));
    let sum = succeeds(Command::new("sha256sum").arg(&archive));
    let server = file_server(lab, &folder, "10.77.0.1:8099", &["--etag"]);
    (server, sum.split_whitespace().next().unwrap().to_owned())
}

/// Changes the template so that it installs the package before it restarts the machine.
fn with_package(lab: &Lab, sha256: &str) {
    let json = lab.tinbox(&["-o", "json", "template", "get", "debian"]).unwrap();
    let template: serde_json::Value = serde_json::from_str(&json).unwrap();
    let text = template["spec"]["data"].as_str().unwrap();
    let disk = "\"{{ formatPartition (index .Hardware.Disks 0) 1 }}\"";
    let actions = format!(
        "  - name: bring-the-package\n\
         \x20   image: quay.io/tinkerbell/actions/archive2disk:latest\n\
         \x20   timeout: 300\n\
         \x20   environment:\n\
         \x20     ARCHIVE_URL: http://10.77.0.1:8099/greeting.tar.gz\n\
         \x20     ARCHIVE_TYPE: targz\n\
         \x20     TARFILE_CHECKSUM: sha256:{sha256}\n\
         \x20     DEST_DISK: {disk}\n\
         \x20     FS_TYPE: ext4\n\
         \x20     DEST_PATH: /var/tmp\n\
         \x20 - name: install-the-package\n\
         \x20   image: quay.io/tinkerbell/actions/cexec:latest\n\
         \x20   timeout: 300\n\
         \x20   environment:\n\
         \x20     BLOCK_DEVICE: {disk}\n\
         \x20     FS_TYPE: ext4\n\
         \x20     CHROOT: y\n\
         \x20     CMD_LINE: dpkg -i /var/tmp/greeting.deb\n"
    );
    let (before, after) = text.split_once("  - name: reboot").unwrap();
    let file =
        lab.file("debian.yaml", &format!("{before}{actions}  - name: reboot{after}")).unwrap();
    lab.tinbox(&["template", "update", "debian", "--file", file.to_str().unwrap()]).unwrap();
}

/// Checks that the box finds the BMC of the machine, and knows by the UUID whose it is.
fn bmc_is_discovered(lab: &Lab) {
    let json = lab.tinbox(&["-o", "json", "bmc", "discover"]).unwrap();
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ipmi = found.as_array().unwrap().iter().find(|it| it["bmc"]["address"] == "10.77.0.101");
    let ipmi = ipmi.unwrap_or_else(|| panic!("the BMC is not found: {json}"));
    assert_eq!(ipmi["bmc"]["protocols"], serde_json::json!(["ipmi"]), "{json}");
    assert_eq!(ipmi["owner"]["name"], "nuc1", "{json}");
    let reason = ipmi["owner"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("both have the UUID"), "{reason}");
    assert!(ipmi["accepted"].as_str().unwrap().starts_with("default/"), "{json}");
}

fn whole_path(name: &str, nuc: NucConfig) {
    let filter = "udp port 67 or udp port 68 or udp port 69";
    let rack = RackConfig::new(name).nuc(nuc).capture(filter);
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    lab.push_nuc(1, KEY, USER_DATA).unwrap();
    lab.push_debian().unwrap();
    let (_server, sum) = package(&lab);
    with_package(&lab, &sum);
    assert!(!lab.rack.nuc(1).is_on(), "the machine begins switched off");
    let workflow = lab.create_workflow("debian", 1).unwrap();

    lab.wait_success(&workflow, WHOLE).unwrap();
    let serial = lab.rack.nuc(1).serial();
    serial.wait_for("KEYS=1 HOST=nuc1 PACKAGE=install ok installed 1.0", WHOLE).unwrap();
    let home = || (told(&lab, "phoned home as nuc1") > 0).then_some(());
    poll("Debian to phone home", Duration::from_secs(300), home).unwrap();

    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    assert_eq!(told(&lab, "action stream-image started"), 1);
    crate::path::capture::check(&lab);
    bmc_is_discovered(&lab);
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
    //! Checks of the captured DHCP packets: the requests of each ROM, and the answers of the box.

    use std::net::Ipv4Addr;

    use scenarios::{DhcpKind, Firmware, Lab};

    const BOX: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    pub fn check(lab: &Lab) {
        let messages = lab.rack.capture().unwrap().dhcp().unwrap();
        let firmware = lab.rack.nuc(1).config().firmware();
        let (arch, class) = match firmware {
            Firmware::Bios => ([0_u8, 0], "PXEClient:Arch:00000:UNDI:002001"),
            Firmware::Uefi => ([0, 7], "PXEClient:Arch:00007:UNDI:003000"),
        };

        // The box also sends DISCOVERs, to find other servers.
        let mac = lab.rack.nuc(1).mac();
        let mut asked = messages.iter().filter(|message| message.chaddr() == mac);
        let first = asked.find(|message| message.kind == DhcpKind::Discover).unwrap();
        assert_eq!(first.option(93), Some(&arch[..]), "architecture of the first DISCOVER");
        assert_eq!(first.text(60), class);
        let guid = first.option(97).unwrap();
        assert_eq!(&guid[..9], [0, 0x77, 0x77, 0x77, 0x77, 0, 0, 0, 0x40], "SMBIOS byte order");

        let is_answer = |kind| matches!(kind, DhcpKind::Offer | DhcpKind::Ack);
        let answers: Vec<_> = messages.iter().filter(|it| is_answer(it.kind)).collect();
        assert!(answers.len() >= 4, "an OFFER and an ACK for firmware and for the agent");
        for answer in &answers {
            assert_eq!(answer.op(), 2, "op is BOOTREPLY");
            assert_eq!(answer.yiaddr(), Ipv4Addr::new(10, 77, 0, 11));
            assert_eq!(answer.server(), Some(BOX));
            assert_eq!(answer.option(1), Some(&[255, 255, 255, 0][..]), "netmask");
            assert_eq!(answer.address(3), Some(BOX), "router");
            assert_eq!(answer.option(51), Some(&86_400_u32.to_be_bytes()[..]), "lease time");
            assert_eq!(answer.text(12), "nuc1");
            assert!(answer.datagram.payload.len() >= 300, "BOOTP's least length");
            assert_eq!(answer.chaddr(), mac, "only the known machine was answered");
        }
        let booting = answers.iter().find(|it| it.kind == DhcpKind::Ack).unwrap();
        match firmware {
            Firmware::Bios => {
                let script = "http://10.77.0.1:7080/ipxe/script/52:54:00:77:00:01/auto.ipxe";
                assert!([booting.file(), booting.text(67)].contains(&script.to_owned()));
            }
            Firmware::Uefi => {
                assert_eq!(booting.siaddr(), BOX);
                let named = booting.text(67).starts_with("snponly.efi");
                assert!(booting.file() == "snponly.efi" || named);
            }
        }
    }
}
