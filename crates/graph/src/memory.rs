//! How much memory there is for this process, and what it gives back.
#![allow(unsafe_code)]

mod left;
#[cfg(unix)]
pub(crate) mod shrunk;

pub use left::{Left, left};

/// The bytes that this process may still ask for before the system ends it or refuses: the less of what all that share
/// the machine may, and what it may itself ([`left`]).
///
/// None where the system does not say, which is everywhere but on Linux: then nothing can be refused beforehand. What
/// others take meanwhile is not in it, so it is a bound for what can work, never a promise.
///
/// ```
/// if let Some(bytes) = laconic_graph::memory::available() {
///     assert!(bytes > 1 << 20, "a test that runs has a MiB");
/// }
/// ```
#[must_use]
pub fn available() -> Option<u64> {
    left().into_iter().flatten().map(|left| left.bytes).min()
}

/// Gives memory back to the system that is free but still held. An allocator keeps what was freed for what comes next,
/// in pieces; where rows of quite another size come next they stand beside the pieces. Takes a millisecond or a few.
/// Does nothing where the allocator is not glibc's.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no preconditions; it takes the allocator's own locks and touches what is free alone.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Pieces of this size stand apart, in bytes: larger than what comes and goes with every batch, smaller than rows of
/// all nodes.
const APART: i32 = 16 << 20;

/// Lets large pieces of memory (16 MiB) come from the system one by one, for the rest of the process, so that each goes
/// back to it when it is freed. Left to itself an allocator puts ever larger pieces beside each other, and what is free
/// between them is held. Does nothing where the allocator is not glibc's.
pub fn keep_large_apart() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no preconditions; it takes the allocator's own locks and sets a number.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, APART);
    }
}

/// Lets all threads share one heap where this process may have only so much address space (`ulimit -v`, `-d`), for the
/// rest of it. Left to itself the allocator gives each thread that allocates first a heap of its own, which reserves 64
/// MiB of address space; what of that comes after a run was found to fit ends it. Does nothing where there is no such
/// limit, nor where the allocator is not glibc's.
pub fn share_heap_where_limited() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if left()[1].is_some() {
        // SAFETY: it has no preconditions; it takes the allocator's own locks and sets a number.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

/// So many bytes are asked for without looking whether they are there.
const SMALL: u64 = 64 << 20;

/// Refuses to take `bytes` more where there are fewer; the text says how many are needed and how many there are.
pub(crate) fn afford(bytes: u64) -> Result<(), String> {
    match if bytes > SMALL { available() } else { None } {
        Some(there) if bytes > there => {
            Err(format!("needs {} of memory, and there are {}", megabytes(bytes), megabytes(there)))
        }
        _ => Ok(()),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// Watches something grow whose size nobody knows beforehand.
pub(crate) struct Growth {
    seen: u64,
}

impl Growth {
    /// Nothing yet.
    pub(crate) fn new() -> Growth {
        Growth { seen: SMALL }
    }

    /// Refuses to let it grow beyond `bytes` where it could not be doubled.
    pub(crate) fn to(&mut self, bytes: u64) -> Result<(), String> {
        if bytes <= self.seen {
            return Ok(());
        }
        self.seen = bytes.saturating_mul(2);
        afford(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_not_there_is_refused_with_both_figures() {
        assert_eq!(afford(SMALL), Ok(()));
        let error = afford(1 << 60).unwrap_err();
        assert!(error.starts_with("needs 1152921504607 MB of memory, and there are "), "{error}");
        let mut growth = Growth::new();
        assert_eq!(growth.to(SMALL), Ok(()));
        assert!(growth.to(1 << 60).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_machine_has_memory_and_no_more_than_it_is_built_with() {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.strip_suffix("kB")).unwrap();
        let all = total.trim().parse::<u64>().unwrap() * 1024;
        assert!((1 << 20..=all).contains(&available().unwrap()));
    }
}
