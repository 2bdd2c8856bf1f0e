//! Controller for TinkerbellMachines of `infrastructure.cluster.x-k8s.io`: Hardware that becomes a
//! machine of a cluster.

pub mod choice;
pub mod install;
