//! Whose children are whose: process 1 collects orphans, and must leave to an action the programs
//! that it runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{WaitOptions, wait};

/// Actions that wait for programs of their own.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// While one is held, nobody else collects this process's children.
#[derive(Debug)]
pub struct Ours(());

impl Ours {
    /// Before the first program is started.
    pub fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
        // The orphans of meanwhile; only process 1 has any.
        if std::process::id() == 1 {
            collect();
        }
    }
}

/// Collect every child that has ended, unless an action waits for its own.
pub fn collect() {
    while WAITING.load(Ordering::SeqCst) == 0 {
        if !matches!(wait(WaitOptions::NOHANG), Ok(Some(_))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::{Ours, collect};

    #[test]
    fn an_action_gets_the_status_of_its_program() {
        let ours = Ours::begin();
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).unwrap();
        collect();
        assert_eq!(child.wait().unwrap().code(), Some(7));
        drop(ours);
    }
}
