//! Every page of every screen as a picture: goldens for people and as text, codes that a scanner
//! reads, and no page that overflows for any data. `UPDATE=1 cargo test -p panel --test pictures`
//! draws the goldens again.

#![allow(clippy::unwrap_used)] // what stands beside the tests is test code too

mod glass;
mod goldens;
mod hostile;
mod scanned;
mod stage;
