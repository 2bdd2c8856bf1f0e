//! Web server of the box: claim, login, and the pages of [`web_pages`] for those who may see them.
//!
//! Never: HTML, direct access to files, a secret in a URL or a log line.
//!
//! Enter at [`router`] (routes), [`Site`] (owner and data), [`Source`] (what the rest of the box
//! provides) and [`setup::Setup`] (first setup, after the claim).

mod assets;
mod handlers;
mod response;

pub use handlers::audit::PageRequest;
pub use handlers::{
    ConsoleStream, Download, FileBody, PairRequest, Site, Source, SourceFuture, plain, router,
    setup,
};
