//! Controllers of the Cluster API infrastructure provider: TinkerbellCluster, TinkerbellMachine,
//! TinkerbellMachineTemplate and TinkerbellRemediation, as observe → decide → apply.
//!
//! A [`ManagementView`] is the API with the Cluster API objects: that of a management cluster, or
//! that of the box. Hardware, Templates, Workflows and Jobs are always objects of the box. This
//! crate must never use the store, HTTP or sockets directly, and never power, image or release a
//! machine without a present request in an object. Enter at
//! [`tinkerbell_machine::TinkerbellMachineReconciler`],
//! [`tinkerbell_cluster::TinkerbellClusterReconciler`],
//! [`tinkerbell_machine_template::TinkerbellMachineTemplateReconciler`] or
//! [`tinkerbell_remediation::TinkerbellRemediationReconciler`].

mod conditions;
mod decision;
mod image_request;
mod management_view;
pub mod signals;
mod status_source;
pub mod tinkerbell_cluster;
pub mod tinkerbell_machine;
pub mod tinkerbell_machine_template;
pub mod tinkerbell_remediation;

pub use management_view::{ClusterIdentity, KnownMachines, ManagementView};
pub use status_source::{ClusterApiSource, name_of};
