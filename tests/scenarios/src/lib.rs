//! The box in the rack: common parts of the scenarios and the demo.
//!
//! A [`Lab`] is a virtual rack with a real `tinboxd` as its box. Scenarios control it as an owner
//! does: by the command line, over TLS, with the administrator's kubeconfig.
//!
//! Never: access the box by another way than an owner has.
//!
//! Enter at [`Lab::start`]. [`Management::start`] adds a management cluster that controls the box.
//! [`QuickStart::start`] adds a management cluster whose provider is the box.

mod artifacts;
mod cluster_manifest;
mod demo;
mod image_registry;
mod lab;
mod management;
mod manifests;
mod nodes;
mod quick_start;
mod screen;
mod ssh_key;
mod state;

pub use artifacts::Artifacts;
pub use cluster_manifest::{ClusterManifest, Install, KUBERNETES};
pub use demo::{
    Credentials, DemoArguments, OWNER_KEY, RunningRack, USER_DATA, install_all, page_pin,
    require_root, wait_for_enter,
};
pub use image_registry::{IMAGE_SERVER, ImageRegistry, image_server};
pub use lab::{Lab, LabConfig, RESERVED};
pub use management::{Management, ManagementCluster};
pub use manifests::{
    CLOUD_INIT, Image, METADATA_URL, TemplateFile, install_template, nuc_manifest,
};
pub use nodes::Nodes;
pub use quick_start::QuickStart;
pub use screen::{Screen, exit, say, show, show_run};
pub use ssh_key::SshKey;
pub use state::WorkflowView;

pub use qemu::{
    Action, BmcKind, BootDevice, BootOrder, BootPath, BoxProcess, BoxProgram, DhcpKind,
    DhcpMessage, Direction, Dnsmasq, Firmware, Host, Model, Nic, NucConfig, Origin, Pool,
    RackConfig, Relay, Segment, out_dir, poll, start_kea,
};
