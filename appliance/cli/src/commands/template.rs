//! `template`: what can be done to a machine.

use api::tinkerbell::TEMPLATE;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Context, name_of, with_id};
use crate::client::Path;
use crate::error::Error;
use crate::manifest::{self, Manifest, content, desired};
use crate::output::{Cell, Table, age, text};

/// What can be done to a machine.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a template of a workflow's YAML. Example: `tinbox template create --file debian.yaml`
    Create {
        /// The workflow's YAML (`version`, `name`, `tasks`), or a Template object; "-" is standard
        /// input.
        #[arg(short, long, value_name = "FILE")]
        file: String,
        /// Name of the template; else the one in the file.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Change a template. Example: `tinbox template update debian --file debian.yaml`
    Update {
        /// Name or id.
        #[arg(value_name = "NAME|ID")]
        template: String,
        /// The new YAML, or a Template object; "-" is standard input.
        #[arg(short, long, value_name = "FILE")]
        file: String,
    },
    /// List templates. Example: `tinbox template list`
    List,
    /// Show one template. Example: `tinbox template get debian`
    Get {
        /// Name or id.
        #[arg(value_name = "NAME|ID")]
        template: String,
    },
    /// Delete templates; workflows made of them stay. Example: `tinbox template delete debian`
    Delete {
        /// Names or ids.
        #[arg(required = true, value_name = "NAME|ID")]
        templates: Vec<String>,
    },
}

/// Do it.
///
/// # Errors
/// What failed.
pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Create { file, name } => {
            let object = object(&file, &manifest::read(&file)?, name)?;
            let namespace = text(&object, "/metadata/namespace");
            let namespace = if namespace.is_empty() { &context.namespace } else { &namespace };
            let path = Path::collection(TEMPLATE, namespace);
            let made = context.client.create(&path, &object).await?;
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
        Command::List => context.printer.objects(context.list(TEMPLATE).await?, table),
        Command::Get { template } => {
            context.printer.object(&context.find(TEMPLATE, &template).await?)
        }
        Command::Delete { templates } => context.delete(TEMPLATE, &templates).await,
    }
}

/// The Template of a file: the file's own when it is one, else one around its text.
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
        return Err(content(file, "its `name:` makes no object name; give one with --name"));
    }
    Ok(json!({
        "apiVersion": TEMPLATE.api_version(),
        "kind": TEMPLATE.kind,
        "metadata": { "name": name },
        "spec": { "data": text },
    }))
}

/// The one Template object a text is, if it is one.
fn own(file: &str, text: &str) -> Option<Value> {
    match manifest::parse(file, text).ok()?.as_slice() {
        [Manifest { resource, object }] if *resource == TEMPLATE => Some(object.clone()),
        _ => None,
    }
}

/// The top-level `name:` of a workflow's YAML. Only that line is read, because a template is no
/// YAML before it is rendered.
fn yaml_name(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("name:"))?.trim();
    let name = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => line[1..].split(quote).next()?,
        _ => line.split(" #").next()?.trim(),
    };
    (!name.is_empty()).then(|| name.to_owned())
}

/// A name as the API takes it (RFC 1123 subdomain): `Debian 12` becomes `debian-12`.
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
    let mut table = Table::new(&["NAME", "AGE", "ID"]);
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
