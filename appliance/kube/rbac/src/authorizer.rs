//! Role-based access control (RBAC) with Kubernetes' rules (k8s.io/kubernetes,
//! plugin/pkg/auth/authorizer/rbac; k8s.io/component-helpers, auth/rbac/validation).

mod aggregation;
mod escalation;
mod roles;
mod rule;

pub use aggregation::aggregated;
pub use escalation::{Refusal, escalation, only_bookkeeping};
pub use roles::{Decision, RoleRef, Roles, Subject};
pub use rule::{MAX_PATTERNS, PolicyRule, covers, full_authority};

/// API group of the four RBAC kinds.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

#[cfg(test)]
mod tests;
