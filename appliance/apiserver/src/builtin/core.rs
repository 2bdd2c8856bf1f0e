//! Core v1: the kinds every client expects to find.

use std::sync::Arc;

use super::{MAX_EVENTS, age, column, columns, custom, name, rules};
use crate::definition::{Cell, Column, ColumnType, NameRule, ResourceDefinition};
use crate::json_path::JsonPath;

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    vec![namespace(), secret(), event()]
}

/// What core kinds have in common; the version and the absent status are Kubernetes'.
fn core(kind: &str, plural: &str, short: &[&str]) -> ResourceDefinition {
    ResourceDefinition {
        version: "v1".to_owned(),
        categories: Vec::new(),
        status_subresource: false,
        tracks_generation: false,
        unconditional_update: true,
        ..custom("", kind, plural, short)
    }
}

fn namespace() -> ResourceDefinition {
    ResourceDefinition {
        namespaced: false,
        is_namespace: true,
        name_rule: NameRule::Label,
        permanent: vec!["default".to_owned(), "kube-system".to_owned()],
        columns: vec![name(), column("Status", ".status.phase", 0), age()],
        selectable_fields: vec!["status.phase".to_owned()],
        prepare: Some(Arc::new(rules::prepare_namespace)),
        ..core("Namespace", "namespaces", &["ns"])
    }
}

fn secret() -> ResourceDefinition {
    let data = Column {
        kind: ColumnType::Integer,
        cell: Cell::Count(JsonPath::dotted("data")),
        ..column("Data", ".data", 0)
    };
    ResourceDefinition {
        columns: vec![name(), column("Type", ".type", 0), data, age()],
        selectable_fields: vec!["type".to_owned()],
        prepare: Some(Arc::new(rules::prepare_secret)),
        validate: Some(Arc::new(rules::secret)),
        ..core("Secret", "secrets", &[])
    }
}

fn event() -> ResourceDefinition {
    let with = |name: &str, cell| Column { cell: Cell::With(cell), ..column(name, "", 0) };
    let selectable = [
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ];
    ResourceDefinition {
        keep_newest: Some(MAX_EVENTS),
        columns: vec![
            with("Last Seen", columns::last_seen),
            column("Type", ".type", 0),
            column("Reason", ".reason", 0),
            with("Object", columns::involved_object),
            column("Message", ".message", 0),
            Column { priority: 1, ..name() },
        ],
        selectable_fields: selectable.map(str::to_owned).to_vec(),
        validate: Some(Arc::new(rules::event)),
        ..core("Event", "events", &["ev"])
    }
}
