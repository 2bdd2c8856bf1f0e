//! Machines for a box: the steps of a test are the same in QEMU and in a container.

use std::path::Path;

use qemu::{Board, Bus, Drive, Error, Nic, Rack, Segment, Serial};
use stdx::MacAddr;

use crate::contained::{Contained, Place};

/// A box that is on.
pub trait RunningBox {
    /// Serial console of the box.
    fn serial(&self) -> &Serial;

    /// Cuts the power.
    ///
    /// # Errors
    /// The machine fails.
    fn cut(self) -> Result<(), Error>;
}

/// A machine that can start a box from any disk.
pub trait Machine {
    /// The type of the machine while it is on.
    type Running: RunningBox;

    /// Switches on a box with this disk.
    ///
    /// # Errors
    /// The machine does not start.
    fn switch_on(&self, disk: &Path) -> Result<Self::Running, Error>;
}

/// A machine that QEMU emulates, on a rack's near cable.
#[derive(Debug)]
pub struct Emulated<'a> {
    /// Rack whose near cable the machine is connected to.
    pub rack: &'a Rack,
    /// Bus of the disk.
    pub bus: Bus,
    /// NIC model and its hardware address.
    pub nic: (Nic, MacAddr),
}

impl RunningBox for Board {
    fn serial(&self) -> &Serial {
        Self::serial(self)
    }

    fn cut(self) -> Result<(), Error> {
        drop(self);
        Ok(())
    }
}

impl Machine for Emulated<'_> {
    type Running = Board;

    fn switch_on(&self, disk: &Path) -> Result<Board, Error> {
        let (nic, mac) = self.nic;
        self.rack.add_board(&Drive::new(disk, self.bus), (Segment::Near, nic, mac))
    }
}

impl RunningBox for Contained {
    fn serial(&self) -> &Serial {
        Self::serial(self)
    }

    fn cut(self) -> Result<(), Error> {
        self.cut_power()
    }
}

impl Machine for Place {
    type Running = Contained;

    fn switch_on(&self, disk: &Path) -> Result<Contained, Error> {
        self.start(disk)
    }
}
