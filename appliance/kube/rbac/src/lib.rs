//! Who a caller is and what they may do: identities, roles, shares, the record of writes.
//!
//! Never: does I/O, reads a clock of its own, stores or logs a secret, lets an unknown caller be
//! somebody.
//!
//! Enter at [`User`] (who), [`Action`] (does what), [`Roles`] (may they: Kubernetes' RBAC over the
//! objects it was given), [`certificate`], [`impersonation`], [`jwt`] (ServiceAccount tokens),
//! [`Shares`] (how much at a time) and [`AuditRecord`] (what is kept of a write).

mod action;
mod audit;
pub mod bootstrap;
pub mod certificate;
pub mod impersonation;
pub mod jwt;
mod rbac;
mod refused_records;
mod share;
mod user;

pub use action::{Action, Target, verb};
pub use audit::{AuditRecord, MAX_TEXT_CHARS};
pub use rbac::{
    Decision, MAX_PATTERNS, PolicyRule, RBAC_GROUP, Refusal, RoleRef, Roles, Subject, aggregated,
    covers, escalation, full_authority, only_bookkeeping,
};
pub use refused_records::{REFUSED_A_MINUTE, RefusedRecords};
pub use share::{Limits, Share, Shares};
pub use user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED, User,
    service_account_groups, service_account_name, service_account_parts,
};
