//! How much memory there is for this process, and what it gives back.
#![allow(unsafe_code)]

pub(crate) mod arrays;
mod lines;
mod places;
#[cfg(unix)]
mod shrunk;
mod watched;

use crate::limits::read_file;
use std::path::Path;

pub use lines::Lines;
pub use watched::changed_file;

/// The bytes that this process may still ask for before the system ends it or refuses: the least of what the machine
/// has left, what each control group around the process (version 1 or 2) leaves below its limit, and what the
/// process's own limits leave (`ulimit -v`, `ulimit -d`). Pages of files count as free, swap space does not.
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
    available_below(Path::new("/"))
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

/// Whether these values are a map of a file, of which memory holds no more than what was looked at lately.
pub fn is_in_file<T>(values: &[T]) -> bool {
    arrays::is_map(values.as_ptr().cast())
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

/// [`available`] on a system whose `proc` and `sys` are in `root`.
fn available_below(root: &Path) -> Option<u64> {
    let proc = root.join("proc");
    let of_machine = text(&proc.join("meminfo")).and_then(|meminfo| kibibytes(&meminfo, "MemAvailable:"));
    of_machine.into_iter().chain(of_groups(root)).chain(of_process(&proc)).min()
}

/// What each memory control group that holds the process has left.
fn of_groups(root: &Path) -> Vec<u64> {
    let mounted = root.join("sys/fs/cgroup");
    let groups = text(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mut left = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let version_2 = controllers.is_empty();
        if !version_2 && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        let hierarchy = match version_2 {
            true if mounted.join("unified").is_dir() => mounted.join("unified"),
            true => mounted.clone(),
            false => mounted.join("memory"),
        };
        // A container often sees its own group as the root of the hierarchy, and its name as the machine has it; then
        // only the root is there.
        let group = hierarchy.join(group.trim_start_matches('/'));
        let around = group.ancestors().take_while(|folder| folder.starts_with(&hierarchy));
        left.extend(around.filter_map(|folder| of_group(folder, version_2)));
    }
    left
}

/// What the control group in `folder` has left; none if it has no limit.
fn of_group(folder: &Path, version_2: bool) -> Option<u64> {
    let (limit, used, prefix) = match version_2 {
        true => ("memory.max", "memory.current", ""),
        false => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    };
    let number = |name: &str| text(&folder.join(name))?.trim().parse::<u64>().ok();
    let limit = number(limit)?;
    let used = number(used)?;
    // Pages of files are given back before anybody is refused.
    let figures = text(&folder.join("memory.stat")).unwrap_or_default();
    let figure = |name: &str| field(&figures, &format!("{prefix}{name} "))?.parse::<u64>().ok();
    let files: u64 = ["inactive_file", "active_file"].into_iter().filter_map(figure).sum();
    Some(limit.saturating_sub(used.saturating_sub(files)))
}

/// What the process's own limits leave.
fn of_process(proc: &Path) -> Vec<u64> {
    let limits = text(&proc.join("self/limits")).unwrap_or_default();
    let used = text(&proc.join("self/status")).unwrap_or_default();
    let left = |(limit, size): (&str, &str)| {
        let limit: u64 = field(&limits, limit)?.split_whitespace().next()?.parse().ok()?;
        Some(limit.saturating_sub(kibibytes(&used, size)?))
    };
    [("Max address space", "VmSize:"), ("Max data size", "VmData:")].into_iter().filter_map(left).collect()
}

/// The rest of the first line that begins with `name`.
fn field<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
    lines.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The bytes in a line `name 1234 kB`.
fn kibibytes(lines: &str, name: &str) -> Option<u64> {
    let number: u64 = field(lines, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(read_file(path, 1 << 20).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MEMINFO: &str = "MemTotal:  1000 kB\nMemFree:   10 kB\nMemAvailable:     800 kB\nSwapFree:  5000 kB\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
                          Max data size             unlimited            unlimited            bytes     \n\
                          Max address space         SOFT                 unlimited            bytes     \n";
    const STATUS: &str = "Name:\tlaconic\nVmPeak:\t     900 kB\nVmSize:\t     300 kB\nVmData:\t     200 kB\n";

    /// What is available where these files, and no others, are in `proc` and `sys`.
    fn with(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        available_below(root.path())
    }

    #[test]
    fn a_machine_without_limits_has_what_the_kernel_calls_available() {
        assert_eq!(with(&[("proc/meminfo", MEMINFO)]), Some(800 * 1024));
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("proc/meminfo", "MemAvailable: many kB\n")]), None);
    }

    #[test]
    fn the_tightest_group_around_the_process_counts_without_its_pages_of_files() {
        let unified = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "0::/a.slice/b.scope\n"),
            ("sys/fs/cgroup/a.slice/memory.max", "300000\n"),
            ("sys/fs/cgroup/a.slice/memory.current", "200000\n"),
            ("sys/fs/cgroup/a.slice/memory.stat", "anon 1\ninactive_file 30000\nactive_file 20000\n"),
            ("sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n"),
            ("sys/fs/cgroup/a.slice/b.scope/memory.current", "200000\n"),
        ];
        assert_eq!(with(&unified), Some(150_000));
        let first = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/jobs/7\n0::/\n"),
            ("sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "400000\n"),
            ("sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes", "150000\n"),
            ("sys/fs/cgroup/memory/jobs/7/memory.stat", "inactive_file 1\ntotal_inactive_file 50000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "150000\n"),
            ("sys/fs/cgroup/unified/cgroup.procs", "1\n"),
        ];
        assert_eq!(with(&first), Some(300_000));
    }

    #[test]
    fn a_container_whose_group_is_the_root_of_what_it_sees_is_held_to_it() {
        let seen = [
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "4:memory:/docker/0123\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n"),
        ];
        assert_eq!(with(&seen), Some(0));
    }

    #[test]
    fn the_limits_of_the_process_count_without_what_it_has() {
        let limits = |soft: &str| LIMITS.replace("SOFT", soft);
        let files = |limits: &str| {
            with(&[("proc/meminfo", MEMINFO), ("proc/self/limits", limits), ("proc/self/status", STATUS)])
        };
        assert_eq!(files(&limits("500000")), Some(500_000 - 300 * 1024));
        assert_eq!(files(&limits("unlimited")), Some(800 * 1024));
    }

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
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
        let all = kibibytes(&meminfo, "MemTotal:").unwrap();
        assert!((1 << 20..=all).contains(&available().unwrap()));
    }
}
