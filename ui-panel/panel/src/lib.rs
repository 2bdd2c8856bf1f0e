//! The box's own screen: what is shown on it, how it is drawn, and how it gets onto the glass.
//!
//! Never: a clock, a thread, a decision about the box; it shows a
//! [`StatusView`](status::view::StatusView) and says which [`model::Order`] a finger gave.
//! Enter at [`front::Front`] (a small screen and its buttons, over [`model::Panel`]),
//! [`console::Console`] (a monitor and its keyboard), [`screens`] (a page as a picture),
//! [`backends`] (a picture onto hardware), [`buttons`] (what the kernel says of keys) and
//! [`serial`] (the same facts as lines of text).

pub mod backends;
pub mod buttons;
pub mod console;
pub mod draw;
pub mod front;
pub mod model;
pub mod screens;
pub mod serial;
