//! Every network boot method of the virtual firmware, from power-on until the agent has requested
//! work. Needs root and the packages of `make setup`.
//!
//! A test is one box in one network, and its machines are rows of one [`table`]; CI boots a part of
//! them, `BOOT_MATRIX=all` all. An emulated boot needs mostly CPU time, so [`gate`] limits the
//! machines that run at once, over all processes.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod gate;
mod modes;
mod rogue;
mod row;
mod table;
mod vlan;

use scenarios::{Firmware, RESERVED, Relay};

use crate::row::Matrix;
use crate::table::{BOTH, Network};

#[test]
fn reserved_bios() {
    let matrix = Matrix::new("boot-reserved-bios", RESERVED);
    matrix.boot(Network::Reserved, &[Firmware::Bios], |_| ());
}

#[test]
fn reserved_uefi() {
    let matrix = Matrix::new("boot-reserved-uefi", RESERVED);
    matrix.boot(Network::Reserved, &[Firmware::Uefi], |_| ());
}

#[test]
fn reserved_behind_a_relay() {
    let matrix = Matrix::new("boot-relay", RESERVED);
    matrix.boot(Network::Relay, &BOTH, |lab| Relay::start(&lab.rack).unwrap());
}
