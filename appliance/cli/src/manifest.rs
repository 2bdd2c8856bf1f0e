//! Reads objects from files: YAML documents, JSON, and hardware JSON of older Tinkerbell.

mod apply;
mod legacy;
mod push;

use std::io::Read as _;

use api::bmc::{JOB, Job, MACHINE, Machine, TASK, Task};
use api::core::SECRET;
use api::meta::Resource;
use api::tinkerbell::{HARDWARE, Hardware, TEMPLATE, Template, WORKFLOW, Workflow};
use serde_json::Value;

use crate::error::Error;

pub use push::{desired, push};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

const NAMESPACE: Resource =
    Resource { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };

/// Kinds that a file may contain.
const KINDS: [Resource; 8] = [HARDWARE, TEMPLATE, WORKFLOW, MACHINE, JOB, TASK, SECRET, NAMESPACE];

/// Object of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub resource: Resource,
    pub object: Value,
}

impl Manifest {
    /// Returns the name of the object; [`parse`] has checked that it exists.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Returns the namespace of the object, else `default`; empty for a Namespace.
    pub fn namespace<'a>(&'a self, default: &'a str) -> &'a str {
        if self.resource == NAMESPACE {
            return "";
        }
        self.object["metadata"]["namespace"].as_str().unwrap_or(default)
    }
}

/// Reads the text of a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read, is not UTF-8, or is larger than 16 MiB.
pub fn read(file: &str) -> Result<String, Error> {
    let failed = |source| Error::Read { file: label(file), source };
    let mut text = String::new();
    let reader: Box<dyn std::io::Read> = match file {
        "-" => Box::new(std::io::stdin().lock()),
        path => Box::new(std::fs::File::open(path).map_err(failed)?),
    };
    reader.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(content(file, "it is larger than 16 MiB"));
    }
    Ok(text)
}

/// Parses and checks all objects of a text.
///
/// # Errors
/// A document is not valid or has an unsupported kind. The error names the document.
pub fn parse(file: &str, text: &str) -> Result<Vec<Manifest>, Error> {
    let mut manifests = Vec::new();
    for (at, value) in values(file, text)?.into_iter().enumerate() {
        let place = format!("document {}", at + 1);
        match value.get("items").and_then(Value::as_array) {
            Some(items) if value["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => {
                for item in items {
                    manifests.push(manifest(file, &place, item.clone())?);
                }
            }
            _ => manifests.push(manifest(file, &place, value)?),
        }
    }
    if manifests.is_empty() {
        return Err(content(file, "it contains no object"));
    }
    Ok(manifests)
}

fn values(file: &str, text: &str) -> Result<Vec<Value>, Error> {
    // JSON first where it looks like it: YAML forbids the tabs that JSON is often indented with.
    if text.trim_start().starts_with('{') {
        let read: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_str(text).into_iter().collect();
        return read.map_err(|error| content(file, &error.to_string()));
    }
    // A snippet in a message could show a secret of the file.
    // Booleans and octal numbers are those of YAML 1.2: `on` is a power action, `0600` a mode.
    let options = serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
    };
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| content(file, &error.to_string()))
}

fn manifest(file: &str, place: &str, value: Value) -> Result<Manifest, Error> {
    let wrong = |why: &str| content(file, &format!("{place}: {why}"));
    if !value.is_object() {
        return Err(wrong("it is not an object"));
    }
    let object = if legacy::is_legacy(&value) {
        legacy::hardware(&value).map_err(|why| wrong(&why))?
    } else {
        value
    };
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version.is_empty() || kind.is_empty() {
        return Err(wrong("it has no apiVersion and kind"));
    }
    let resource = KINDS.into_iter().find(|it| it.api_version() == version && it.kind == kind);
    let Some(resource) = resource else {
        return Err(wrong(&format!("{version} {kind} is not a kind this program pushes")));
    };
    if object["metadata"]["name"].as_str().is_none_or(str::is_empty) {
        return Err(wrong("it has no metadata.name"));
    }
    if let Err(why) = check(resource, &object) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let kind = kind.to_lowercase();
        return Err(wrong(&format!("{kind}/{name} does not match its kind: {why}")));
    }
    Ok(Manifest { resource, object })
}

/// Checks the types of an object's fields: refuses a number for a string, or `yes` for `true`.
fn check(resource: Resource, object: &Value) -> Result<(), serde_json::Error> {
    fn read<T: serde::de::DeserializeOwned>(object: &Value) -> Result<(), serde_json::Error> {
        serde_json::from_value::<T>(object.clone()).map(|_| ())
    }
    match resource {
        HARDWARE => read::<Hardware>(object),
        TEMPLATE => read::<Template>(object),
        WORKFLOW => read::<Workflow>(object),
        MACHINE => read::<Machine>(object),
        JOB => read::<Job>(object),
        TASK => read::<Task>(object),
        // A message about a Secret could show it.
        _ => Ok(()),
    }
}

/// Creates an error about a file's content.
pub fn content(file: &str, why: &str) -> Error {
    // One line, whatever a parser says.
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    Error::Content { file: label(file), why }
}

fn label(file: &str) -> String {
    if file == "-" { "standard input".to_owned() } else { file.to_owned() }
}

#[cfg(test)]
mod tests;
