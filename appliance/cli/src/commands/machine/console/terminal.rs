//! Keyboard of the terminal, byte by byte.

use std::io::{Read as _, stdin};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::error::Error;

/// Key that ends the command: Ctrl+], as in telnet(1) and `virsh console`.
const END: u8 = 0x1d;
/// Maximum bytes of one request to the box.
const KEYS_MAX: usize = 1024;
/// Maximum requests that wait for the box.
const QUEUE: usize = 16;

/// Input of the user.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// Bytes of the keys.
    Keys(Vec<u8>),
    /// The user ends the command.
    End,
}

/// Raw mode of the terminal; a drop restores the mode before.
pub struct RawMode(Termios);

impl RawMode {
    fn start() -> Result<Self, Error> {
        let unable = |why: rustix::io::Errno| Error::Output(why.into());
        let before = tcgetattr(stdin()).map_err(unable)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Flush, &raw).map_err(unable)?;
        Ok(Self(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // The process ends; a terminal that is gone needs no mode.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Reads the keyboard until the user ends the command. The thread lives as long as the process: a
/// read of a terminal cannot be cancelled.
pub fn keyboard() -> Result<(mpsc::Receiver<Typed>, RawMode), Error> {
    let raw = RawMode::start()?;
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut buffer = [0; KEYS_MAX];
        loop {
            let bytes = match stdin().read(&mut buffer) {
                Ok(length) if length > 0 => &buffer[..length],
                _ => &[END][..],
            };
            for typed in split(bytes) {
                let is_end = typed == Typed::End;
                if sender.blocking_send(typed).is_err() || is_end {
                    return;
                }
            }
        }
    });
    Ok((receiver, raw))
}

/// Returns the keys before the first [`END`], and the end.
fn split(bytes: &[u8]) -> Vec<Typed> {
    let end = bytes.iter().position(|byte| *byte == END);
    let keys = &bytes[..end.unwrap_or(bytes.len())];
    let keys = (!keys.is_empty()).then(|| Typed::Keys(keys.to_vec()));
    keys.into_iter().chain(end.map(|_| Typed::End)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Typed, split};

    #[test]
    fn the_end_key_and_what_follows_do_not_go_to_the_machine() {
        assert_eq!(split(b"ls\r"), [Typed::Keys(b"ls\r".to_vec())]);
        assert_eq!(split(b"\x03\x1d\x04"), [Typed::Keys(vec![3]), Typed::End]);
        assert_eq!(split(b"\x1d"), [Typed::End]);
        assert_eq!(split(b""), []);
    }
}
