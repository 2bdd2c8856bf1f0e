//! Keeping the heap small: the box has a gigabyte for everything.

/// Arenas of the allocator: one for each thread that serves. More hold memory that others lack.
const ARENAS: i32 = 2;
/// Free bytes at the end of an arena that are kept, and not given back to the system.
const KEPT_BYTES: i32 = 128 * 1024;

/// Bounds what the allocator keeps. To be called first of all.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn bound() {
    // SAFETY: mallopt(3) takes two integers and changes nothing but the allocator's settings; no
    // other thread runs yet that could use it meanwhile.
    let set = unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS) & libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES)
    };
    if set == 0 {
        eprintln!("warning: the allocator takes no bounds; tinboxd will use more memory");
    }
}

/// Gives back to the system what a start needed once.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub fn trim() {
    // SAFETY: malloc_trim(3) moves nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn trim() {}

/// Other allocators have no such settings.
#[cfg(not(target_env = "gnu"))]
pub fn bound() {}
