//! Identity and permissions of API callers: users, roles, connection limits, audit records.
//!
//! Never does I/O, never reads a clock of its own, never stores or logs a secret. Never gives an
//! unauthenticated caller the identity of a user.
//!
//! Enter at [`User`] (identity), [`Action`] (verb and target) and [`Roles`] (Kubernetes' RBAC over
//! the stored objects). Also [`certificate`], [`impersonation`], [`jwt`] (ServiceAccount tokens),
//! [`Shares`] (limits for each client) and [`AuditRecord`] (audit log of writes).

mod action;
mod audit;
mod authorizer;
pub mod bootstrap;
pub mod certificate;
pub mod impersonation;
pub mod jwt;
mod refused_records;
mod share;
mod user;

pub use action::{Action, Target, verb};
pub use audit::{AuditRecord, MAX_TEXT_CHARS};
pub use authorizer::{
    Decision, MAX_PATTERNS, PolicyRule, RBAC_GROUP, Refusal, RoleRef, Roles, Subject, aggregated,
    covers, escalation, full_authority, only_bookkeeping,
};
pub use refused_records::{REFUSED_A_MINUTE, RefusedRecords};
pub use share::{Limits, Share, Shares};
pub use user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED, User,
    service_account_groups, service_account_name, service_account_parts,
};
