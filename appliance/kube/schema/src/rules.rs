//! Keyword `x-kubernetes-validations`: rules in CEL (apiextensions `pkg/apiserver/schema/cel`).
//!
//! The crate kube-cel parses rules and provides library functions. The evaluator is Tinbox code: it
//! counts every step, so that a rule can neither run long nor fill the memory.

mod admit;
mod compile;
mod eval;
mod field_name;
mod infer;
mod walk;

pub(crate) use admit::check as admit;
pub(crate) use compile::RuleTree;
pub(crate) use walk::check;
