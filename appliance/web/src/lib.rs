//! Web pages of the box: claim, login, and a live view of the box and its machines. This crate
//! renders a [`status::view::StatusView`]; the pages work without script.
//!
//! Never: a request to another server, a script or style inside a page, direct access to files,
//! a secret in a URL or a log line.
//!
//! Enter at [`router`] (routes), [`Site`] (owner and data), [`page::Page`] (pages) and
//! [`setup::Setup`] (first setup, after the claim).

mod assets;
mod design;
mod handlers;
pub mod page;
mod response;
pub mod rights;

pub use design::{SCRIPT, STYLE};
pub use handlers::audit::PageRequest;
pub use handlers::event_stream::STREAMS_MAX;
pub use handlers::{
    BODY_BYTES_MAX, ConsoleStream, Download, PairRequest, Site, Source, SourceFuture, plain,
    router, setup,
};
