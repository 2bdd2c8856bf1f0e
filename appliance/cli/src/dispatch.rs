//! Dispatch of the parsed arguments to the command that they name.

use crate::args::{Args, Command, Output};
use box_client::{Client, Kubeconfig};
use std::io::Write as _;

use crate::commands::image::os_image;
use crate::commands::{
    Context, access, appliance, backup, capi, generated, hardware, image, machine, network,
    template, update, workflow,
};
use crate::error::Error;
use crate::output::{Format, Printer};

/// Runs the command of the parsed arguments.
///
/// # Errors
/// The command fails. `main` prints the error.
pub async fn run(args: Args, is_tink: bool) -> Result<(), Error> {
    let (format, out) = match (args.output, &args.command) {
        // Tinkerbell's commands print the ids that other commands accept.
        (Output::Format(Format::Table), _) if is_tink => (Format::Wide, None),
        (Output::File(file), Command::Backup(backup::Command::Create(_))) => {
            (Format::Table, Some(file))
        }
        (Output::Format(format), _) => (format, None),
        (Output::File(file), _) => {
            let why = format!("expected table, wide, json, yaml or name, found {}", file.display());
            return Err(Error::Usage(why));
        }
    };
    let format = if args.quiet { Format::Name } else { format };
    let printer = Printer::new(format);
    let printer = if args.no_headers { printer.without_headings() } else { printer };
    args.retired.hint().iter().for_each(|hint| printer.note(hint));
    if let Some(done) = without_box(&printer, &args.command) {
        return done;
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
    let path = Kubeconfig::find(args.kubeconfig, std::env::home_dir())?;
    let kubeconfig = Kubeconfig::read(&path)?;
    let named = args.namespace.filter(|namespace| !namespace.is_empty());
    let client = Client::new(&kubeconfig, show_warning)?;
    let context = Context {
        client,
        authorities: kubeconfig.authorities,
        namespace: named.or(kubeconfig.namespace).unwrap_or_else(|| "default".to_owned()),
        printer,
    };
    match command {
        Command::Status(arguments) => appliance::status::run(&context, arguments).await,
        Command::Hardware(command) => hardware::run(&context, command).await,
        Command::Template(command) => template::run(&context, command).await,
        Command::Workflow(command) => workflow::run(&context, command).await,
        Command::Machine(command) => machine::run(&context, command).await,
        Command::Bmc(command) => machine::bmc::run(&context, command).await,
        Command::Image(command) => image::run(&context, command).await,
        Command::OsImage(command) => os_image::run(&context, command).await,
        Command::Network(command) => network::run(&context, command).await,
        Command::Update(command) => update::run(&context, command).await,
        Command::Backup(command) => backup::run(&context, out, command).await,
        Command::Capi(command) => capi::run(&context, command).await,
        Command::Access(command) => access::run(&context, command).await,
        Command::Appliance(appliance::Command::WithKubeconfig(command)) => {
            appliance::run_on(&context, command).await
        }
        // Handled above, without a kubeconfig.
        Command::Completion(_)
        | Command::Man(_)
        | Command::Appliance(appliance::Command::WithoutKubeconfig(_)) => Ok(()),
    }
}

/// Runs a command that needs no box; `None` for a command that needs one.
fn without_box(printer: &Printer, command: &Command) -> Option<Result<(), Error>> {
    Some(match command {
        Command::Template(template::Command::Lint { file }) => template::lint(printer, file),
        Command::Template(template::Command::Library { name }) => {
            template::show_library(printer, name.as_deref())
        }
        Command::Completion(arguments) => generated::completion(crate::command(), arguments),
        Command::Man(arguments) => generated::man(crate::command(), arguments)
            .and_then(|pages| printer.line(&format!("{pages} pages written"))),
        _ => return None,
    })
}

/// Prints a warning of the box. A closed standard error must not stop the work.
fn show_warning(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "warning: {text}");
}
