//! Settings of the demos, from the command line and the environment.

use anyhow::ensure;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use qemu::{BmcKind, BootOrder, Firmware, NucConfig, RackConfig};

use super::keeps_rack;

/// Settings of a demo.
#[derive(Debug, Parser)]
#[command(version)]
pub struct DemoArguments {
    /// Number of NUCs to install.
    #[arg(long, env = "DEMO_NUCS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    pub nucs: u8,
    /// Firmware of the NUCs.
    #[arg(long, env = "DEMO_FIRMWARE", default_value = "uefi")]
    firmware: Kind,
    /// Power control of the NUCs.
    #[arg(long, env = "DEMO_BMC", default_value = "ipmi")]
    bmc: Power,
    /// Leave the rack running at the end: 1 to do so, 0 or empty to end it.
    #[arg(long, env = "DEMO_KEEP", default_value = "")]
    keep: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Uefi,
    Bios,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Power {
    /// IPMI 2.0 over LAN.
    Ipmi,
    /// Wake-on-LAN, without a BMC.
    Wol,
    /// Signed HTTP requests to a webhook.
    Webhook,
    /// Intel AMT without TLS.
    Amt,
    /// Redfish with TLS and basic authentication.
    Redfish,
    /// Port of a switch with Power over Ethernet, by SNMP.
    Poe,
}

impl Power {
    fn kind(self) -> BmcKind {
        match self {
            Self::Ipmi => BmcKind::Ipmi,
            Self::Wol => BmcKind::WakeOnLan,
            Self::Webhook => BmcKind::Webhook,
            Self::Amt => BmcKind::Amt,
            Self::Redfish => BmcKind::Redfish,
            Self::Poe => BmcKind::Poe,
        }
    }
}

impl DemoArguments {
    /// Reads the command line of a program with this description; ends the program if the command
    /// line is not valid.
    pub fn read(about: &'static str) -> Self {
        let matches = Self::command().about(about).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// True if the rack keeps running at the end.
    pub fn keeps_rack(&self) -> bool {
        keeps_rack(&self.keep)
    }

    /// Returns the rack with its NUCs. `name` is the name of its output folder.
    pub fn rack(&self, name: &str) -> RackConfig {
        let kind = self.bmc.kind();
        let mut rack = RackConfig::new(name).nucs(self.nucs.into(), &self.nuc()).bmc(kind);
        // The tutorial shows the consoles after the end.
        rack.keep = true;
        rack
    }

    /// Returns the rack in words.
    pub fn words(&self) -> String {
        let firmware = if self.nuc().firmware() == Firmware::Uefi { "UEFI" } else { "BIOS" };
        format!("a rack with {} {firmware} NUC(s), switched off", self.nucs)
    }

    fn nuc(&self) -> NucConfig {
        let mut nuc = match self.firmware {
            Kind::Uefi => NucConfig::uefi(),
            Kind::Bios => NucConfig::bios(),
        };
        if matches!(self.bmc, Power::Wol | Power::Poe) {
            // A magic packet and a port have no boot device.
            nuc.boot_order = BootOrder::NetworkFirst;
        }
        nuc
    }
}

/// Checks that the demo runs as root.
///
/// # Errors
/// Another user runs it; with the reason and the command to type.
pub fn require_root(command: &str) -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the demo needs root\n\
         why: it makes network namespaces, a bridge and tap devices for the virtual rack, and the \
         box binds the ports of DHCP and TFTP inside them; nothing outside them is touched\n\
         hint: {command}"
    );
    Ok(())
}
