//! The box's web pages: the claim of a box without an owner, the way in, and what the box and its
//! machines do, live. Rendered here from one [`status::view::StatusView`]; useful without script.
//!
//! Never: a request to anywhere else, a script or style inside a page, a file of its own (what must
//! survive goes through [`owner::Keep`]), a secret in a URL or a log line.
//!
//! Enter at [`router`] (what a browser may ask), [`owner::Owner`] (who may), [`page::Page`] (what
//! is shown) and [`setup::Setup`] (what is asked once there is an owner).

mod answer;
mod audit;
mod backup;
pub mod claim;
mod guesses;
mod live;
mod look;
mod multipart;
pub mod owner;
pub mod page;
mod passphrase;
mod session;
pub mod setup;
mod site;
mod turns;

pub use audit::PageRequest;
pub use live::STREAMS_MAX;
pub use look::{SCRIPT, STYLE};
pub use site::{Answering, BODY_BYTES_MAX, Download, Site, Source, plain, router};
