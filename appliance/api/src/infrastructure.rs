//! Kinds of the Cluster API infrastructure provider, as JSON of their CustomResourceDefinitions:
//! CAPT's v1beta1, and the v1alpha4 of the box's own API.

/// CustomResourceDefinition of the kind TinkerbellCluster.
pub const CLUSTERS: &str = include_str!("infrastructure/tinkerbellclusters.json");
/// CustomResourceDefinition of the kind TinkerbellClusterTemplate.
pub const CLUSTER_TEMPLATES: &str = include_str!("infrastructure/tinkerbellclustertemplates.json");
/// CustomResourceDefinition of the kind TinkerbellMachine.
pub const MACHINES: &str = include_str!("infrastructure/tinkerbellmachines.json");
/// CustomResourceDefinition of the kind TinkerbellMachineTemplate.
pub const MACHINE_TEMPLATES: &str = include_str!("infrastructure/tinkerbellmachinetemplates.json");
