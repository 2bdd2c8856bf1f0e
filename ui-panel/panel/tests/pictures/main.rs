//! Every page of every screen as a picture: goldens to look at and to read, codes that a scanner
//! reads, and no page that overflows whatever the box has to tell.
//! `UPDATE=1 cargo test -p panel --test pictures` draws the goldens anew.

#![allow(clippy::unwrap_used)] // what stands beside the tests is test code too

mod glass;
mod goldens;
mod hostile;
mod scanned;
mod stage;
