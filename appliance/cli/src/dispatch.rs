//! Dispatch of the parsed arguments to the command that they name.

use crate::args::{Args, Command, Output};
use crate::client::Client;
use crate::commands::{
    Context, access, appliance, backup, capi, hardware, image, machine, network, template, update,
    workflow,
};
use crate::error::Error;
use crate::kubeconfig::{self, Kubeconfig};
use crate::output::{Format, Printer};

/// Runs the command of the parsed arguments.
///
/// # Errors
/// The command fails. `main` prints the error.
pub async fn run(args: Args) -> Result<(), Error> {
    let (format, out) = match (args.output, &args.command) {
        (Output::File(file), Command::Backup(backup::Command::Create(_))) => {
            (Format::Table, Some(file))
        }
        (Output::Format(format), _) => (format, None),
        (Output::File(file), _) => {
            let why = format!("expected table, json, yaml or name, found {}", file.display());
            return Err(Error::Usage(why));
        }
    };
    let printer = Printer::new(format);
    if let Command::Template(template::Command::Lint { file }) = &args.command {
        return template::lint(&printer, file);
    }
    if let Command::Template(template::Command::Library { name }) = &args.command {
        return template::show_library(&printer, name.as_deref());
    }
    if let Command::Appliance(appliance::Command::WithoutKubeconfig(command)) = args.command {
        let file = args.kubeconfig.filter(|file| !file.as_os_str().is_empty());
        return appliance::run(&printer, file, command).await;
    }
    let command = match args.command {
        Command::Backup(backup::Command::Restore(restore)) if restore.is_fresh() => {
            return backup::onto(&printer, restore).await;
        }
        command => command,
    };
    let path = kubeconfig::find(args.kubeconfig, std::env::home_dir())?;
    let kubeconfig = Kubeconfig::read(&path)?;
    let named = args.namespace.filter(|namespace| !namespace.is_empty());
    let client = Client::new(&kubeconfig)?;
    let context = Context {
        client,
        authorities: kubeconfig.authorities,
        namespace: named.or(kubeconfig.namespace).unwrap_or_else(|| "default".to_owned()),
        printer,
    };
    match command {
        Command::Hardware(command) => hardware::run(&context, command).await,
        Command::Template(command) => template::run(&context, command).await,
        Command::Workflow(command) => workflow::run(&context, command).await,
        Command::Machine(command) => machine::run(&context, command).await,
        Command::Bmc(command) => machine::bmc::run(&context, command).await,
        Command::Image(command) => image::run(&context, command).await,
        Command::Network(command) => network::run(&context, command).await,
        Command::Update(command) => update::run(&context, command).await,
        Command::Backup(command) => backup::run(&context, out, command).await,
        Command::Capi(command) => capi::run(&context, command).await,
        Command::Access(command) => access::run(&context, command).await,
        Command::Appliance(appliance::Command::WithKubeconfig(command)) => {
            appliance::run_on(&context, command).await
        }
        // Handled above, without a kubeconfig.
        Command::Appliance(appliance::Command::WithoutKubeconfig(_)) => Ok(()),
    }
}
