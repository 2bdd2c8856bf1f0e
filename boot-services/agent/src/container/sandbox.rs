//! File system and mount namespace of one container. The file system is a tmpfs in the mount
//! namespace of a separate thread. When the sandbox ends, the thread kills all processes in the
//! namespace and unmounts the tmpfs, which frees the memory.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use imaging::sys::own_mounts;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::oneshot;

use crate::Error;

/// Capacity of the queue to the thread. One is enough, because callers wait for each order's end.
const ORDERS: usize = 1;
/// Mount point of the tmpfs, visible only in the container's mount namespace.
const PLACE: &str = "/run/tinbox-agent/container";
/// Percentage of the available memory that image and written files of a container may use.
const SHARE_PERCENT: u64 = 60;
/// Bytes of capacity per inode, because the smallest file takes one page.
const BYTES_PER_FILE: u64 = 4096;
/// Maximum number of checks for remaining processes, and the delay between two checks. A killed
/// process may remain for a moment, inside a system call.
const LOOKS: u32 = 500;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

type Order = Box<dyn FnOnce(&File) + Send>;

/// File system and mount namespace of a container.
pub(super) struct Sandbox {
    orders: mpsc::SyncSender<Order>,
    root: Arc<File>,
    thread: JoinHandle<()>,
    /// Capacity of the file system in bytes.
    pub(super) bytes: u64,
}

impl Sandbox {
    /// Creates an empty sandbox with a capacity of [`SHARE_PERCENT`] of the available memory.
    pub(super) async fn open() -> Result<Self, Error> {
        let meminfo = std::fs::read_to_string("/proc/meminfo");
        let meminfo = meminfo.map_err(Error::io("read /proc/meminfo"))?;
        Self::of(share(&meminfo)).await
    }

    /// Creates an empty sandbox with a capacity of `bytes`.
    pub(super) async fn of(bytes: u64) -> Result<Self, Error> {
        std::fs::create_dir_all(PLACE).map_err(Error::io(format!("create {PLACE}")))?;
        let (orders, inbox) = mpsc::sync_channel::<Order>(ORDERS);
        let (tell, opened) = oneshot::channel();
        let live = move || match mount(bytes) {
            Ok(root) => {
                let root = Arc::new(root);
                let _ = tell.send(Ok(root.clone()));
                while let Ok(order) = inbox.recv() {
                    order(&root);
                }
                end_all_processes();
                let _ = rustix::mount::unmount(path_of(&root), UnmountFlags::DETACH);
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        };
        let thread = std::thread::Builder::new().name("container".to_owned()).spawn(live);
        let thread = thread.map_err(Error::io("start the container's thread"))?;
        let root = opened.await.map_err(|_| gone())??;
        Ok(Self { orders, root, thread, bytes })
    }

    /// Returns the root folder of the file system.
    pub(super) fn root(&self) -> &Arc<File> {
        &self.root
    }

    /// Runs `work` on the container's thread, with the root of the file system.
    pub(super) async fn within<T: Send + 'static>(
        &self,
        work: impl FnOnce(&File) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, done) = oneshot::channel();
        let order: Order = Box::new(move |root| {
            let _ = tell.send(work(root));
        });
        self.orders.send(order).map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }

    /// Kills the container's processes, unmounts, and waits for the end. A drop does not wait.
    pub(super) async fn close(self) {
        let Self { orders, root, thread, .. } = self;
        drop((orders, root));
        // The caller that waited for the work has already received an error about a panic.
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

fn gone() -> Error {
    let reason = "it has ended".to_owned();
    imaging::Error::Crashed { part: "the container's thread", reason }.into()
}

/// Returns [`SHARE_PERCENT`] of MemAvailable in bytes; 0 if `meminfo` has no such line.
fn share(meminfo: &str) -> u64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024) / 100 * SHARE_PERCENT
}

/// Moves this thread to its own mount namespace, and mounts a tmpfs there. Returns its root.
fn mount(bytes: u64) -> Result<File, Error> {
    own_mounts().map_err(Error::io("make a mount namespace for the container"))?;
    let files = bytes / BYTES_PER_FILE;
    let options = format!("size={bytes},nr_inodes={files},mode=0755\0");
    let options = std::ffi::CStr::from_bytes_until_nul(options.as_bytes()).unwrap_or(c"");
    rustix::mount::mount("tmpfs", PLACE, "tmpfs", MountFlags::empty(), options)
        .map_err(Error::io("mount a filesystem in memory for the container"))?;
    File::open(PLACE).map_err(Error::io(format!("open {PLACE}")))
}

/// Returns the path in `/proc/self/fd`, which reaches the file even below another mount.
pub(super) fn path_of(file: &File) -> PathBuf {
    Path::new("/proc/self/fd").join(file.as_raw_fd().to_string())
}

/// Kills all processes in this thread's mount namespace. Needed without an own PID namespace, in
/// which all processes end with the first.
fn end_all_processes() {
    let Ok(own) = std::fs::read_link("/proc/thread-self/ns/mnt") else { return };
    for _ in 0..LOOKS {
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        let mut found = false;
        for process in processes.flatten() {
            let name = process.file_name();
            let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            let Some(pid) = pid else { continue };
            // A process that has ended has no namespace any more.
            if std::fs::read_link(process.path().join("ns/mnt")).is_ok_and(|its| its == own) {
                found = true;
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        if !found {
            return;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    tracing::warn!("processes of a container are still running");
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_container_gets_a_share_of_the_free_memory() {
        let meminfo = "MemTotal:  500000 kB\nMemAvailable:   400000 kB\nBuffers: 1 kB\n";
        assert_eq!(share(meminfo), 400_000 * 1024 / 100 * 60);
        assert_eq!(share("MemTotal: 1 kB\n"), 0);
        assert_eq!(share("MemAvailable: many kB\n"), 0);
    }
}
