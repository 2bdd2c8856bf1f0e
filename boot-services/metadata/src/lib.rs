//! What a machine asks about itself once it runs: the EC2 tree that stock cloud-init and
//! Tinkerbell's users know, the NoCloud seed, rootio's storage JSON, and phone-home.
//!
//! Must never: hand one machine's data to another (the source address decides, alone), write user
//! data to a log, or invent a value.
//!
//! Enter at [`router`]; the data comes through [`Instances`], the news go to [`Observer`].

mod ec2;
mod instance;
mod nocloud;
mod phone_home;
mod site;
mod token;

pub use instance::{Instance, Instances, Network, OperatingSystem};
pub use phone_home::PhoneHome;
pub use site::{Observer, router};
