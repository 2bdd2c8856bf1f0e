//! What people are told: one vocabulary for the web page, the panel and the command line.
//!
//! Never: I/O, a clock, a colour or a screen; it says what is meant, and each face draws it.
//! Enter at [`view::StatusView`] (everything a face shows, in one value), [`story::Moment`] (what
//! happened to a machine in this boot), [`timeline`] (those moments with their offsets), [`words`]
//! (a state as a word with a tone), [`progress`] (how far it is), [`log`] (what it said), [`heard`]
//! (who asked for an address), [`image`] (what it may be given), [`settings`] (what the owner
//! wrote) and [`source`] (the parts of the box that fill a view).

pub mod backup;
pub mod heard;
pub mod image;
pub mod log;
pub mod pin;
pub mod progress;
pub mod reset;
pub mod settings;
pub mod source;
pub mod story;
pub mod timeline;
pub mod update;
pub mod view;
pub mod words;
