//! Kind TinkerbellCluster: infrastructure that the machines of a cluster share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FailureDomains, Initialization};
use crate::meta::{Condition, Object};

/// Infrastructure that the machines of a cluster share.
pub type TinkerbellCluster = Object<TinkerbellClusterSpec, TinkerbellClusterStatus>;

/// Endpoint of the control plane and defaults for the machines.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellClusterSpec {
    /// Host and port of the control plane.
    pub control_plane_endpoint: Endpoint,
    /// Tinbox extension: program that provides the endpoint; `None` for a program of the user, such
    /// as kube-vip.
    pub control_plane_endpoint_provider: Option<EndpointProvider>,
    /// Go template for the reference of the operating system image.
    pub image_lookup_format: String,
    /// Registry and folder of the images.
    pub image_lookup_base_registry: String,
    /// Distribution of the images, such as `ubuntu`.
    #[serde(rename = "imageLookupOSDistro")]
    pub image_lookup_os_distro: String,
    /// Version of the distribution, such as `20.04`.
    #[serde(rename = "imageLookupOSVersion")]
    pub image_lookup_os_version: String,
    /// Text of the workflow template for all machines.
    pub template_override: String,
    /// Template object for all machines; excludes `template_override`.
    pub template_override_ref: Option<TemplateRef>,
}

/// Host and port of a control plane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// Host name or IP address; empty when unset.
    pub host: String,
    /// TCP port; 0 when unset.
    pub port: u16,
}

/// Program that provides the endpoint of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndpointProvider {
    /// Box that serves the network of the endpoint.
    Box,
}

/// Reference to a Template of `tinkerbell.org`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TemplateRef {
    /// Name of the Template.
    pub name: String,
    /// Namespace of the Template; empty for the namespace of the cluster.
    pub namespace: String,
}

/// Status of a TinkerbellCluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TinkerbellClusterStatus {
    /// True if machines can be created (contract v1beta1).
    pub ready: bool,
    /// Progress for contract v1beta2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,
    /// Failure domains of the boxes that serve the cluster.
    #[serde(skip_serializing_if = "FailureDomains::is_empty")]
    pub failure_domains: FailureDomains,
    /// Conditions: `Ready` and `Paused`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Other fields, which the box writes unchanged.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

impl Endpoint {
    /// Returns true if host and port are set.
    pub fn is_set(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

impl TinkerbellClusterStatus {
    /// Returns true if the status shows a provisioned infrastructure in either contract.
    pub fn is_provisioned(&self) -> bool {
        self.ready || self.initialization.as_ref().is_some_and(|it| it.provisioned)
    }

    /// Records, for both contracts, that the infrastructure is provisioned.
    pub fn set_provisioned(&mut self) {
        self.ready = true;
        self.initialization = Some(Initialization { provisioned: true });
    }
}
