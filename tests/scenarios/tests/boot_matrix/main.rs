//! Every way to boot from the network that the virtual firmware knows: from power-on until the
//! agent has asked for work. Needs root and what `make setup` installs.
//!
//! A test is one box in one network, and its machines are rows of one [`table`], of which CI boots
//! a part and `BOOT_MATRIX=all` all. Under emulation a boot is all processor time, so as many
//! machines are on at once as [`gate`] lets, over all processes.

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
