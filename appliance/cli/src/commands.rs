//! Commands, one module for each noun. [`Context`] has the shared connection and output.

pub mod access;
pub mod appliance;
pub mod backup;
pub mod capi;
pub mod generated;
pub mod hardware;
pub mod image;
pub mod machine;
pub mod network;
pub mod template;
pub mod update;
pub mod workflow;

use api::meta::Resource;
use box_client::{Client, Path, find};
use rustls_pki_types::CertificateDer;
use serde_json::Value;

use crate::error::Error;
use crate::output::{Format, Printer, brief};
use crate::question::confirm::{Confirm, Reply};

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

impl Context {
    /// Returns every object of a kind in the namespace, sorted by name.
    async fn list(&self, resource: Resource) -> Result<Vec<Value>, Error> {
        let path = Path::collection(resource, &self.namespace);
        let (mut items, _) = self.client.list(&path, "").await?;
        items.sort_by_cached_key(name_of);
        Ok(items)
    }

    /// Finds the object that `text` names.
    async fn find(&self, resource: Resource, text: &str) -> Result<Value, Error> {
        Ok(find(&self.client, resource, &self.namespace, text).await?)
    }

    /// Prints the object that `text` names. The default format omits what only programs read.
    async fn show(&self, resource: Resource, text: &str) -> Result<(), Error> {
        let object = self.find(resource, text).await?;
        match self.printer.format {
            Format::Table | Format::Wide => self.printer.object(&brief(object)),
            _ => self.printer.object(&object),
        }
    }

    /// Returns the API path of an object in the namespace.
    fn path(&self, resource: Resource, name: &str) -> Path {
        Path::object(resource, &self.namespace, name)
    }

    /// Deletes the objects that `texts` name. Finds all objects before the first deletion, shows
    /// `effect` of each, and asks for a confirmation.
    async fn delete(
        &self,
        resource: Resource,
        texts: &[String],
        confirm: Confirm,
        effect: impl Fn(&Value) -> String,
    ) -> Result<(), Error> {
        let mut objects = Vec::new();
        for text in texts {
            objects.push(self.find(resource, text).await?);
        }
        let effects: Vec<String> = objects.iter().map(effect).collect();
        if !confirm.agreed(&self.printer, &effects.join("\n"), Reply::Yes)? {
            return Ok(());
        }
        self.remove(resource, objects).await
    }

    /// Deletes objects that were read before.
    async fn remove(&self, resource: Resource, objects: Vec<Value>) -> Result<(), Error> {
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

/// Returns a text such as `created, id …`. Other commands accept this id.
fn with_id(object: &Value, word: &str) -> String {
    format!("{word}, id {}", object["metadata"]["uid"].as_str().unwrap_or_default())
}
