//! The documents: generators of the reference pages that are printed from code, and readers of
//! pages for the tests that compare the pages with the product.
//!
//! Must never: change a page unless `UPDATE=1` is set, or run a command of a page.
//!
//! Enter at `tests/pages.rs`. [`page`] compares and reads pages, [`markdown`] finds blocks, links
//! and headings, [`shell`] splits commands, [`typed_lines`] has the lines that `tests/doc-commands`
//! runs; each other module prints one reference page.

pub mod actions;
pub mod command_line;
pub mod crates;
pub mod events;
pub mod functions;
pub mod kinds;
pub mod markdown;
pub mod page;
pub mod ports;
pub mod queues;
pub mod settings;
pub mod shell;
pub mod source;
pub mod states;
pub mod tasks;
pub mod typed_lines;
