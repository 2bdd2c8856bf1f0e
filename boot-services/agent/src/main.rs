//! `tinbox-agent`: runs as process 1 of a machine, or as an ordinary process with arguments.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use agent::actions::{Limits, parse_sha256};
use agent::console::Console;
use agent::runner::{ProcessHost, Runner};
use agent::{Error, init};
use agent_rpc::Pin;
use agent_rpc::client::Client;
use imaging::Meter;
use imaging::stream::{Accept, Image, Proof, Timeouts, write_image};
use inventory::boot_id;
use stdx::Secret;

const USAGE: &str = "\
usage: tinbox-agent --grpc HOST:PORT --id ID [--pin PIN] [--token-file FILE]
                    [--allow-files] [--registry HOST:PORT]
       tinbox-agent write --url URL --disk DISK [--sha256 HEX]

The first form runs the actions of workflows that the box at HOST:PORT assigns
to the agent ID. It never restarts this machine.
--pin is the pin of the box's certificate, as in the kernel argument tinbox.pin:
the agent then uses TLS and accepts only a box with this pin. Without --pin, the
connection is not encrypted.
--token-file names a file with the boot token of the agent.
--allow-files allows actions such as image2disk to write to regular files, not
only to block devices.
--registry allows actions with container images, which have full access to this
machine. The images come from the registry of the box at this HOST:PORT.
The second form overwrites DISK, a block device or a file, with the image at URL
and compares the image with the SHA-256 HEX, if given.
As process 1, the program takes no arguments: it reads the kernel command line.";

fn main() -> ExitCode {
    if init::is_first_process() {
        init::run();
    }
    Console::install(None);
    let command = match Command::parse(std::env::args_os().skip(1)) {
        Ok(command) => command,
        Err(reason) => {
            eprintln!("tinbox-agent: {reason}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tinbox-agent: {}", stdx::chain(&error));
            ExitCode::FAILURE
        }
    }
}

enum Command {
    Help,
    Serve(Service),
    Write(Image),
}

impl Command {
    fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = arguments
            .map(|word| word.into_string().map_err(|word| format!("{word:?} is not UTF-8")))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .peekable();
        let write = arguments.next_if(|word| word == "write").is_some();
        let mut given = Arguments::default();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
            match (name.as_str(), write) {
                ("-h" | "--help", _) => return Ok(Self::Help),
                ("--grpc", false) => given.grpc = Some(value()?),
                ("--id", false) => given.id = Some(value()?),
                ("--pin", false) => given.pin = Some(value()?),
                ("--token-file", false) => given.token_file = Some(value()?.into()),
                ("--allow-files", false) => given.allow_files = true,
                ("--registry", false) => given.registry = Some(value()?),
                ("--url", true) => given.url = Some(value()?),
                ("--disk", true) => given.disk = Some(value()?.into()),
                ("--sha256", true) => given.sha256 = Some(value()?),
                _ => return Err(format!("unknown option {name}")),
            }
        }
        if write { given.write() } else { given.serve() }
    }
}

/// Settings of an agent that is an ordinary process: workflow service, credentials, limits.
struct Service {
    grpc: String,
    id: String,
    pin: Option<Pin>,
    token_file: Option<PathBuf>,
    limits: Limits,
}

#[derive(Default)]
struct Arguments {
    grpc: Option<String>,
    id: Option<String>,
    pin: Option<String>,
    token_file: Option<PathBuf>,
    allow_files: bool,
    registry: Option<String>,
    url: Option<String>,
    disk: Option<PathBuf>,
    sha256: Option<String>,
}

impl Arguments {
    fn serve(self) -> Result<Command, String> {
        let accept = if self.allow_files { Accept::Files } else { Accept::BlockDevices };
        let registry = self.registry.map(Into::into);
        Ok(Command::Serve(Service {
            grpc: self.grpc.ok_or("--grpc is missing")?,
            id: self.id.ok_or("--id is missing")?,
            pin: self.pin.map(pin).transpose()?,
            token_file: self.token_file,
            limits: Limits { accept, timeouts: Timeouts::DEFAULT, registry },
        }))
    }

    fn write(self) -> Result<Command, String> {
        let url = self.url.ok_or("--url is missing")?;
        let sha256 = self.sha256.map(|text| {
            parse_sha256(&text).ok_or("--sha256 is not 64 hexadecimal digits".to_owned())
        });
        Ok(Command::Write(Image {
            url: url.parse().map_err(|error: imaging::Error| error.to_string())?,
            proof: sha256.transpose()?.map(Proof::Sum),
            compressed: false,
            read_back: false,
            disk: self.disk.ok_or("--disk is missing")?,
            accept: Accept::Files,
            timeouts: Timeouts::DEFAULT,
        }))
    }
}

fn pin(text: String) -> Result<Pin, String> {
    text.parse().map_err(|error| format!("--pin {text}: {error}"))
}

fn run(command: Command) -> Result<(), Error> {
    let runtime = init::runtime()?;
    match command {
        Command::Help => println!("{USAGE}"),
        Command::Serve(service) => runtime.block_on(serve(service))?,
        Command::Write(image) => {
            let summary = runtime.block_on(write_image(&image, &Arc::new(Meter::default())))?;
            let verified = summary.verified.map(|sum| format!(", {sum:?} verified"));
            println!(
                "wrote {} bytes from {} to {}, {} of them zeros left out{}",
                summary.image,
                summary.fetched,
                image.disk.display(),
                summary.holes,
                verified.unwrap_or_default(),
            );
        }
    }
    Ok(())
}

fn read_token(path: PathBuf) -> Result<Secret, Error> {
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Io {
        doing: format!("read the token in {}", path.display()),
        source,
    })?;
    Ok(Secret::from(text.trim()))
}

async fn serve(service: Service) -> Result<(), Error> {
    let Service { grpc, id, pin, token_file, limits } = service;
    let token = token_file.map(read_token).transpose()?;
    let client = Client::connect(&grpc, &id, token.as_ref(), pin).map_err(Error::Service)?;
    let client = client.in_boot(&boot_id());
    let runner = Runner {
        client,
        host: ProcessHost,
        limits,
        attributes: inventory::inventory(),
        inventory: inventory::details(),
        boot_id: boot_id(),
    };
    runner.run().await;
    Ok(())
}
