//! Whose children are whose: process 1 collects orphans, and must leave to an action the programs
//! that it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{WaitOptions, wait};

/// Actions that wait for programs of their own. It is locked while a child is collected: an action
/// that begins then must not lose the first of its programs.
static WAITING: Mutex<usize> = Mutex::new(0);

fn waiting() -> MutexGuard<'static, usize> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While one is held, nobody else collects this process's children.
#[derive(Debug)]
pub struct Ours(());

impl Ours {
    /// Before the first program is started.
    pub fn begin() -> Self {
        *waiting() += 1;
        Self(())
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        *waiting() -= 1;
        // The orphans of meanwhile; only process 1 has any.
        if std::process::id() == 1 {
            collect();
        }
    }
}

/// Collect every child that has ended, unless an action waits for its own.
pub fn collect() {
    collect_by(|| matches!(wait(WaitOptions::NOHANG), Ok(Some(_))));
}

/// The same; `one` collects a child, and is false where none has ended. It must not wait.
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

    use super::{Ours, collect, collect_by};

    #[test]
    fn no_action_begins_while_a_child_is_collected() {
        let (begun, begins) = sync_channel(1);
        let mut thread = None;
        collect_by(|| {
            let begun = begun.clone();
            thread = Some(std::thread::spawn(move || {
                let ours = Ours::begin();
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
