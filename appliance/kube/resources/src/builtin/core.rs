//! Definitions of the core v1 kinds and of leases, which every client expects.

use std::sync::Arc;

use super::{columns, fields, native, rules};
use crate::definition::{Column, NameRule, ResourceDefinition};

/// Namespaces that exist from the first start and cannot be deleted.
const PERMANENT: [&str; 5] = ["default", "kube-public", "kube-system", "tinbox", "tinkerbell"];

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    vec![namespace(), secret(), config_map(), service_account(), service(), lease()]
}

fn namespace() -> ResourceDefinition {
    ResourceDefinition {
        namespaced: false,
        is_namespace: true,
        name_rule: NameRule::Label,
        permanent: PERMANENT.map(str::to_owned).to_vec(),
        schema: fields(include_str!("native/namespace.json")),
        columns: vec![Column::name(), Column::of("Status", ".status.phase"), columns::age()],
        selectable_fields: vec!["status.phase".to_owned()],
        prepare: Some(Arc::new(rules::prepare_namespace)),
        ..native("", "Namespace", "namespaces", &["ns"])
    }
}

fn secret() -> ResourceDefinition {
    ResourceDefinition {
        schema: fields(include_str!("native/secret.json")),
        columns: vec![
            Column::name(),
            Column::of("Type", ".type"),
            Column::with("Data", columns::data),
            columns::age(),
        ],
        selectable_fields: vec!["type".to_owned()],
        prepare: Some(Arc::new(rules::prepare_secret)),
        validate: Some(Arc::new(rules::secret)),
        ..native("", "Secret", "secrets", &[])
    }
}

fn config_map() -> ResourceDefinition {
    ResourceDefinition {
        schema: fields(include_str!("native/configmap.json")),
        columns: vec![Column::name(), Column::with("Data", columns::data), columns::age()],
        prepare: Some(Arc::new(rules::prepare_config_map)),
        validate: Some(Arc::new(rules::config_map)),
        ..native("", "ConfigMap", "configmaps", &["cm"])
    }
}

fn service_account() -> ResourceDefinition {
    ResourceDefinition {
        unconditional_update: false,
        returns_deleted: true,
        schema: fields(include_str!("native/serviceaccount.json")),
        ..native("", "ServiceAccount", "serviceaccounts", &["sa"])
    }
}

/// Returns the definition of Service, which exists only because `kubectl cluster-info` lists
/// services. No program listens at a service's address.
fn service() -> ResourceDefinition {
    ResourceDefinition {
        categories: vec!["all".to_owned()],
        status_subresource: true,
        returns_deleted: true,
        name_rule: NameRule::Label,
        schema: fields(include_str!("native/service.json")),
        columns: vec![
            Column::name(),
            Column::with("Type", columns::service_type),
            Column::with("Cluster-IP", columns::cluster_ip),
            Column::with("External-IP", columns::external_ip),
            Column::with("Port(s)", columns::ports),
            columns::age(),
            Column::with("Selector", columns::selector).wide(),
        ],
        selectable_fields: vec!["spec.clusterIP".to_owned(), "spec.type".to_owned()],
        prepare: Some(Arc::new(stdx::json::drop_nulls)),
        ..native("", "Service", "services", &["svc"])
    }
}

fn lease() -> ResourceDefinition {
    ResourceDefinition {
        unconditional_update: false,
        schema: fields(include_str!("native/lease.json")),
        columns: vec![Column::name(), Column::of("Holder", ".spec.holderIdentity"), columns::age()],
        validate: Some(Arc::new(rules::lease)),
        ..native("coordination.k8s.io", "Lease", "leases", &[])
    }
}
