//! Status view and its words, shared by web page, panel and command line.
//!
//! Never: I/O, a clock, a color or a screen. Defines the meaning; each interface draws it.
//!
//! Enter at [`view::StatusView`] (everything that an interface shows, in one value),
//! [`boot_event::BootEvent`] (an event of a machine's boot), [`history`] (the events of a machine
//! with their offsets), [`words`] (states as words with a tone), [`progress`] (of an action),
//! [`log`] (syslog lines), [`dhcp_client`], [`image`] (the cache), [`settings`] (the text of the
//! owner) and [`source`] (the parts of the box that fill a view).

pub mod access;
pub mod backup;
pub mod boot_event;
pub mod dhcp_client;
pub mod history;
pub mod image;
pub mod log;
pub mod progress;
pub mod reset;
pub mod settings;
pub mod source;
pub mod text;
pub mod update;
pub mod view;
pub mod words;

pub use text::{TEXT_CHARS_MAX, plain, plain_within};
