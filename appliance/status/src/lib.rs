//! What people are told: one vocabulary for the web page, the panel and the command line.
//!
//! Never: I/O, a clock, a colour or a screen; it says what is meant, and each face draws it.
//! Enter at [`story::Moment`] (what happened to a machine in this boot), [`timeline`] (those
//! moments with their offsets), [`words`] (a state as a word with a tone) and [`progress`] (how
//! far it is).

pub mod progress;
pub mod story;
pub mod timeline;
pub mod words;
