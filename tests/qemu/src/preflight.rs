//! Check that this machine has everything that a rack needs. The check finds all missing items, and
//! runs before the first change of the machine.

use std::path::{Path, PathBuf};

use crate::{Error, Missing, machine};

/// Program, its purpose in the rack, and its Debian package.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("qemu-system-x86_64", "it is the NUCs", "qemu-system-x86"),
    ("ipmi_sim", "it is the NUCs' BMCs", "openipmi"),
    ("ipmitool", "it is the independent witness of every BMC command", "ipmitool"),
    ("ip", "it makes the network", "iproute2"),
    ("ethtool", "it turns unfinished checksums off", "ethtool"),
    ("nft", "it makes bad cables", "nftables"),
    ("tcpdump", "it records the wire", "tcpdump"),
];

/// Groups of files; one file of each group is enough.
const FILES: [(&[&str], &str, &str); 3] = [
    (&[machine::OVMF_CODE], "it is the UEFI firmware", "ovmf"),
    (&[machine::OVMF_VARS], "it is the UEFI firmware's memory", "ovmf"),
    (
        &["/usr/lib/ipxe/qemu/pxe-virtio.rom", "/usr/share/qemu/pxe-virtio.rom"],
        "it is the network boot ROM of BIOS machines",
        "ipxe-qemu",
    ),
];

/// The harness's own programs.
const OWN: [&str; 2] = ["rack-chassis", "rack-warden"];

/// Checks all requirements of a rack.
///
/// # Errors
/// [`Error::Preflight`] with the complete list of missing items, their purpose and their source.
pub fn preflight() -> Result<(), Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push(Missing {
            what: "root".to_owned(),
            why: "network namespaces, bridges and taps need it",
            from: "run it with sudo".to_owned(),
        });
    }
    if !Path::new("/dev/net/tun").exists() {
        missing.push(Missing {
            what: "/dev/net/tun".to_owned(),
            why: "the NUCs' network cables are taps",
            from: "modprobe tun, or pass the device into the container".to_owned(),
        });
    }
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for (program, why, package) in PROGRAMS {
        if !folders.iter().any(|folder| folder.join(program).is_file()) {
            missing.push(from_package(program, why, package));
        }
    }
    for (paths, why, package) in FILES {
        if !paths.iter().any(|path| Path::new(path).exists()) {
            missing.push(from_package(paths.first().unwrap_or(&""), why, package));
        }
    }
    for program in OWN {
        if programs::find(program).is_err() {
            missing.push(Missing {
                what: program.to_owned(),
                why: "it runs a part of the rack",
                from: "make build".to_owned(),
            });
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(Error::Preflight(missing)) }
}

fn from_package(what: &str, why: &'static str, package: &str) -> Missing {
    Missing {
        what: what.to_owned(),
        why,
        from: format!("apt-get install --no-install-recommends {package}"),
    }
}
