//! The boot of one machine, and a table of boots in one network.

use std::time::{Duration, Instant};

use scenarios::{BootPath, Firmware, Lab, LabConfig, NucConfig, RackConfig, poll};

use crate::gate;
use crate::table::{self, Goal, Network, Row};

/// Timeout of a boot. A UEFI boot takes 14 s on an idle machine, and others may run in parallel.
const BOOT: Duration = Duration::from_secs(240);
/// Capture filter for the packets of a boot.
const WIRE: &str = "udp port 67 or udp port 68 or udp port 69 or udp port 4011";
/// The workflow for the agent. Its only action fails at once, because it has no image to write; no
/// further work follows.
const TEMPLATE: &str = "version: \"0.1\"\n\
    name: boot\n\
    global_timeout: 600\n\
    tasks:\n\
    - name: boot\n\
    \x20 worker: \"{{.device_1}}\"\n\
    \x20 actions:\n\
    \x20 - name: ask-for-work\n\
    \x20   image: quay.io/tinkerbell/actions/writefile:latest\n\
    \x20   timeout: 60\n";

/// A box in a network.
pub struct Matrix {
    name: &'static str,
    network: String,
    reservations: bool,
}

impl Matrix {
    /// `network`: the lines of `[network]` that configure the box's DHCP.
    pub fn new(name: &'static str, network: &str) -> Self {
        Self { name, network: network.to_owned(), reservations: true }
    }

    /// Registers the machines without an address: it comes from a pool, or another server.
    pub fn without_reservations(mut self) -> Self {
        self.reservations = false;
        self
    }

    /// Boots the rows of a network and a kind of firmware, and fails with the list of rows that
    /// missed their goal. `prepare` adds other parts of the network, which stay until the end.
    pub fn boot<T>(self, network: Network, firmware: &[Firmware], prepare: impl FnOnce(&Lab) -> T) {
        let rows = table::selected(network, firmware, table::boots_all());
        assert!(!rows.is_empty(), "{network:?} boots no machine");
        let nucs = rows.iter().map(|row| NucConfig {
            path: row.path,
            nic: row.nic,
            segment: row.segment(),
            ..NucConfig::bios()
        });
        let mut rack = RackConfig::new(self.name).capture(WIRE);
        rack.nucs = nucs.collect();
        let mut config = LabConfig::new(rack);
        config.network = self.network;
        config.reservations = self.reservations;
        let lab = Lab::start(config).unwrap();
        let neighbours = prepare(&lab);
        let template = lab.file("boot.yaml", TEMPLATE).unwrap();
        lab.tinbox(&["template", "create", "--file", template.to_str().unwrap()]).unwrap();
        let failed: Vec<String> = std::thread::scope(|scope| {
            let lab = &lab;
            let boots = rows
                .iter()
                .zip(1..)
                .map(|(row, number)| scope.spawn(move || boot(lab, *row, number).err()));
            let boots: Vec<_> = boots.collect();
            boots.into_iter().filter_map(|boot| boot.join().unwrap()).collect()
        });
        drop(neighbours);
        assert!(failed.is_empty(), "{}:\n{}", self.name, failed.join("\n"));
        lab.rack.succeed();
    }
}

fn boot(lab: &Lab, row: Row, number: usize) -> Result<(), String> {
    let _place = gate::enter();
    let name = format!("{:?} on {} ({:?})", row.path, row.nic.device(), row.segment());
    let failed = |what: String| format!("  nuc{number}, {name}: {what}");
    lab.push_nuc(number, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let start = Instant::now();
    lab.create_workflow("boot", number).map_err(|error| failed(format!("{error:#}")))?;
    let mut told = String::new();
    for reason in row.reasons() {
        let what = format!("{reason} of nuc{number}");
        poll(&what, BOOT.saturating_sub(start.elapsed()), || lab.event(number, reason))
            .map_err(|error| failed(format!("{error}; until then:{told}")))?;
        told += &format!(" {reason} {:.1} s", start.elapsed().as_secs_f32());
    }
    let nuc = lab.rack.nuc(number);
    let cpu = nuc.cpu().unwrap_or_default();
    nuc.cut_power();
    println!("{name}:{told}, {:.1} s of processor time", cpu.as_secs_f32());
    row.check_loader(lab, number).map_err(failed)
}

impl Row {
    /// Event reasons that the box records for this boot, in order.
    fn reasons(self) -> &'static [&'static str] {
        match self.goal {
            Goal::Agent => &["FetchedScript", "AgentStarted", "ActionFailed"],
            Goal::Direct => &["FetchedLoader", "AgentStarted", "ActionFailed"],
            Goal::Files => &["FetchedScript", "FetchedKernel", "FetchedInitrd"],
            Goal::Script => &["FetchedScript"],
        }
    }

    /// Checks that the machine really booted by the method that its row names.
    fn check_loader(self, lab: &Lab, number: usize) -> Result<(), String> {
        let expected = match self.path {
            _ if self.goal == Goal::Direct => Some("fetched agent-x86_64.efi by"),
            BootPath::BiosIpxeRom | BootPath::UefiIpxeRom => None,
            BootPath::BiosPlainPxe => Some("fetched undionly.kpxe by TFTP"),
            BootPath::UefiPxe4 | BootPath::UefiPxe6 => Some("fetched snponly.efi by TFTP"),
            BootPath::UefiHttp4 => Some("fetched snponly.efi by HTTP"),
        };
        let loader = lab.event(number, "FetchedLoader");
        let as_expected = match (&loader, expected) {
            (None, None) => true,
            (Some(line), Some(words)) => line.contains(words),
            _ => false,
        };
        let wanted = || format!("it should have {expected:?}, and the box told {loader:?}");
        if as_expected { Ok(()) } else { Err(wanted()) }
    }
}
