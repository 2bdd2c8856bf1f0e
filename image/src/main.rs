//! `tinbox-image`: command line of the `image` crate, for the scripts beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use image::{AGENT_OS_BUDGET, Budget, Error, agent_initramfs};
use netboot::Files;
use release::SecretKey;

mod box_command;

/// Assemble the files that the box serves to machines, and the box's own image.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Pack the agent, a static program, as the initramfs of the agent OS
    Agent {
        /// The tinbox-agent program
        #[arg(long)]
        agent: PathBuf,
        /// Processor of the machines
        #[arg(long, value_enum, default_value = "x86_64")]
        arch: box_command::Processor,
        /// Folder of NNN-name.ko files, for a kernel that has its drivers as modules [default: no
        /// modules]
        #[arg(long)]
        modules: Option<PathBuf>,
        /// The tools image. Its checksum goes into the initramfs; the agent accepts no other image
        #[arg(long)]
        tools: Option<PathBuf>,
        /// File to write
        #[arg(long)]
        out: PathBuf,
    },
    /// Build the agent OS's media, a unified kernel image and a CD, unless they are up to date
    Media {
        /// The artifact directory; agent/ in it holds vmlinuz-x86_64, initramfs-x86_64 and
        /// linuxx64.efi.stub
        #[arg(long)]
        artifacts: PathBuf,
    },
    /// Make the box's disk image, its block map and an update bundle
    Box(Box<box_command::Arguments>),
    /// Create a signing key without a password, in minisign's format, unless it exists
    Key {
        /// File to write; the public key is written beside it, with .pub appended to the name
        #[arg(long)]
        out: PathBuf,
    },
    /// Print the sizes of the agent OS; fail if they exceed the budget
    Budget {
        /// Kernel of the agent OS
        #[arg(long)]
        kernel: PathBuf,
        /// Initramfs of the agent OS
        #[arg(long)]
        initramfs: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tinbox-image: {}", stdx::chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Agent { agent, arch, modules, tools, out } => {
            let (modules, tools) = (modules.as_deref(), tools.as_deref());
            write_whole(&out, &agent_initramfs(&agent, arch.into(), modules, tools)?)
        }
        Command::Media { artifacts } => {
            netboot::assemble::refresh(&Files::new(artifacts), "vmlinuz-x86_64", "initramfs-x86_64")
                .map(|_| ())
                .map_err(Error::Media)
        }
        Command::Box(arguments) => box_command::run(&arguments),
        Command::Key { out } if out.exists() => Ok(SecretKey::read(&out).map(|_| ())?),
        Command::Key { out } => Ok(SecretKey::create(&out).map(|_| ())?),
        Command::Budget { kernel, initramfs } => {
            let budget = Budget::measure("the agent OS", &[&kernel, &initramfs], AGENT_OS_BUDGET)?;
            print!("{}", budget.table());
            budget.check()
        }
    }
}

/// Writes to another name first and renames then: a machine that boots meanwhile gets the complete
/// old or new file.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let error = |source| Error::Write { path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    fs::write(&name, bytes).map_err(error)?;
    fs::rename(&name, path).map_err(error)
}
