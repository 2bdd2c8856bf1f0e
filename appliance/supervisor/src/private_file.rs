//! Files in the state folder that only the box may read, replaced durably: after a power cut there
//! is the old one or the new one.

pub use platform::kept::replace_private as replace;
