//! Disks of the machine: selection by name or hint, protection of preserved disks, exclusive
//! opening with direct I/O, and ATA commands.

pub mod ata;
pub mod disk;
pub mod preserve;
pub mod select;
pub mod wait;
