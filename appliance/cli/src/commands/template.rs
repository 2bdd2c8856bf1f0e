//! `template`: workflow templates.

use std::collections::BTreeMap;

use api::tinkerbell::TEMPLATE;
use box_client::{ClientError, Path};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::machine::act;
use super::workflow::variables;
use super::{Context, name_of, with_id};
use crate::error::Error;
use crate::manifest::{self, Manifest, content, desired};
use crate::output::{Cell, Printer, Table, age, text};
use crate::question::confirm::Confirm;

/// Manage workflow templates
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Create a template from a workflow's YAML. Example: `tinbox template create --file
    /// debian.yaml`
    Create {
        /// Workflow YAML (`version`, `name`, `tasks`) or a Template object; "-" is standard input
        #[arg(short, long, value_name = "FILE", required_unless_present = "library")]
        file: Option<String>,
        /// Name of a built-in template, as shown by `tinbox template library`, instead of a file
        #[arg(short, long, value_name = "NAME", conflicts_with = "file")]
        library: Option<String>,
        /// Value for a setting that `tinbox template library NAME` shows; can be repeated
        #[arg(long, value_name = "NAME=VALUE", requires = "library",
            value_parser = setting)]
        set: Vec<(String, String)>,
        /// Name of the template [default: the name in the file]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// List the built-in templates, or print one with its settings; works without a box. Example:
    /// `tinbox template library debian`
    Library {
        /// Name of a built-in template [default: list all]
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
    /// Replace a template; running workflows do not change. Example: `tinbox template update debian
    /// --file debian.yaml`
    Update {
        /// Name or id of the template
        #[arg(value_name = "NAME|ID")]
        template: String,
        /// New workflow YAML, or a Template object; "-" is standard input
        #[arg(short, long, value_name = "FILE")]
        file: String,
    },
    /// Check a template without a box: syntax, function names, variables, keys, settings and types.
    /// Example: `tinbox template lint --file debian.yaml`
    Lint {
        /// Workflow YAML, or a Template object; "-" is standard input
        #[arg(short, long, value_name = "FILE")]
        file: String,
    },
    /// Print a template as rendered for a machine, including secrets. Example: `tinbox template
    /// render debian --hardware nuc1`
    Render {
        /// Name or id of the template
        #[arg(value_name = "NAME|ID", required_unless_present = "file")]
        template: Option<String>,
        /// File to render instead of a stored template; "-" is standard input
        #[arg(short, long, value_name = "FILE", conflicts_with = "template")]
        file: Option<String>,
        /// Machine, by name, id, MAC or IP address; or the template's variables as JSON:
        /// '{"device_1":"52:54:00:77:00:01"}'
        #[arg(short = 'r', long, value_name = "NAME|ID|MAC|IP|JSON")]
        hardware: String,
    },
    /// List templates. Example: `tinbox template list`
    #[command(alias = "ls")]
    List,
    /// Show one template. Example: `tinbox template get debian`
    Get {
        /// Name or id of the template
        #[arg(value_name = "NAME|ID")]
        template: String,
    },
    /// Delete templates, but not the workflows that use them. Example: `tinbox template delete
    /// debian`
    #[command(alias = "rm")]
    Delete {
        /// Names or ids of the templates
        #[arg(required = true, value_name = "NAME|ID")]
        templates: Vec<String>,
        #[command(flatten)]
        confirm: Confirm,
    },
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Create { file, library, set, name } => {
            let (file, yaml) = match (library, file) {
                (Some(entry), _) => {
                    let yaml = of_library(context, &entry, set).await?;
                    (format!("template {entry} of the library"), yaml)
                }
                (None, Some(file)) => (file.clone(), manifest::read(&file)?),
                (None, None) => return Err(Error::Usage("give --file or --library".to_owned())),
            };
            let object = object(&file, &yaml, name)?;
            let namespace = text(&object, "/metadata/namespace");
            let namespace = if namespace.is_empty() { &context.namespace } else { &namespace };
            let path = Path::collection(TEMPLATE, namespace);
            let made = context.client.create(&path, &object).await;
            let made = made.map_err(|error| taken(error, &name_of(&object)))?;
            context.printer.done(&made, &with_id(&made, "created"))
        }
        Command::Update { template, file } => {
            let live = context.find(TEMPLATE, &template).await?;
            let name = name_of(&live);
            let new = object(&file, &manifest::read(&file)?, Some(name.clone()))?;
            let wanted = desired(&live, &new);
            if wanted == live {
                return context.printer.done(&live, "unchanged");
            }
            let path = context.path(TEMPLATE, &name);
            context.printer.done(&context.client.replace(&path, &wanted).await?, "changed")
        }
        Command::Lint { file } => lint(&context.printer, &file),
        Command::Library { name } => show_library(&context.printer, name.as_deref()),
        Command::Render { template, file, hardware } => {
            let source = source(context, template, file).await?;
            render(context, &source, &hardware).await
        }
        Command::List => context.printer.objects(context.list(TEMPLATE).await?, table),
        Command::Get { template } => context.show(TEMPLATE, &template).await,
        Command::Delete { templates, confirm } => {
            let effect = |object: &Value| {
                format!("{}: no new workflow can use the template", name_of(object))
            };
            context.delete(TEMPLATE, &templates, confirm, effect).await
        }
    }
}

/// Converts the error of a name that is taken: `template update` is the usual intent.
fn taken(error: ClientError, name: &str) -> Error {
    match error {
        ClientError::Refused { code: 409, ref reason, .. } if reason == "AlreadyExists" => {
            Error::State {
                what: "create template".to_owned(),
                why: format!("the template {name:?} already exists"),
                hint: format!(
                    "`tinbox template update {name} --file FILE` replaces it; --name makes another"
                ),
            }
        }
        error => error.into(),
    }
}

/// Checks a template without a box and without a machine.
///
/// # Errors
/// The template has mistakes; all are reported with their lines.
pub fn lint(printer: &Printer, file: &str) -> Result<(), Error> {
    let text = document(file, &manifest::read(file)?);
    if text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#')) {
        return Err(content(file, "the template is empty: version, name and tasks are missing"));
    }
    ::template::check(&text).map_err(|error| content(file, &error.to_string()))?;
    let api::document::Lint { mistakes, unknown, unread } = api::document::lint(&text);
    let found: Vec<String> = mistakes.into_iter().chain(unknown).collect();
    if !found.is_empty() {
        return Err(content(file, &found.join("; ")));
    }
    if let Some(why) = unread {
        printer.note(&format!(
            "{file}: keys and values were not checked, because the text is YAML only after it is \
             rendered ({why}); `tinbox template render` checks them"
        ));
    }
    printer.line("no mistake found; `tinbox template render` also checks a machine's workflow")
}

/// Prints the list of built-in templates, or the template with this name.
///
/// # Errors
/// The name is unknown.
pub fn show_library(printer: &Printer, name: Option<&str>) -> Result<(), Error> {
    if let Some(name) = name {
        let text = template_library::entry(name)?.text;
        return text.lines().try_for_each(|line| printer.line(line));
    }
    for entry in template_library::entries() {
        printer.line(&format!("{:<9}{}", entry.name, entry.about()))?;
    }
    Ok(())
}

/// Parses `NAME=VALUE`.
///
/// # Errors
/// `text` has no `=`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Returns a built-in template with the settings `set`; `box` defaults to the address at which
/// machines reach the box, else to the API's address.
async fn of_library(
    context: &Context,
    name: &str,
    set: Vec<(String, String)>,
) -> Result<String, Error> {
    let entry = template_library::entry(name)?;
    let mut settings: BTreeMap<String, String> = set.into_iter().collect();
    let wants = entry.settings().contains_key(template_library::BOX);
    if wants && !settings.contains_key(template_library::BOX) {
        let (actions, objects) = act::actions(context);
        let serving = actions.box_address().await.map_err(|error| act::refused(error, &objects))?;
        let server = context.client.server().parse::<http::Uri>().ok();
        let host = || server.and_then(|server| server.host().map(str::to_owned));
        if let Some(address) = serving.or_else(host) {
            settings.insert(template_library::BOX.to_owned(), address);
        }
    }
    Ok(entry.with(&settings)?)
}

/// Template that a person wants to render.
struct Source {
    /// Name of the file, or `template NAME`.
    shown: String,
    text: String,
    is_stored: bool,
}

impl Source {
    /// Creates the error of a mistake in the template.
    fn mistake(&self, why: &str) -> Error {
        if !self.is_stored {
            return content(&self.shown, why);
        }
        Error::Unable {
            what: format!("render {}", self.shown),
            why: why.split_whitespace().collect::<Vec<_>>().join(" "),
            hint: "`tinbox template get` shows its text; `tinbox template update` replaces it",
        }
    }
}

async fn source(
    context: &Context,
    template: Option<String>,
    file: Option<String>,
) -> Result<Source, Error> {
    match (template, file) {
        (_, Some(file)) => {
            let text = document(&file, &manifest::read(&file)?);
            Ok(Source { shown: file, text, is_stored: false })
        }
        (Some(name), None) => {
            let object = context.find(TEMPLATE, &name).await?;
            let shown = format!("template {}", name_of(&object));
            Ok(Source { shown, text: data_of(&object), is_stored: true })
        }
        (None, None) => Err(Error::Usage("name a template, or give --file".to_owned())),
    }
}

/// Prints the template as rendered for a machine, and its mistakes.
async fn render(context: &Context, source: &Source, machine: &str) -> Result<(), Error> {
    let shown = &source.shown;
    let machines = variables::machines(context, machine).await?;
    let map = variables::agents(&format!("render {shown}"), &machines)?;
    let data = api::document::data(&map, variables::first(&machines)?);
    let rendered = ::template::render(&source.text, &data);
    let rendered = rendered.map_err(|error| source.mistake(&error.to_string()))?;
    for line in rendered.lines() {
        context.printer.line(line)?;
    }
    let read = api::document::parse_with_warnings(&rendered);
    let (_, unknown) = read.map_err(|error| source.mistake(&error.to_string()))?;
    for sentence in unknown {
        context.printer.note(&format!("warning: {shown}: {sentence}"));
    }
    Ok(())
}

/// Returns the workflow YAML of a file, which may contain a Template object.
fn document(file: &str, whole: &str) -> String {
    own(file, whole).map_or_else(|| whole.to_owned(), |object| data_of(&object))
}

fn data_of(object: &Value) -> String {
    object["spec"]["data"].as_str().unwrap_or_default().to_owned()
}

/// Returns the Template object of a file, or a new object for a file with workflow YAML.
fn object(file: &str, text: &str, name: Option<String>) -> Result<Value, Error> {
    if let Some(mut object) = own(file, text) {
        if let Some(name) = name {
            object["metadata"]["name"] = json!(name);
        }
        return Ok(object);
    }
    let name = match name {
        Some(name) => name,
        None => object_name(&yaml_name(text).ok_or_else(|| {
            content(file, "it has no `name:` at its top level; give one with --name")
        })?),
    };
    if name.is_empty() || name.contains("{{") {
        return Err(content(file, "its `name:` is not a valid object name; give one with --name"));
    }
    Ok(json!({
        "apiVersion": TEMPLATE.api_version(),
        "kind": TEMPLATE.kind,
        "metadata": { "name": name },
        "spec": { "data": text },
    }))
}

/// Returns the Template object in a text; `None` unless the text is exactly one Template.
fn own(file: &str, text: &str) -> Option<Value> {
    match manifest::parse(file, text).ok()?.as_slice() {
        [Manifest { resource, object }] if *resource == TEMPLATE => Some(object.clone()),
        _ => None,
    }
}

/// Returns the top-level `name:` of a workflow's YAML. Only this line is parsed, because a template
/// need not be valid YAML before it is rendered.
fn yaml_name(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("name:"))?.trim();
    let name = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => line[1..].split(quote).next()?,
        _ => line.split(" #").next()?.trim(),
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// Converts a name to an object name (RFC 1123 subdomain): `Debian 12` becomes `debian-12`.
fn object_name(name: &str) -> String {
    if name.contains("{{") {
        return name.to_owned();
    }
    let plain = |char: char| match char.to_ascii_lowercase() {
        kept if kept.is_ascii_alphanumeric() || kept == '.' => kept,
        _ => '-',
    };
    let name: String = name.chars().map(plain).collect();
    name.trim_matches(['-', '.']).to_owned()
}

fn table(items: &[Value], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "AGE", "ID"]).with_details(&["ID"]);
    for item in items {
        let id = text(item, "/metadata/uid");
        table.row([Cell::from(name_of(item)), age(item, now).into(), id.into()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::object;

    const PLAIN: &str = "# a comment\nversion: \"0.1\"\nname: \"basic-provision\"\n\
                         tasks:\n- name: x\n  worker: \"{{.device_1}}\"\n";

    #[test]
    fn plain_yaml_becomes_a_template() {
        let made = object("t.yaml", PLAIN, None).unwrap();
        assert_eq!(made["metadata"]["name"], "basic-provision");
        assert_eq!(made["spec"]["data"], PLAIN);
        let other = object("t.yaml", PLAIN, Some("mine".into())).unwrap();
        assert_eq!(other["metadata"]["name"], "mine");
    }

    #[test]
    fn what_is_no_yaml_before_rendering_is_taken_too() {
        let text = "name: Debian 12 # bookworm\ntasks: {{ .x }}\n{{ range .y }}\n- {{ . }}\n";
        assert_eq!(object("t.yaml", text, None).unwrap()["metadata"]["name"], "debian-12");
    }

    #[test]
    fn a_template_object_is_taken_as_it_is() {
        let text = "apiVersion: tinkerbell.org/v1alpha1\nkind: Template\n\
                    metadata: {name: a, labels: {x: y}}\nspec: {data: z}\n";
        let made = object("t.yaml", text, None).unwrap();
        assert_eq!(
            (&made["metadata"]["labels"]["x"], &made["spec"]["data"]),
            (&"y".into(), &"z".into())
        );
    }

    #[test]
    fn a_file_without_a_name_says_so() {
        for text in ["tasks: []\n", "name: \"{{ .x }}\"\n", "name: '...'\n"] {
            let error = object("t.yaml", text, None).unwrap_err().to_string();
            assert!(error.contains("--name"), "{error}");
        }
    }
}
