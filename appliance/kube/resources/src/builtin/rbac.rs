//! Definitions of the RBAC kinds: roles and bindings. The crate `rbac` evaluates the objects.

mod rules;

use std::sync::Arc;

use schema::FieldError;
use serde_json::Value;

use super::{columns, fields, native};
use crate::definition::{Column, NameRule, ResourceDefinition};

const GROUP: &str = "rbac.authorization.k8s.io";

type Check = fn(&Value, Option<&Value>) -> Vec<FieldError>;

pub(super) fn definitions() -> Vec<ResourceDefinition> {
    let kind = |kind: &str, plural: &str, columns: Vec<Column>, schema: &str, check: Check| {
        ResourceDefinition {
            namespaced: !kind.starts_with("Cluster"),
            name_rule: NameRule::PathSegment,
            schema: fields(schema),
            columns,
            prepare: Some(Arc::new(rules::prepare)),
            validate: Some(Arc::new(check)),
            ..native(GROUP, kind, plural, &[])
        }
    };
    let role = include_str!("native/role.json");
    let cluster_role = include_str!("native/clusterrole.json");
    let binding = include_str!("native/rolebinding.json");
    let cluster_binding = include_str!("native/clusterrolebinding.json");
    vec![
        kind(
            "ClusterRoleBinding",
            "clusterrolebindings",
            held(),
            cluster_binding,
            rules::cluster_role_binding,
        ),
        kind("ClusterRole", "clusterroles", created(), cluster_role, rules::cluster_role),
        kind("RoleBinding", "rolebindings", held(), binding, rules::role_binding),
        kind("Role", "roles", created(), role, rules::role),
    ]
}

fn created() -> Vec<Column> {
    vec![Column::name(), columns::created_at()]
}

fn held() -> Vec<Column> {
    vec![
        Column::name(),
        Column::with("Role", columns::role),
        columns::age(),
        Column::with("Users", columns::users).wide(),
        Column::with("Groups", columns::groups).wide(),
        Column::with("ServiceAccounts", columns::service_accounts).wide(),
    ]
}
