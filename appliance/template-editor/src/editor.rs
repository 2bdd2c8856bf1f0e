//! Templates on the box, read and stored under the conflict rules of the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::meta::ObjectKey;
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, WORKFLOW, Workflow};
use machine_actions::MachineActions;
use objects::{ObjectError, Objects, read};
use serde_json::{Value, json};

use crate::error::EditError;

/// Namespace of Templates that a person creates.
const NAMESPACE: &str = "default";
/// Variable of a template with the agent ID of the machine.
const DEVICE: &str = "device_1";
/// Maximum length of a template in bytes: a person edits no larger one in a browser.
pub const TEXT_BYTES_MAX: usize = 96 << 10;
/// Maximum length of a name in characters: that of an object of the API.
const NAME_CHARS_MAX: usize = 253;

/// Template in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSummary {
    /// Name of the Template.
    pub name: String,
    /// Number of workflows that use it and have not ended.
    pub running: usize,
    /// Number of workflows that use it.
    pub workflows: usize,
}

/// Template of the built-in library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryEntry {
    /// Name of the template.
    pub name: &'static str,
    /// Purpose as a sentence.
    pub about: &'static str,
}

/// Template as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTemplate {
    /// Name of the Template.
    pub name: String,
    /// Text of the Template.
    pub text: String,
    /// Revision of the object, which a change must name.
    pub revision: String,
}

/// Reader and writer of Templates. Clones share the objects.
#[derive(Clone)]
pub struct TemplateEditor {
    objects: Arc<dyn Objects>,
}

impl TemplateEditor {
    /// Creates an editor of the Templates in `objects`.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects }
    }

    /// Returns the Templates, sorted by name.
    ///
    /// # Errors
    /// Templates or workflows cannot be read.
    pub async fn list(&self) -> Result<Vec<TemplateSummary>, EditError> {
        let workflows = self.workflows().await?;
        let templates = self.objects.list(TEMPLATE, Some(NAMESPACE)).await?;
        let mut all: Vec<TemplateSummary> = templates
            .iter()
            .map(|template| {
                let name = template["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let uses = || workflows.iter().filter(|it| it.spec.template_ref == name);
                let running = uses().filter(|it| !it.status.state.ended()).count();
                TemplateSummary { workflows: uses().count(), running, name }
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Returns the templates of the library that the box does not have yet.
    pub fn library(&self, stored: &[TemplateSummary]) -> Vec<LibraryEntry> {
        let is_stored = |name: &str| stored.iter().any(|it| it.name == name);
        template_library::entries()
            .filter(|entry| !is_stored(entry.name))
            .map(|entry| LibraryEntry { name: entry.name, about: entry.about() })
            .collect()
    }

    /// Returns a Template; `None` if there is none of this name.
    ///
    /// # Errors
    /// The Template cannot be read.
    pub async fn find(&self, name: &str) -> Result<Option<StoredTemplate>, EditError> {
        let found: Option<Value> = objects::find(&*self.objects, TEMPLATE, &key(name)).await?;
        Ok(found.map(|object| stored(&object)))
    }

    /// Creates a Template.
    ///
    /// # Errors
    /// The name is not valid or taken, or the text is too large.
    pub async fn create(&self, name: &str, text: &str) -> Result<(), EditError> {
        check_name(name)?;
        check_size(text)?;
        let object = json!({
            "apiVersion": TEMPLATE.api_version(),
            "kind": TEMPLATE.kind,
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "data": text },
        });
        self.objects.create(TEMPLATE, object).await?;
        Ok(())
    }

    /// Creates the Template of a library entry, with the address at which machines reach the box.
    ///
    /// # Errors
    /// The library has no such entry, or the Template exists.
    pub async fn add(&self, name: &str) -> Result<(), EditError> {
        let entry = template_library::entry(name)?;
        let actions = MachineActions { objects: Arc::clone(&self.objects) };
        let mut settings = BTreeMap::new();
        if entry.settings().contains_key(template_library::BOX)
            && let Some(address) = actions.box_address().await?
        {
            settings.insert(template_library::BOX.to_owned(), address);
        }
        self.create(name, &entry.with(&settings)?).await
    }

    /// Replaces the text of a Template whose revision the person saw. Returns the new Template.
    ///
    /// # Errors
    /// The Template was changed meanwhile or does not exist, or the text is too large.
    pub async fn save(&self, changed: &StoredTemplate) -> Result<StoredTemplate, EditError> {
        check_size(&changed.text)?;
        let mut object = self.objects.get(TEMPLATE, &key(&changed.name)).await?;
        if stored(&object).revision != changed.revision {
            return Err(EditError::Changed(changed.name.clone()));
        }
        object["spec"]["data"] = changed.text.as_str().into();
        match self.objects.update(TEMPLATE, object).await {
            Ok(object) => Ok(stored(&object)),
            Err(ObjectError::Conflict(_)) => Err(EditError::Changed(changed.name.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a Template that no running workflow uses.
    ///
    /// # Errors
    /// A workflow that has not ended uses the Template, or it cannot be deleted.
    pub async fn delete(&self, name: &str) -> Result<(), EditError> {
        let workflows = self.workflows().await?;
        let users = workflows.iter().filter(|it| it.spec.template_ref == name);
        let running = users.filter(|it| !it.status.state.ended());
        let names: Vec<&str> = running.map(|it| it.metadata.name.as_str()).collect();
        if !names.is_empty() {
            let (name, workflows) = (name.to_owned(), names.join(", "));
            return Err(EditError::InUse { name, workflows });
        }
        Ok(self.objects.delete(TEMPLATE, &key(name)).await?)
    }

    /// Returns `text` as the agent of a machine would get it.
    ///
    /// # Errors
    /// The machine does not exist or has no agent ID, or the text cannot be rendered for it.
    pub async fn render(&self, text: &str, machine: &str) -> Result<String, EditError> {
        let hardware = self.objects.get(HARDWARE, &key(machine)).await?;
        let typed: Hardware = read(hardware.clone())?;
        let failed = |why: String| EditError::Render { machine: machine.to_owned(), why };
        let agent = typed.spec.agent_id();
        let agent = agent.ok_or_else(|| failed("it has no MAC address".to_owned()))?;
        let map: BTreeMap<String, String> = [(DEVICE.to_owned(), agent)].into();
        let data = api::document::data(&map, &hardware);
        let rendered = template::render(text, &data).map_err(|error| failed(error.to_string()))?;
        api::document::parse(&rendered).map_err(|error| failed(error.to_string()))?;
        Ok(rendered)
    }

    async fn workflows(&self) -> Result<Vec<Workflow>, EditError> {
        let all = self.objects.list(WORKFLOW, Some(NAMESPACE)).await?;
        Ok(all.into_iter().map(read).collect::<Result<_, _>>()?)
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(NAMESPACE, name)
}

fn stored(object: &Value) -> StoredTemplate {
    let text =
        |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    StoredTemplate {
        name: text("/metadata/name"),
        text: text("/spec/data"),
        revision: text("/metadata/resourceVersion"),
    }
}

fn check_name(name: &str) -> Result<(), EditError> {
    let allowed =
        |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-' || it == '.';
    let ends = |it: char| it.is_ascii_alphanumeric();
    let valid = name.len() <= NAME_CHARS_MAX
        && name.chars().all(allowed)
        && name.starts_with(ends)
        && name.ends_with(ends);
    if valid { Ok(()) } else { Err(EditError::Name(name.to_owned())) }
}

fn check_size(text: &str) -> Result<(), EditError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(EditError::TooLarge(stdx::bytes(TEXT_BYTES_MAX as u64)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
