//! The agents' gRPC service: Tinkerbell's current protocol and Tinbox's small addition to it.
//!
//! Never: decides which action comes next or what a report means (the implementor of [`Workflows`]
//! does), stores anything, logs a token or an action's environment.
//!
//! Enter at [`Workflows`] (what the box implements), [`server::routes`] (what it serves on port
//! 42113) and [`client::Client`] (what the agent calls).

pub mod client;
mod message;
pub mod server;
mod wire;

pub use message::{
    ActionState, Assignment, Hello, Namespaces, Pending, Progress, Refusal, Report, Workflows,
};
pub use wire::proto::{
    AgentAttributes as Attributes, Baseboard, Bios, Block, Chassis, Cpu, Gpu, Memory, Network, Pci,
    Processor, Product,
};
