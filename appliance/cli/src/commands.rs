//! A module for each noun; what they share is the way to the box and to the terminal.

pub mod access;
pub mod appliance;
pub mod backup;
pub mod capi;
pub mod hardware;
pub mod image;
pub mod machine;
pub mod network;
pub mod template;
pub mod update;
mod variables;
pub mod workflow;

use api::meta::Resource;
use rustls_pki_types::CertificateDer;
use serde_json::Value;

use crate::args::{Args, Command, Output};
use crate::client::{Client, Path};
use crate::error::Error;
use crate::find::find;
use crate::kubeconfig::{self, Kubeconfig};
use crate::output::{Format, Printer};

/// Connection and settings that every command uses.
pub struct Context {
    /// Client of the box's API.
    pub client: Client,
    /// CA certificates that may sign the box's certificate.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Namespace from `--namespace`, else from the kubeconfig; default `default`.
    pub namespace: String,
    /// Output in the format that `--output` names.
    pub printer: Printer,
}

/// Runs the command of the parsed arguments.
///
/// # Errors
/// The failure; only `main` prints it.
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

impl Context {
    /// Returns every object of a kind in the namespace, sorted by name.
    async fn list(&self, resource: Resource) -> Result<Vec<Value>, Error> {
        let path = Path::collection(resource, &self.namespace);
        let (mut items, _) = self.client.list(&path, "").await?;
        items.sort_by_cached_key(name_of);
        Ok(items)
    }

    /// Returns the object that `text` names.
    async fn find(&self, resource: Resource, text: &str) -> Result<Value, Error> {
        find(&self.client, resource, &self.namespace, text).await
    }

    /// Returns the API path of an object in the namespace.
    fn path(&self, resource: Resource, name: &str) -> Path {
        Path::object(resource, &self.namespace, name)
    }

    /// Deletes the objects that `texts` name. All objects are looked up before the first is
    /// deleted.
    async fn delete(&self, resource: Resource, texts: &[String]) -> Result<(), Error> {
        let mut objects = Vec::new();
        for text in texts {
            objects.push(self.find(resource, text).await?);
        }
        for object in objects {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
            let answer = self.client.delete(&self.path(resource, &name_of(&object)), uid).await?;
            let held = answer["metadata"]["deletionTimestamp"].is_string()
                && answer["metadata"]["finalizers"].as_array().is_some_and(|it| !it.is_empty());
            let what = if held { "is being deleted" } else { "deleted" };
            self.printer.done(&object, what)?;
        }
        Ok(())
    }
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// Returns `created, id …`; other commands accept the id.
fn with_id(object: &Value, word: &str) -> String {
    format!("{word}, id {}", object["metadata"]["uid"].as_str().unwrap_or_default())
}
