//! The box's TFTP service with simulated socket and disk, in place of `tftp::serve`.

use std::net::SocketAddr;
use std::sync::Arc;

use netboot::tftp::transfers::Output;
use netboot::{FetchEvent, Outcome, loader};

use super::{Appliance, Errand};
use crate::clock::{MILLI, Moment};

impl Appliance {
    /// Handles a datagram at port 69.
    pub fn transfer(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        now: Moment,
        errands: &mut Vec<Errand>,
    ) {
        let instant = self.clock.instant(now);
        if let Some(running) = &mut self.running {
            running.transfers.datagram(from, bytes, instant);
        }
        self.run_errands(now, errands);
    }

    /// Handles transfers whose timer may be due.
    pub fn transfer_timer(&mut self, now: Moment, errands: &mut Vec<Errand>) {
        let instant = self.clock.instant(now);
        if let Some(running) = &mut self.running {
            running.transfer_timer = None;
            running.transfers.timer(instant);
        }
        self.run_errands(now, errands);
    }

    /// Handles the result of a file request to the disk.
    pub fn load(
        &mut self,
        peer: SocketAddr,
        ticket: u64,
        file: &str,
        now: Moment,
        errands: &mut Vec<Errand>,
    ) {
        let instant = self.clock.instant(now);
        if let Some(running) = &mut self.running {
            let content = match loader::BootFile::read(file) {
                Some(loader::BootFile::File(_)) => Ok(Arc::clone(&self.loader).into()),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            };
            running.transfers.loaded(peer, ticket, content, instant);
        }
        self.run_errands(now, errands);
    }

    fn run_errands(&mut self, now: Moment, errands: &mut Vec<Errand>) {
        let Some(running) = &mut self.running else { return };
        while let Some(output) = running.transfers.output() {
            match output {
                Output::Packet { to, bytes } => errands.push(Errand::Tftp { to, bytes }),
                Output::Blocks { to, content, blksize, blocks } => {
                    let (whole, size) = (u64::from(blksize), content.size() as u64);
                    errands.extend(blocks.map(|number| {
                        let at = (number - 1) * whole;
                        Errand::Block { to, number, at, length: whole.min(size - at) }
                    }));
                }
                Output::Load { peer, ticket, file } => {
                    errands.push(Errand::Load { peer, ticket, file });
                }
                Output::Ended(FetchEvent::Tftp {
                    outcome: Outcome::Completed, peer, file, ..
                }) => errands.push(Errand::Loaded { peer, file }),
                Output::Ended(_) => {}
            }
        }
        self.peaks.transfers = self.peaks.transfers.max(running.transfers.count());
        if let Some(due) = running.transfers.due() {
            let due = self.clock.moment(due).max(now + MILLI);
            if running.transfer_timer.is_none_or(|set| due < set) {
                running.transfer_timer = Some(due);
                errands.push(Errand::TransferTimer(due));
            }
        }
    }
}
