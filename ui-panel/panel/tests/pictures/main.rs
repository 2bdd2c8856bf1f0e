//! Tests of every page of every screen as a picture: goldens as PNG and as text, QR codes that a
//! scanner reads, and no overflow for any data. `UPDATE=1 cargo test -p panel --test pictures`
//! draws the goldens again.

#![allow(clippy::unwrap_used)] // what stands beside the tests is test code too

mod glass;
mod goldens;
mod hostile;
mod scanned;
mod stage;
