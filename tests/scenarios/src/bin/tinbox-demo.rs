//! `make demo`: a whole installation on a virtual rack, with live output.

use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::{Parser, ValueEnum};
use scenarios::{
    BmcKind, BootOrder, Firmware, Lab, LabConfig, NucConfig, RackConfig, RunningRack, Screen,
    install_command, keeps_rack, page_pin, say, show,
};

/// Install Debian on a virtual NUC, from power-on to cloud-init.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Number of NUCs to install.
    #[arg(long, env = "DEMO_NUCS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    nucs: u8,
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

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Uefi,
    Bios,
}

#[derive(Clone, Copy, ValueEnum)]
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

fn main() -> ExitCode {
    scenarios::exit(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "the demo needs root\n\
         why: it makes network namespaces, a bridge and tap devices for the virtual rack, and the \
         box binds the ports of DHCP and TFTP inside them; nothing outside them is touched\n\
         hint: sudo make demo"
    );
    let mut nuc = match arguments.firmware {
        Kind::Uefi => NucConfig::uefi(),
        Kind::Bios => NucConfig::bios(),
    };
    let kind = arguments.bmc.kind();
    if matches!(kind, BmcKind::WakeOnLan | BmcKind::Poe) {
        // A magic packet and a port have no boot device.
        nuc.boot_order = BootOrder::NetworkFirst;
    }
    let firmware = if nuc.firmware() == Firmware::Uefi { "UEFI" } else { "BIOS" };
    say(&format!("a rack with {} {firmware} NUC(s), switched off", arguments.nucs));
    let mut rack = RackConfig::new("demo").nucs(arguments.nucs.into(), &nuc).bmc(kind);
    // The tutorial shows the consoles after the end.
    rack.keep = true;
    let mut config = LabConfig::new(rack);
    config.pages = true;
    let started = Instant::now();
    let lab = Lab::start(config)?;
    say(&format!("tinboxd answers after {:.1} s", started.elapsed().as_secs_f32()));

    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8jv7k4W4v0o4pZxw0n3Vm3R4oZ8V3Tq0r2cYp3D8aB \
               owner";
    let user_data = "#cloud-config\n\
        runcmd:\n\
        - \"echo hello from $(hostname), configured by the box >/dev/ttyS0\"\n\
        phone_home:\n\
        \x20 url: http://10.77.0.1:7080/phone-home\n\
        \x20 post: [instance_id, hostname, fqdn, pub_key_ed25519]\n\
        \x20 tries: 10\n";
    for number in 1..=usize::from(arguments.nucs) {
        show(&format!("tinbox hardware push --file nuc{number}.yaml"));
        lab.push_nuc(number, key, user_data)?;
    }
    show(&lab.push_debian()?);
    show("tinbox hardware list");
    print!("{}", lab.tinbox(&["hardware", "list"])?);

    let begun = Instant::now();
    follow(&lab, arguments.nucs)?;
    say(&format!("done in {:.0} s", begun.elapsed().as_secs_f32()));
    finish(lab, keeps_rack(&arguments.keep))
}

/// Creates the workflows and shows progress and events of every machine until it has phoned home.
fn follow(lab: &Lab, nucs: u8) -> anyhow::Result<()> {
    let screen = &Screen::new();
    thread::scope(|scope| {
        let mut waits = Vec::new();
        for number in 1..=nucs {
            let name = format!("nuc{number}");
            let create = install_command(&name);
            show(&format!("tinbox {create}"));
            let create = lab.command(&create.split(' ').collect::<Vec<_>>())?;
            let story = lab.command(&["machine", "history", &name, "--follow"])?;
            // `machine history --follow` ends by itself when the installed system phones home, or
            // the workflow fails.
            for (command, mark) in [(create, '>'), (story, '|')] {
                let name = name.clone();
                waits.push(scope.spawn(move || screen.relay(command, &name, mark)));
            }
        }
        for wait in waits {
            wait.join().map_err(|_| anyhow::anyhow!("a follower broke off"))??;
        }
        Ok(())
    })
}

fn finish(lab: Lab, keep: bool) -> anyhow::Result<()> {
    if !keep {
        lab.rack.succeed();
        return Ok(());
    }
    let programs = std::env::current_exe().context("cannot find the running program")?;
    let programs = programs.parent().context("the program is in a folder")?;
    let (kubeconfig, claim) = (lab.kubeconfig(), lab.claim_file());
    let page = lab.claim_page()?;
    let rack = RunningRack {
        name: lab.rack.name(),
        programs,
        kubeconfig: &kubeconfig,
        consoles: lab.rack.dir(),
        claim: &claim,
        pin: page_pin(&page),
    };
    print!("\n{}", rack.instructions());
    println!("Press Enter, or Ctrl-C, to end it.");
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).context("cannot read the terminal")? == 0 {
        // Without a terminal there is no Enter key: a signal ends the demo.
        loop {
            thread::park();
        }
    }
    lab.rack.succeed();
    Ok(())
}
