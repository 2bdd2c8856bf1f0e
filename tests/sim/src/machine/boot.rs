//! Boot after DHCP: loader, script, kernel, system.

use std::net::SocketAddrV4;

use crate::clock::{Moment, SECOND};
use crate::machine::{Act, Download, Fetch, Firmware, Machine, Phase, Stage, Turn, Wanted};

/// Time of iPXE's prompt (Ctrl-B).
const PROMPT: Moment = 2 * SECOND;
/// Timeout of an HTTP client for a silent server.
const HTTP_PATIENCE: Moment = 30 * SECOND;
/// Maximum retries of the kernel's download, as in the box's scripts.
const RETRIES: usize = 4;

impl Machine {
    /// Loads the boot file or the URL that DHCP named.
    pub(super) fn load(&mut self, file: String, turn: &mut Turn<'_>) {
        self.exchange += 1;
        self.tries = 0;
        if file.starts_with("http://") {
            let wanted = match (self.stage, self.firmware) {
                (Stage::Rom, Firmware::Edk2Http) => Wanted::Loader,
                _ => Wanted::Script,
            };
            self.loader.clone_from(&file);
            return self.get(wanted, file, turn);
        }
        self.loader.clone_from(&file);
        let (download, bytes) = Download::start(file, self.firmware, turn);
        self.send_tftp(download.port(), bytes, turn);
        turn.wake(download.patience());
        self.phase = Phase::Loading(download);
    }

    /// Handles a TFTP datagram for a port of the machine, except a block of a file: see
    /// [`Machine::block`].
    pub fn tftp(&mut self, port: u16, bytes: &[u8], turn: &mut Turn<'_>) {
        if let Phase::Loading(download) = &mut self.phase
            && download.port() == port
        {
            let step = download.packet(bytes, turn);
            self.follow(step, turn);
        }
    }

    /// Handles a block of a file, without its bytes: the block number in the packet, the offset in
    /// the file, and the length in bytes.
    pub fn block(&mut self, port: u16, number: u16, at: u64, length: u64, turn: &mut Turn<'_>) {
        if let Phase::Loading(download) = &mut self.phase
            && download.port() == port
        {
            let step = download.block(number, at, length);
            self.follow(step, turn);
        }
    }

    pub(super) fn load_again(&mut self, turn: &mut Turn<'_>) {
        if let Phase::Loading(download) = &mut self.phase {
            let step = download.timer();
            self.follow(step, turn);
        }
    }

    fn follow(&mut self, step: Step, turn: &mut Turn<'_>) {
        let Phase::Loading(download) = &self.phase else { return };
        let (port, patience) = (download.port(), download.patience());
        match step {
            Step::Wait => {}
            Step::Progress => turn.wake(patience),
            Step::Send(packets) => {
                for (port, bytes) in packets {
                    self.send_tftp(port, bytes, turn);
                }
                turn.wake(patience);
            }
            Step::Complete(bytes) => {
                self.send_tftp(port, bytes, turn);
                self.start_loader(turn);
            }
            Step::Failed => self.fail(turn),
        }
    }

    fn send_tftp(&self, port: u16, bytes: Vec<u8>, turn: &mut Turn<'_>) {
        if let Some(address) = self.address() {
            turn.acts.push(Act::Tftp { from: SocketAddrV4::new(address, port), bytes });
        }
    }

    /// Handles the result of an [`Act::Get`].
    pub fn fetched(&mut self, fetch: &Fetch, turn: &mut Turn<'_>) {
        let Phase::Fetching(wanted) = self.phase else { return };
        self.exchange += 1;
        match (wanted, fetch) {
            (Wanted::Kernel, Fetch::Failed) if self.tries < RETRIES => {
                self.tries += 1;
                let url = self.kernel.clone();
                self.get(Wanted::Kernel, url, turn);
            }
            (Wanted::Loader, Fetch::File) => self.start_loader(turn),
            (Wanted::Script, Fetch::Script(text)) => match kernel_of(text) {
                Some(url) => {
                    self.kernel.clone_from(&url);
                    self.tries = 0;
                    self.get(Wanted::Kernel, url, turn);
                }
                None => self.fail(turn),
            },
            (Wanted::Kernel, Fetch::File) => {
                self.leave(turn);
                self.stage = Stage::System;
                let after = turn.between(2 * SECOND, 6 * SECOND);
                self.rest(after, turn);
            }
            _ => self.fail(turn),
        }
    }

    fn get(&mut self, wanted: Wanted, url: String, turn: &mut Turn<'_>) {
        self.phase = Phase::Fetching(wanted);
        turn.acts.push(Act::Get { url });
        turn.wake(HTTP_PATIENCE);
    }

    fn start_loader(&mut self, turn: &mut Turn<'_>) {
        self.leave(turn);
        self.exchange += 1;
        self.stage = Stage::Ipxe;
        let name = self.loader.rsplit('/').next().unwrap_or_default();
        if self.hates.is_some_and(|hated| hated == name) {
            self.phase = Phase::Hung;
            let after = turn.between(60 * SECOND, 90 * SECOND);
            return turn.wake(after);
        }
        self.rest(PROMPT, turn);
    }
}

/// Effect of a datagram on a download.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Keep waiting; the timeout continues.
    Wait,
    /// New data arrived: the timeout starts again.
    Progress,
    /// Send these packets, each from its port; the timeout starts again.
    Send(Vec<(u16, Vec<u8>)>),
    /// Send this last acknowledgement: the file is complete.
    Complete(Vec<u8>),
    /// The server sent an error, or no answer after all tries.
    Failed,
}

/// The URL of the kernel that one of the box's scripts names.
fn kernel_of(script: &str) -> Option<String> {
    let lines = script.strip_prefix("#!ipxe")?.lines();
    let kernel = lines.filter_map(|line| line.strip_prefix("kernel ")).next()?;
    Some(kernel.split(' ').next()?.replace("${arch}", "x86_64"))
}
