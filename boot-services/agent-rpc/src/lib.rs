//! The agents' gRPC service: Tinkerbell's current protocol, the previous protocol, which older
//! workers use on the same port, and Tinbox's own methods.
//!
//! Never: decides which action comes next or what a report means (the implementor of [`Workflows`]
//! does), stores anything, logs a token or an action's environment.
//!
//! Enter at [`Workflows`] (what the box implements), [`server::routes`] (what it serves on port
//! 42113) and [`client::Client`] (what the agent calls).

pub mod client;
mod message;
mod pin;
pub mod server;
mod service;
mod wire;
mod worker;

pub use message::{
    ActionState, AgentReport, Assignment, DiskChoice, Hello, Namespaces, OUTPUT_LINES, Progress,
    Refusal, Report, WAITING,
};
pub use pin::Pin;
pub use service::{Call, Credentials, Pending, Workflows};
pub use wire::proto::{
    AgentAttributes as Attributes, Baseboard, Bios, Block, Chassis, Cpu, Gpu, Memory, Network, Pci,
    Processor, Product,
};
pub use wire::tinbox::v1::{
    BootEntry, Disk, Efi, Health, Interface, Inventory, MemoryModule, Neighbour, Tpm,
};
pub use worker::{ActionList, ListedAction, NamedReport, Turn};
