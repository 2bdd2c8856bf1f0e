//! `docs/reference/box-toml.md`: every key of box.toml, read from the structs that serde fills.

use std::collections::BTreeSet;

use crate::page::{cell, head};
use crate::source::{Field, Source, below, fields};

/// Sources with the structs and enums of the file, in the order in which names are looked up.
const SOURCES: [&str; 4] = [
    "appliance/config/src",
    "boot-services/metadata/src",
    "appliance/api/src",
    "boot-services/artifact-cache/src",
];

const ABOUT: &str = "\
Unknown keys are refused, and all mistakes are reported at once. A table is refused if it lacks a \
key that is marked Required.

On a flashed box the file is `box.toml` on the volume `TINBOX`; `tinbox box settings` reads and \
changes it. On Linux `tinboxd --config FILE` names it. [Networks](../how-to/networks.md) and the \
other how-to guides have examples.";

/// Returns the page as Markdown text.
///
/// # Panics
/// When the sources have no struct `Config`.
pub fn page() -> String {
    let sources: Vec<Source> = SOURCES.iter().flat_map(|folder| below(folder)).collect();
    let mut printer = Printer { sources, seen: BTreeSet::new(), text: head("box.toml", ABOUT) };
    printer.section("", "Config", 0);
    printer.text
}

struct Printer {
    sources: Vec<Source>,
    seen: BTreeSet<String>,
    text: String,
}

impl Printer {
    /// Prints the keys of a struct, then those of the structs in it.
    fn section(&mut self, path: &str, name: &str, from: usize) {
        let Some((at, members)) = self.find(&format!("pub struct {name} {{"), from) else { return };
        let title = if path.is_empty() { "Top level".to_owned() } else { format!("`[{path}]`") };
        self.text.push_str(&format!("\n## {title}\n\n"));
        self.text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
        let mut sections = Vec::new();
        for field in members.iter().filter(|field| !field.attributes.contains("serde(skip)")) {
            let key =
                if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
            let inner = inner(&field.kind);
            if let Some((file, name)) = self.table(inner, at) {
                let list = field.attributes.contains("one_or_more") || field.kind.contains("Vec<");
                let map = if field.kind.contains("BTreeMap<") { ".NAME" } else { "" };
                let value = if list { "tables" } else { "table" };
                self.row(&field.name, value, "", &field.doc);
                sections.push((format!("{key}{map}"), name, file));
            } else {
                let default = self.default(name, at, field);
                let value = self.value(&field.kind, at);
                self.row(&field.name, &value, &default, &field.doc);
            }
        }
        for (path, name, file) in sections {
            if self.seen.insert(format!("{file} {name}")) {
                self.section(&path, &name, file);
            }
        }
    }

    fn row(&mut self, name: &str, value: &str, default: &str, doc: &str) {
        let doc = cell(&links(doc));
        self.text.push_str(&format!("| `{name}` | {value} | {default} | {doc} |\n"));
    }

    /// Returns a declaration's file and members; the file at index `from` is searched first.
    fn find(&self, head: &str, from: usize) -> Option<(usize, Vec<Field>)> {
        let order = std::iter::once(from).chain(0..self.sources.len());
        let at =
            order.into_iter().find(|at| self.sources[*at].text.lines().any(|it| it == head))?;
        Some((at, fields(&self.sources[at..=at], head)?))
    }

    /// Returns the struct of a type, if the struct is a table of box.toml.
    fn table(&self, kind: &str, from: usize) -> Option<(usize, String)> {
        let (krate, name) = kind.rsplit_once("::").unwrap_or(("", kind));
        let from = match krate {
            "" => from,
            krate => self.sources.iter().position(|it| {
                it.krate() == krate && it.text.contains(&format!("pub struct {name} {{"))
            })?,
        };
        let head = format!("pub struct {name} {{");
        let (at, _) = self.find(&head, from)?;
        // Structs for tables of box.toml refuse unknown keys; other structs are read from one
        // value.
        let is_table = attributes(&self.sources[at], &head).contains("deny_unknown_fields");
        is_table.then(|| (at, name.to_owned()))
    }

    /// Returns the description of a type, for the column `value`.
    fn value(&self, kind: &str, from: usize) -> String {
        let list = kind.contains("Vec<");
        let kind = inner(kind);
        let word = match kind {
            "String" => "text",
            "PathBuf" => "path",
            "bool" => "`true` or `false`",
            "u8" | "u16" | "u32" | "u64" => "number",
            "IpNet" => "network",
            "Ipv4Addr" => "IPv4 address",
            "SocketAddr" => "address and port",
            other => &self.choice(other, from),
        };
        if list { format!("list: {word}") } else { word.to_owned() }
    }

    /// Returns the values of an enum.
    fn choice(&self, kind: &str, from: usize) -> String {
        let head = format!("pub enum {kind} {{");
        let from = self.imported(kind, from);
        let Some((at, variants)) = self.find(&head, from) else { return self.checked(kind) };
        if variants.is_empty() {
            return "text or table".to_owned();
        }
        let lower = attributes(&self.sources[at], &head);
        let name = |variant: &Field| {
            let renamed = variant.attributes.split("rename = \"").nth(1);
            let word = match renamed.and_then(|text| text.split('"').next()) {
                Some(name) => name.to_owned(),
                None if lower.contains("kebab-case") => kebab(&variant.name),
                None => variant.name.to_lowercase(),
            };
            let mark = if variant.attributes.contains("[default]") { " (default)" } else { "" };
            format!("`\"{word}\"`{mark}")
        };
        variants.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Returns the file of an enum that a file imports from `api`, or else the file itself.
    fn imported(&self, kind: &str, from: usize) -> usize {
        let uses = self.sources[from].text.lines().filter(|line| line.starts_with("use api::"));
        let words =
            |line: &str| line.split(|char: char| !char.is_alphanumeric()).any(|it| it == kind);
        if !uses.into_iter().any(words) {
            return from;
        }
        let head = format!("pub enum {kind} {{");
        let declares = |it: &Source| it.krate() == "api" && it.text.contains(&head);
        self.sources.iter().position(declares).unwrap_or(from)
    }

    /// Returns `number` or `text`: the TOML type of a value that is checked when it is read
    /// (`Offset(u32) from u32`).
    fn checked(&self, kind: &str) -> String {
        let made_of = |source: &Source| {
            let (_, after) = source.text.split_once(&format!("    {kind}("))?;
            let (_, raw) = after.lines().next()?.split_once(") from ")?;
            Some(raw.starts_with('u'))
        };
        let number = self.sources.iter().find_map(made_of).unwrap_or(false);
        if number { "number".to_owned() } else { "text".to_owned() }
    }

    /// Returns the default that `impl Default` of the struct writes as a plain value.
    fn default(&self, name: &str, at: usize, field: &Field) -> String {
        let text = &self.sources[at].text;
        if let Some((_, after)) = field.attributes.split_once("default = \"") {
            let function = after.split('"').next().unwrap_or_default();
            let body = text.split_once(&format!("fn {function}() -> ")).map(|(_, after)| after);
            let value = body.and_then(|it| it.lines().nth(1)).unwrap_or_default().trim();
            return plain(value.trim_end_matches(".to_owned()"));
        }
        if field.kind == "bool" && field.attributes.contains("serde(default)") {
            return plain("false");
        }
        let Some(start) = text.find(&format!("impl Default for {name} {{")) else {
            return String::new();
        };
        let body = text[start..].split("\n}\n").next().unwrap_or_default();
        let after = [format!("{{ {}: ", field.name), format!(", {}: ", field.name)]
            .into_iter()
            .chain([format!("    {}: ", field.name)])
            .find_map(|key| body.split_once(&key).map(|(_, after)| after));
        let value =
            after.and_then(|it| it.split([',', '\n', '}']).next()).unwrap_or_default().trim();
        plain(value)
    }
}

/// Returns a value as code if it is a number, a text or a truth value, and nothing otherwise.
fn plain(value: &str) -> String {
    let number = value.chars().all(|it| it.is_ascii_digit() || it == '_');
    let text = value.starts_with('"') && value.ends_with('"');
    let known = matches!(value, "true" | "false") || number || text;
    if known && !value.is_empty() { format!("`{value}`") } else { String::new() }
}

/// Returns the type in `Option`, `Vec` and the values of `BTreeMap`.
fn inner(kind: &str) -> &str {
    let mut kind = kind.trim();
    loop {
        let part = kind.strip_suffix('>').and_then(|it| it.split_once('<')).map(|(_, part)| part);
        let Some(part) = part else { return kind };
        kind = part.rsplit_once(", ").map_or(part, |(_, value)| value);
    }
}

/// Returns the attributes in front of a declaration.
fn attributes(source: &Source, head: &str) -> String {
    let lines: Vec<&str> = source.text.lines().collect();
    let at = lines.iter().position(|line| *line == head).unwrap_or(0);
    let before = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    before.copied().collect()
}

fn kebab(name: &str) -> String {
    let mut text = String::new();
    for char in name.chars() {
        if char.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(char.to_lowercase());
    }
    text
}

/// Removes the brackets of links to code.
fn links(doc: &str) -> String {
    doc.replace("[`", "`").replace("`]", "`").replace(" ([crate])", "").replace(" (`crate`)", "")
}
