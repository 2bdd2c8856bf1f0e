//! `rack-up`: a virtual rack for manual use, until it is interrupted.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use qemu::{Error, NucConfig, Rack, RackConfig};

/// Builds a virtual rack and keeps it until this program is interrupted.
#[derive(Debug, Parser)]
struct Options {
    /// Names the output folder, `out/NAME`.
    #[arg(long, default_value = "rack-up")]
    name: String,
    /// Number of NUCs in the rack.
    #[arg(long, default_value_t = 1)]
    nucs: usize,
    /// Firmware of the NUCs.
    #[arg(long, value_enum, default_value_t = Firmware::Uefi)]
    firmware: Firmware,
    /// RAM of each NUC in MiB.
    #[arg(long, default_value_t = 512)]
    memory: u32,
    /// Power the NUCs on at once.
    #[arg(long)]
    on: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Firmware {
    Bios,
    Uefi,
}

fn main() -> ExitCode {
    let result = build(&Options::parse());
    let Ok(_rack) = result.inspect_err(|error| eprintln!("rack-up: {}", stdx::chain(error))) else {
        return ExitCode::FAILURE;
    };
    loop {
        std::thread::park();
    }
}

fn build(options: &Options) -> Result<Rack, Error> {
    let base = match options.firmware {
        Firmware::Bios => NucConfig::bios(),
        Firmware::Uefi => NucConfig::uefi(),
    };
    let nuc = NucConfig { memory_mib: options.memory, ..base };
    let rack = Rack::build(RackConfig::new(&options.name).nucs(options.nucs, &nuc))?;
    for nuc in rack.nucs() {
        if options.on {
            nuc.power_on()?;
        }
        println!("nuc{} mac {} bmc {}", nuc.number(), nuc.mac(), nuc.bmc().address);
    }
    println!("BMC user and password: {}/bmc*/lan.conf", rack.work_dir().display());
    println!("consoles and logs: {}", rack.dir().display());
    println!("a shell in the box: ip netns exec {}-box bash", rack.name());
    println!("rack {} is up; interrupt to take it down", rack.name());
    Ok(rack)
}
