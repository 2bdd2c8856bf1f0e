//! Every way to boot from the network that the virtual firmware knows, on every card it can drive:
//! from power-on until the agent has asked for work. Needs root and what `make setup` installs.
//!
//! A test is one box in one network, and its rows are the machines in it. Under emulation a boot is
//! all processor time, so as many machines are on at once as [`gate`] lets.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod gate;
mod modes;
mod rogue;
mod row;
mod vlan;

use scenarios::{BootPath, Nic, RESERVED, Relay, Segment};

use crate::row::{Goal, Matrix, Row};

use BootPath::{BiosIpxeRom, BiosPlainPxe, UefiHttp4, UefiIpxeRom, UefiPxe4};
use Goal::{Agent, Files, Script};
use Nic::{E1000, E1000e, Rtl8139, Virtio, Vmxnet3};
use Segment::{Far, Near};

const fn row(path: BootPath, nic: Nic, segment: Segment, goal: Goal) -> Row {
    Row { path, nic, segment, goal }
}

#[test]
fn reserved_bios() {
    Matrix::new("boot-reserved-bios", RESERVED).boot(
        &[
            row(BiosIpxeRom, Virtio, Near, Agent),
            row(BiosIpxeRom, E1000e, Near, Agent),
            row(BiosIpxeRom, E1000, Near, Agent),
            row(BiosIpxeRom, Rtl8139, Near, Files),
            row(BiosIpxeRom, Vmxnet3, Near, Files),
            row(BiosPlainPxe, Virtio, Near, Agent),
            row(BiosPlainPxe, E1000e, Near, Script),
            row(BiosPlainPxe, E1000, Near, Script),
        ],
        |_| (),
    );
}

#[test]
fn reserved_uefi() {
    Matrix::new("boot-reserved-uefi", RESERVED).boot(
        &[
            row(UefiPxe4, Virtio, Near, Agent),
            row(UefiHttp4, Virtio, Near, Agent),
            row(UefiIpxeRom, Virtio, Near, Agent),
            row(UefiIpxeRom, E1000e, Near, Agent),
            row(UefiIpxeRom, E1000, Near, Agent),
            row(UefiIpxeRom, Rtl8139, Near, Files),
            row(UefiIpxeRom, Vmxnet3, Near, Files),
        ],
        |_| (),
    );
}

#[test]
fn reserved_behind_a_relay() {
    Matrix::new("boot-relay", RESERVED).boot(
        &[
            row(BiosIpxeRom, E1000e, Far, Agent),
            row(BiosPlainPxe, Virtio, Far, Script),
            row(UefiPxe4, Virtio, Far, Agent),
            row(UefiHttp4, Virtio, Far, Agent),
        ],
        |lab| Relay::start(&lab.rack).unwrap(),
    );
}
