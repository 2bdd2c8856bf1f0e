//! The compiled-in kinds, as data. Adding one is adding a definition here; the engine, the paths
//! and the discovery documents follow.
//!
//! Names, short names, categories and columns are upstream's: those of Tinkerbell's CRDs
//! (`tinkerbell.org`, `bmc.tinkerbell.org` v1alpha1) and of Kubernetes' own printers (core v1).

mod columns;
mod core;
mod rules;
mod typed;

use std::sync::Arc;

use api::bmc::{JobSpec, MachineSpec, TaskSpec};
use api::tinkerbell::{HardwareSpec, TemplateSpec, WorkflowSpec};

use self::typed::validated;
use crate::definition::{
    Cell, Column, ColumnType, Duplicate, NameRule, Registry, ResourceDefinition,
};
use crate::json_path::JsonPath;

/// Events kept per namespace; the oldest give way.
pub const MAX_EVENTS: usize = 1000;

/// The registry of every compiled-in kind.
///
/// # Errors
/// Never, unless two definitions below collide; a test holds that.
pub fn registry() -> Result<Registry, Duplicate> {
    let mut all = core::definitions();
    all.extend(tinkerbell());
    all.extend(bmc());
    Registry::new(all)
}

fn tinkerbell() -> Vec<ResourceDefinition> {
    vec![
        ResourceDefinition {
            columns: vec![name(), column("State", ".status.state", 0)],
            validate: Some(validated::<HardwareSpec>(rules::hardware)),
            ..custom("tinkerbell.org", "Hardware", "hardware", &["hw"])
        },
        ResourceDefinition {
            status_subresource: false,
            columns: vec![name(), column("State", ".status.state", 0)],
            validate: Some(validated::<TemplateSpec>(rules::template)),
            ..custom("tinkerbell.org", "Template", "templates", &["tpl"])
        },
        ResourceDefinition {
            columns: vec![
                name(),
                column("Template", ".spec.templateRef", 0),
                column("State", ".status.state", 0),
                column("Task", ".status.currentState.taskName", 1),
                column("Action", ".status.currentState.actionName", 0),
                column("Agent", ".status.agentID", 0),
                column("Hardware", ".spec.hardwareRef", 0),
                column("Template-Rendering", ".status.templateRendering", 1),
            ],
            validate: Some(validated::<WorkflowSpec>(rules::workflow)),
            ..custom("tinkerbell.org", "Workflow", "workflows", &["wf"])
        },
    ]
}

fn bmc() -> Vec<ResourceDefinition> {
    vec![
        ResourceDefinition {
            validate: Some(validated::<MachineSpec>(rules::machine)),
            ..custom("bmc.tinkerbell.org", "Machine", "machines", &[])
        },
        ResourceDefinition {
            validate: Some(validated::<JobSpec>(rules::job)),
            ..custom("bmc.tinkerbell.org", "Job", "jobs", &["j"])
        },
        ResourceDefinition {
            validate: Some(validated::<TaskSpec>(rules::task)),
            ..custom("bmc.tinkerbell.org", "Task", "tasks", &["t"])
        },
    ]
}

/// A kind as a CRD of Tinkerbell makes it: namespaced, with status and generation.
fn custom(group: &str, kind: &str, plural: &str, short: &[&str]) -> ResourceDefinition {
    ResourceDefinition {
        group: group.to_owned(),
        version: "v1alpha1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_ascii_lowercase(),
        short_names: short.iter().map(|one| (*one).to_owned()).collect(),
        categories: vec!["tinkerbell".to_owned()],
        namespaced: true,
        status_subresource: true,
        tracks_generation: true,
        unconditional_update: false,
        name_rule: NameRule::Subdomain,
        columns: vec![name(), age()],
        selectable_fields: Vec::new(),
        keep_newest: None,
        is_namespace: false,
        permanent: Vec::new(),
        prepare: Some(Arc::new(typed::drop_nulls)),
        validate: None,
    }
}

fn name() -> Column {
    Column {
        format: "name".to_owned(),
        description: "Name must be unique within a namespace.".to_owned(),
        ..column("Name", ".metadata.name", 0)
    }
}

fn age() -> Column {
    Column {
        kind: ColumnType::Date,
        description: "Time since the object was created.".to_owned(),
        ..column("Age", ".metadata.creationTimestamp", 0)
    }
}

fn column(name: &str, path: &str, priority: u32) -> Column {
    Column {
        name: name.to_owned(),
        kind: ColumnType::String,
        format: String::new(),
        description: format!("The object's {path}."),
        priority,
        cell: Cell::Path(JsonPath::parse(path).expect("a test reads every path written here")),
    }
}

#[cfg(test)]
mod tests {
    use super::registry;

    #[test]
    fn every_definition_can_be_served() {
        let registry = registry().unwrap();
        let kinds: Vec<&str> = registry.all().iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "Namespace",
                "Secret",
                "Event",
                "Hardware",
                "Template",
                "Workflow",
                "Machine",
                "Job",
                "Task"
            ]
        );
        for definition in registry.all() {
            assert!(registry.by_id(&definition.id()).is_some());
            let named = definition.columns.iter().filter(|column| column.format == "name");
            assert_eq!(named.count(), 1, "{definition:?}");
        }
        assert_eq!(registry.namespaces().unwrap().kind, "Namespace");
    }
}
