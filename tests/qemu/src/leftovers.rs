//! Removal of a rack's resources after its end, by name and process ID. Only resources with a
//! rack's name are removed; [`sweep`] removes only racks whose harness has ended.
//!
//! A rack is called `tbPID` (the second of one process `tbPIDx1`, and so on). The rack owns the
//! namespaces `NAME-rack`, `NAME-box` and `NAME-host-…`, every process inside them, and
//! `WORK_ROOT/NAME`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use stdx::testing::PATIENCE;

use crate::namespace::{NETNS_DIR, Namespace};
use crate::proc::started;
use crate::{Error, children, poll};

/// Folder of the disks, sockets and BMC configurations of running racks. Not under `/tmp`, which
/// may be in RAM.
pub const WORK_ROOT: &str = "/var/tmp/tinbox-rack";
const OWNER_FILE: &str = "owner";

pub fn rack_namespace(name: &str) -> Namespace {
    Namespace::new(format!("{name}-rack"))
}

pub fn box_namespace(name: &str) -> Namespace {
    Namespace::new(format!("{name}-box"))
}

pub fn host_namespace(name: &str, host: &str) -> Namespace {
    Namespace::new(format!("{name}-host-{host}"))
}

pub fn work_dir(name: &str) -> PathBuf {
    PathBuf::from(WORK_ROOT).join(name)
}

/// Reserves a free name for this process and creates its work folder.
pub fn claim() -> Result<String, Error> {
    let pid = std::process::id();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(WORK_ROOT).map_err(Error::io(format!("create {WORK_ROOT}")))?;
    builder.recursive(false);
    for number in 0u32.. {
        let name = if number == 0 { format!("tb{pid}") } else { format!("tb{pid}x{number}") };
        let dir = work_dir(&name);
        match builder.create(&dir) {
            Ok(()) => {
                let owner = format!("{pid} {}", started(pid).unwrap_or_default());
                let path = dir.join(OWNER_FILE);
                fs::write(&path, owner).map_err(Error::path("write", &path))?;
                return Ok(name);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::path("create", &dir)(error)),
        }
    }
    Err(Error::Config("no free rack name is left".to_owned()))
}

/// Removes every rack whose harness has ended; returns the names of the removed racks.
///
/// # Errors
/// The first rack that could not be removed.
pub fn sweep() -> Result<Vec<String>, Error> {
    let mut names = BTreeSet::new();
    names.extend(entries(WORK_ROOT));
    for namespace in entries(NETNS_DIR) {
        names.extend(owner(&namespace).map(str::to_owned));
    }
    let stale: Vec<String> =
        names.into_iter().filter(|name| owner_pid(name).is_some() && !owned(name)).collect();
    for name in &stale {
        remove(name)?;
    }
    Ok(stale)
}

/// Kills the processes in the rack's namespaces, then deletes the namespaces and the work folder. A
/// second call, or a call for an incomplete rack, also succeeds.
///
/// # Errors
/// A process that survives, a namespace or folder that cannot be deleted.
pub fn remove(name: &str) -> Result<(), Error> {
    if owner_pid(name).is_none() {
        return Err(Error::Config(format!("`{name}` is not the name of a rack")));
    }
    let all = entries(NETNS_DIR).into_iter().filter(|entry| owner(entry) == Some(name));
    for namespace in all.map(Namespace::new) {
        kill_inside(&namespace)?;
        let mut command = Command::new("ip");
        command.args(["netns", "delete", namespace.name()]);
        match children::run(command, "") {
            // Another process removed the namespace at the same moment.
            Err(_) if !namespace.exists() => {}
            result => drop(result?),
        }
    }
    let dir = work_dir(name);
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::path("remove", &dir)(error))
        }
        _ => Ok(()),
    }
}

/// Name of the rack that owns namespace `name`; `None` when the namespace does not belong to a
/// rack.
fn owner(name: &str) -> Option<&str> {
    let (rack, role) = name.split_once('-')?;
    (matches!(role, "rack" | "box") || role.starts_with("host-")).then_some(rack)
}

fn kill_inside(namespace: &Namespace) -> Result<(), Error> {
    let what = format!("the processes in {} to end", namespace.name());
    poll(&what, PATIENCE, || {
        let pids = pids_inside(namespace);
        for pid in &pids {
            // A process that has ended meanwhile is not an error.
            let _ = kill_process(*pid, Signal::KILL);
        }
        pids.is_empty().then_some(())
    })
}

fn pids_inside(namespace: &Namespace) -> Vec<Pid> {
    let mut command = Command::new("ip");
    command.args(["netns", "pids", namespace.name()]);
    let listed = children::run(command, "").unwrap_or_default();
    let own = rustix::process::getpid();
    let pids = listed.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?));
    pids.filter(|pid| *pid != own).collect()
}

/// The process ID in a rack's name; `None` when the name is not a rack's.
fn owner_pid(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("tb")?;
    let (pid, number) = rest.split_once('x').unwrap_or((rest, "0"));
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

/// True while the process that created rack `name` runs. The stored start time detects a later
/// process with the same process ID.
fn owned(name: &str) -> bool {
    let Some(pid) = owner_pid(name) else { return true };
    let Some(now) = started(pid) else { return false };
    match fs::read_to_string(work_dir(name).join(OWNER_FILE)) {
        Ok(owner) => owner == format!("{pid} {now}"),
        Err(_) => true,
    }
}

fn entries(dir: &str) -> Vec<String> {
    let Ok(found) = fs::read_dir(dir) else { return Vec::new() };
    found.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_have_an_owner() {
        assert_eq!(owner_pid("tb42"), Some(42));
        assert_eq!(owner_pid("tb42x3"), Some(42));
        for foreign in ["tb", "tb-42", "tbx1", "tb42x", "rack", "box", "tb42-rack", "../etc"] {
            assert_eq!(owner_pid(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_namespace_tells_whose_it_is() {
        for name in ["tb42x3-rack", "tb42x3-box", "tb42x3-host-kea"] {
            assert_eq!(owner(name), Some("tb42x3"), "{name}");
        }
        for foreign in ["tb42x3", "tb42x3-", "tb42x3-kea", "tb42x3-racks"] {
            assert_eq!(owner(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_foreign_name_is_never_removed() {
        let error = remove("../var").expect_err("must refuse");
        assert_eq!(error.to_string(), "`../var` is not the name of a rack");
    }
}
