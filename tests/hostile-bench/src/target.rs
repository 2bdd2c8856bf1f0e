//! Resource use of the box's processes, as the kernel counts it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Memory limit of the box, in bytes.
const LIMIT: &str = "536870912";
const MIB: f64 = 1024.0 * 1024.0;

/// Processes of a box, in a control group of their own.
pub struct Target {
    group: PathBuf,
}

impl Target {
    /// Moves process 1 of a box, and all its descendants, into a group with the limit.
    ///
    /// # Errors
    /// This process lacks the required rights.
    pub fn new(process_1: u32) -> Result<Self> {
        let (old, new) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
        let (root, file) = match old.is_dir() {
            true => (old, "memory.limit_in_bytes"),
            false => (new, "memory.max"),
        };
        let group = root.join(format!("tinbox-hostile-{process_1}"));
        fs::create_dir(&group).with_context(|| format!("cannot make {}", group.display()))?;
        let target = Self { group };
        target.set(file, LIMIT)?;
        // Processes that a moved process starts later are in its group.
        let mut processes = vec![process_1];
        while let Some(process) = processes.pop() {
            target.set("cgroup.procs", &process.to_string())?;
            processes.extend(children(process));
        }
        ensure!(target.resident()? > 0.0, "no process of the box runs");
        Ok(target)
    }

    fn set(&self, file: &str, text: &str) -> Result<()> {
        let path = self.group.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn processes(&self) -> Result<Vec<u32>> {
        let path = self.group.join("cgroup.procs");
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    fn memory(&self, what: &str) -> Result<f64> {
        let of = |process: u32| {
            // A process that has ended has no value.
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix(what));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            number.unwrap_or(0.0) * 1024.0 / MIB
        };
        Ok(self.processes()?.into_iter().map(of).sum())
    }

    /// Resident memory of all processes together, in MiB.
    ///
    /// # Errors
    /// The group does not exist.
    pub fn resident(&self) -> Result<f64> {
        self.memory("VmRSS:")
    }

    /// Sum of each process' peak memory since [`Target::forget`], in MiB.
    ///
    /// # Errors
    /// The group does not exist.
    pub fn peak(&self) -> Result<f64> {
        self.memory("VmHWM:")
    }

    /// Resets the kernel's peak memory of each process.
    ///
    /// # Errors
    /// The kernel refuses the reset for a process.
    pub fn forget(&self) -> Result<()> {
        for process in self.processes()? {
            let path = format!("/proc/{process}/clear_refs");
            fs::write(&path, "5").with_context(|| format!("cannot write {path}"))?;
        }
        Ok(())
    }

    /// Bytes that all processes have written to disks so far.
    ///
    /// # Errors
    /// The group does not exist.
    pub fn written(&self) -> Result<u64> {
        let of = |process: u32| {
            let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
            let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
            line.and_then(|line| line.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Ok(self.processes()?.into_iter().map(of).sum())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The processes leave the group, because a group with processes cannot be removed.
        let parent = self.group.parent().unwrap_or(&self.group).join("cgroup.procs");
        for process in self.processes().unwrap_or_default() {
            let _ = fs::write(&parent, process.to_string());
        }
        let _ = fs::remove_dir(&self.group);
    }
}

fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).ok();
    let lines: Vec<String> = tasks.filter_map(of).collect();
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}
