//! Limits of the heap, because the box has only 1 GiB of memory.

#[cfg(target_env = "gnu")]
use std::time::Duration;

#[cfg(target_env = "gnu")]
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Number of arenas of the allocator: one per worker thread. More arenas would waste memory.
const ARENAS: i32 = 2;
/// Maximum free bytes at the end of an arena that are not returned to the system.
const KEPT_BYTES: i32 = 128 * 1024;

/// Interval between two checks of the allocator's free memory.
#[cfg(target_env = "gnu")]
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// Minimum of free bytes in all arenas together at which memory is returned to the system.
#[cfg(target_env = "gnu")]
const FREE_BYTES: usize = 8 * 1024 * 1024;

/// Limits the memory that the allocator keeps. Must be called before any thread starts.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn bound() {
    // SAFETY: mallopt(3) takes two integers and changes only the allocator's settings. No other
    // thread runs yet that could use them meanwhile.
    let set = unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS) & libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES)
    };
    if set == 0 {
        eprintln!("warning: cannot set limits of the allocator; tinboxd will use more memory");
    }
}

/// No effect, because other allocators have no such settings.
#[cfg(not(target_env = "gnu"))]
pub fn bound() {}

/// Returns free memory between used blocks to the system, at an interval, until `shutdown`.
#[cfg(target_env = "gnu")]
pub async fn trim(shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
        if free_bytes() < FREE_BYTES {
            continue;
        }
        // The call scans the whole heap, so it must not run on a worker thread.
        if let Err(error) = tokio::task::spawn_blocking(give_back).await {
            tracing::warn!(%error, "cannot return memory to the kernel");
        }
    }
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn free_bytes() -> usize {
    // SAFETY: mallinfo2(3) takes no argument, locks the data that it reads, and returns numbers by
    // value.
    unsafe { libc::mallinfo2() }.fordblks
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn give_back() {
    // SAFETY: malloc_trim(3) takes a number, and may be called by any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Waits for the shutdown, because other allocators return memory by themselves.
#[cfg(not(target_env = "gnu"))]
pub async fn trim(shutdown: CancellationToken) {
    shutdown.cancelled().await;
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::{FREE_BYTES, free_bytes, give_back};

    /// Bytes of one block: below the size for which the allocator uses a separate mmap(2).
    const BLOCK: usize = 16 * 1024;

    #[test]
    fn memory_that_lies_free_between_what_is_used_goes_back() {
        let resident = || {
            let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
            pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
        };
        let blocks: Vec<Vec<u8>> =
            (0..8 * FREE_BYTES / BLOCK).map(|at| vec![at as u8 | 1; BLOCK]).collect();
        // Every hundredth block stays, so that the heap cannot shrink at its end.
        let kept: Vec<Vec<u8>> = blocks
            .into_iter()
            .enumerate()
            .filter(|(at, _)| at % 100 == 99)
            .map(|it| it.1)
            .collect();
        assert!(free_bytes() > FREE_BYTES);
        let before = resident();
        give_back();
        let gone = before.saturating_sub(resident());
        assert!(gone > FREE_BYTES, "returned {gone} bytes");
        drop(kept);
    }
}
