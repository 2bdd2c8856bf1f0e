//! Screens of the box: pages, their drawing, and the display drivers.
//!
//! Never: a clock, a thread, a decision about the box. This crate shows a
//! [`StatusView`](status::view::StatusView) and returns the [`model::PanelOrder`] of a press.
//!
//! Enter at [`front::Front`] (a small screen and its buttons, over [`model::Panel`]),
//! [`console::Console`] (a monitor and its keyboard), [`screens`] (a page as a picture),
//! [`backends`] (a picture onto hardware), [`buttons`] (key events of the kernel) and [`serial`]
//! (the status as lines of text).

pub mod backends;
pub mod buttons;
pub mod console;
pub mod draw;
pub mod front;
pub mod model;
pub mod screens;
pub mod serial;
