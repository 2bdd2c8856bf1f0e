//! Choice of the boot file for a client that boots from the network.

use std::collections::BTreeMap;

use stdx::MacAddr;

use crate::config::Config;
use crate::messages::boot::Boot;
use crate::messages::client::{ARM_RPIBOOT, Client, Stage};
use crate::reservation::{Netboot, Reservation};

/// Default loader file by client architecture (option 93, IANA's processor architecture types).
/// [`Config::binaries`] and the machine's own record take precedence.
///
/// x86-64 UEFI gets `snponly.efi`, the smallest loader. It uses the firmware's NIC driver, which
/// has just worked. Architectures 7 and 9 have the same file because of RFC 4578's erratum:
/// firmware sends either for x86-64. 32-bit firmware (x86: 6, 15; Arm: 10, 18) has its own files,
/// because Smee's do not run there. Architecture 41 is a Raspberry Pi. A client with a Raspberry
/// Pi's MAC prefix or machine identifier counts as 41 too, because its ROM reports a BIOS.
pub const BINARIES: &[(u16, &str)] = &[
    (0, "undionly.kpxe"),
    (20, "undionly.kpxe"),
    (7, "snponly.efi"),
    (9, "snponly.efi"),
    (16, "snponly.efi"),
    (6, "snponly-i386.efi"),
    (15, "snponly-i386.efi"),
    (10, "snp-arm32.efi"),
    (18, "snp-arm32.efi"),
    (11, "snp-arm64.efi"),
    (19, "snp-arm64.efi"),
    (ARM_RPIBOOT, "snp-arm64.efi"),
];

/// Boot file name for a machine that may not netboot. No file of this name exists: see [`boot`].
pub const NOT_ALLOWED_FILE: &str = "/netboot-not-allowed";

/// Chooses the boot options for a client.
///
/// A machine that may not netboot should boot from its disk as soon as possible. Firmware repeats
/// its requests if an offer has no file (EDK2: for 68 s). So the machine gets the name of a missing
/// file, and netboot fails at once by TFTP's error or HTTP's 404 (EDK2: after the 4 s for which it
/// collects offers). iPXE with an address and no file reports that there is nothing to boot and
/// returns to the firmware (2 s, its own prompt). A client whose architecture has no loader also
/// gets the name of a missing file, which shows the reason on the screen.
pub(crate) fn boot(config: &Config, machine: &Reservation, client: &Client) -> Boot {
    if machine.tftp_server_name.is_some() || machine.boot_file_name.is_some() {
        let server = machine.tftp_server_name.clone();
        return Boot::Fixed { server, file: machine.boot_file_name.clone() };
    }
    let allowed = machine.netboot == Netboot::Allowed;
    match client.stage {
        Stage::System => Boot::Nothing,
        Stage::Ipxe if !allowed => Boot::Exit,
        Stage::Ipxe => Boot::Script { url: script_url(config, machine.mac) },
        Stage::Pxe if !allowed => {
            Boot::Tftp { server: config.server, file: NOT_ALLOWED_FILE.to_owned() }
        }
        Stage::Pxe => Boot::Tftp { server: config.server, file: loader(config, machine, client) },
        Stage::HttpBoot => {
            let file = if allowed {
                loader(config, machine, client)
            } else {
                NOT_ALLOWED_FILE.trim_start_matches('/').to_owned()
            };
            Boot::Http { url: binary_url(config, machine.mac, &file) }
        }
    }
}

fn loader(config: &Config, machine: &Reservation, client: &Client) -> String {
    if let Some(file) = &machine.ipxe_binary {
        return file.clone();
    }
    let arch = if client.raspberry_pi { Some(ARM_RPIBOOT) } else { client.arch };
    loader_of(&config.binaries, arch)
}

/// Returns the loader file of an architecture: from `binaries`, or else from [`BINARIES`]. For an
/// unknown architecture returns the name of a missing file that states the reason.
pub(crate) fn loader_of(binaries: &BTreeMap<u16, String>, arch: Option<u16>) -> String {
    let Some(arch) = arch else { return "no-loader-for-unknown-architecture".to_owned() };
    let listed = || BINARIES.iter().find(|(known, _)| *known == arch).map(|(_, file)| *file);
    let file = binaries.get(&arch).map(String::as_str).or_else(listed);
    file.map_or_else(|| format!("no-loader-for-architecture-{arch}"), str::to_owned)
}

/// Returns the URL of the machine's iPXE script, in Smee's format.
fn script_url(config: &Config, mac: MacAddr) -> String {
    format!("http://{}:{}/ipxe/script/{mac}/auto.ipxe", config.server, config.http_port)
}

/// Returns the URL of a loader, in Smee's format.
fn binary_url(config: &Config, mac: MacAddr, file: &str) -> String {
    format!("http://{}:{}/ipxe/binary/{mac}/{file}", config.server, config.http_port)
}

#[cfg(test)]
mod tests;
