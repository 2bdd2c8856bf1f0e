//! Reaping of child processes. Process 1 reaps orphans, but must leave programs of an action to the
//! action, which needs their exit status.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{WaitOptions, wait};

/// Number of existing [`ChildGuard`]s. Locked during the reaping of a child, so that no guard can
/// begin meanwhile and lose its first program.
static WAITING: Mutex<usize> = Mutex::new(0);

fn waiting() -> MutexGuard<'static, usize> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard that disables [`collect`] until its drop.
#[derive(Debug)]
pub struct ChildGuard(());

impl ChildGuard {
    /// Creates a guard. Must be called before the action starts its first program.
    pub fn begin() -> Self {
        *waiting() += 1;
        Self(())
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        *waiting() -= 1;
        // Orphans that ended while the guard existed. Only process 1 has orphans.
        if std::process::id() == 1 {
            collect();
        }
    }
}

/// Reaps all ended children. No effect while a [`ChildGuard`] exists.
pub fn collect() {
    collect_by(|| matches!(wait(WaitOptions::NOHANG), Ok(Some(_))));
}

/// Calls `one` repeatedly, until `one` returns false or a [`ChildGuard`] exists. `one` reaps one
/// child without blocking, and returns false if no child has ended.
fn collect_by(mut one: impl FnMut() -> bool) {
    loop {
        let waiting = waiting();
        if *waiting > 0 || !one() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use super::{ChildGuard, collect, collect_by};

    #[test]
    fn no_action_begins_while_a_child_is_collected() {
        let (begun, begins) = sync_channel(1);
        let mut thread = None;
        collect_by(|| {
            let begun = begun.clone();
            thread = Some(std::thread::spawn(move || {
                let ours = ChildGuard::begin();
                begun.send(()).unwrap();
                drop(ours);
            }));
            let waits = begins.recv_timeout(Duration::from_millis(200));
            assert!(waits.is_err(), "its program would be collected");
            false
        });
        begins.recv().unwrap();
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn an_action_gets_the_status_of_its_program() {
        let ours = ChildGuard::begin();
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).unwrap();
        collect();
        assert_eq!(child.wait().unwrap().code(), Some(7));
        drop(ours);
    }
}
