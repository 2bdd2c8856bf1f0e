//! Keyword `x-kubernetes-validations`: rules in CEL (apiextensions `pkg/apiserver/schema/cel`).
//!
//! The crate kube-cel parses a rule and provides the functions of the libraries. The evaluator is
//! Tinbox code. It counts every step, so that a rule can neither run long nor fill the memory.

mod admit;
mod compile;
mod declared;
mod estimate;
mod eval;
mod field_name;
mod infer;
mod kind;
mod library;
mod lists;
mod marks;
mod operator;
mod pairs;
mod place;
mod quantity;
mod signature;
mod texts;
mod val;
mod walk;
mod weight;

pub(crate) use admit::check as admit;
pub(crate) use compile::RuleTree;
pub(crate) use walk::check;
