//! The box's process, as its kernel sees it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Memory of the box.
const LIMIT: &str = "536870912";
const MIB: f64 = 1024.0 * 1024.0;

/// A running `tinboxd` in a control group of its own.
pub struct Target {
    process: u32,
    group: Option<PathBuf>,
}

impl Target {
    /// Gives the process its limit. Without the rights for it, says so and goes on.
    ///
    /// # Errors
    /// The process does not run.
    pub fn new(process: u32) -> Result<Self> {
        let group = limit(process);
        if let Err(error) = &group {
            println!("without a limit of memory: {error:#}");
        }
        let target = Self { process, group: group.ok() };
        target.resident()?;
        Ok(target)
    }

    fn file(&self, name: &str) -> Result<String> {
        let path = format!("/proc/{}/{name}", self.process);
        fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    }

    fn memory(&self, what: &str) -> Result<f64> {
        let status = self.file("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(what));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(number.with_context(|| format!("the process has no {what}"))? * 1024.0 / MIB)
    }

    /// Its memory, in MiB.
    ///
    /// # Errors
    /// It does not run.
    pub fn resident(&self) -> Result<f64> {
        self.memory("VmRSS:")
    }

    /// The most memory it had since [`Target::forget`], in MiB.
    ///
    /// # Errors
    /// It does not run.
    pub fn peak(&self) -> Result<f64> {
        self.memory("VmHWM:")
    }

    /// Lets the kernel forget the most memory it had.
    ///
    /// # Errors
    /// It does not run.
    pub fn forget(&self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.process);
        fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
    }

    /// Bytes that it had written to disks so far.
    ///
    /// # Errors
    /// It does not run.
    pub fn written(&self) -> Result<u64> {
        let io = self.file("io")?;
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        line.and_then(|line| line.trim().parse().ok()).context("the process has no write_bytes")
    }

    /// True if it runs.
    pub fn runs(&self) -> bool {
        self.file("status").is_ok_and(|status| !status.contains("State:\tZ"))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let Some(group) = &self.group else { return };
        // Out of it, since a group with a process cannot go.
        let parent = group.parent().unwrap_or(group).join("cgroup.procs");
        let _ = fs::write(parent, self.process.to_string());
        let _ = fs::remove_dir(group);
    }
}

fn limit(process: u32) -> Result<PathBuf> {
    let (old, new) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
    let (root, file) = match old.is_dir() {
        true => (old, "memory.limit_in_bytes"),
        false => (new, "memory.max"),
    };
    let group = root.join(format!("tinbox-hostile-{process}"));
    fs::create_dir(&group).with_context(|| format!("cannot make {}", group.display()))?;
    for (file, text) in [(file, LIMIT), ("cgroup.procs", &process.to_string())] {
        let path = group.join(file);
        if let Err(error) = fs::write(&path, text) {
            let _ = fs::remove_dir(&group);
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
    }
    Ok(group)
}
