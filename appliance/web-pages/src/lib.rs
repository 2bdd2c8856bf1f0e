//! Pages of the box as HTML: a [`status::view::StatusView`], forms, and what a visitor may do. The
//! pages work without script.
//!
//! Never: HTTP, a request to another server, a script or style inside a page.
//!
//! Enter at [`page::Page`] (pages by path, with parts that change), [`rights`] (permissions),
//! [`machine`], [`accounts`], [`templates`] and [`setup`] (pages with forms).

pub mod accounts;
pub mod design;
mod html;
pub mod machine;
pub mod page;
mod parts;
pub mod rights;
pub mod search;
pub mod setup;
mod shell;
pub mod templates;

pub use accounts::entry::{claim, login};
pub use html::{Part, link, template_link};
pub use page::{More, Page, setup_link};
pub use parts::{connect, os_images};
pub use shell::{alone, refused, sentence};
