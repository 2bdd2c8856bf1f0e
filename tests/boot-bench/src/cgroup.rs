//! CPU time of a server and all its child processes, in nanoseconds. `/proc` counts in hundredths
//! of a second, and omits children that were not waited for.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// Control group of one server; removed on drop. Drop the server first, because only an empty group
/// can be removed.
pub struct Cgroup {
    folder: PathBuf,
    /// True for cgroup version 1, whose file has nanoseconds.
    old: bool,
}

impl Cgroup {
    /// Creates an empty group.
    ///
    /// # Errors
    /// The machine has no cgroups, or this process is not root.
    pub fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tinbox-bench-{}-{number}", std::process::id());
        let old = Path::new("/sys/fs/cgroup/cpuacct");
        let new = Path::new("/sys/fs/cgroup");
        let (root, old) = if old.is_dir() { (old, true) } else { (new, false) };
        let folder = root.join(name);
        fs::create_dir(&folder)
            .with_context(|| format!("cannot create the cgroup {}", folder.display()))?;
        Ok(Self { folder, old })
    }

    /// Path of the file to which a process writes its ID to join the group.
    pub fn door(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// CPU time spent in the group so far.
    ///
    /// # Errors
    /// The kernel's file cannot be read.
    pub fn used(&self) -> Result<Duration> {
        let file = if self.old { "cpuacct.usage" } else { "cpu.stat" };
        let text = fs::read_to_string(self.folder.join(file)).context("cannot read CPU time")?;
        if self.old {
            return Ok(Duration::from_nanos(text.trim().parse()?));
        }
        match text.lines().find_map(|line| line.strip_prefix("usage_usec ")) {
            Some(number) => Ok(Duration::from_micros(number.parse()?)),
            None => bail!("cpu.stat has no usage_usec"),
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The group is busy until a killed process is gone; a remaining folder is empty and
        // harmless.
        let gone = || fs::remove_dir(&self.folder).is_ok();
        let _ = peers::poll("an empty cgroup", Duration::from_secs(2), gone);
    }
}
