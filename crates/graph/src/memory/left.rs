//! What the system leaves to a process, and who says so.

use crate::limits::read_file;
use std::path::Path;

/// So many bytes are left, by this limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// How many bytes there are.
    pub bytes: u64,
    /// What sets the limit, as its user knows it; nothing where it is the machine itself.
    pub limit: &'static str,
}

/// What is left for all processes of this machine together that belong to one job, and for this one alone.
///
/// The first is the least of what the machine has, what each control group around the process (version 1 or 2) leaves
/// below its limit, and what Slurm gives the job on this machine, which no file says where Slurm counts by itself. The
/// second is what the process's own limits leave (`ulimit -v`, `ulimit -d`). Pages of files count as free, swap space
/// does not.
#[must_use]
pub fn left() -> [Option<Left>; 2] {
    left_below(Path::new("/"), |name| std::env::var(name).ok())
}

/// [`left`] on a system whose `proc` and `sys` are in `root`, with these variables.
fn left_below(root: &Path, variable: impl Fn(&str) -> Option<String>) -> [Option<Left>; 2] {
    let proc = root.join("proc");
    let of_machine = text(&proc.join("meminfo")).and_then(|meminfo| kibibytes(&meminfo, "MemAvailable:"));
    let machine = of_machine.map(|bytes| Left { bytes, limit: "" });
    let groups = of_groups(root).into_iter().map(|bytes| Left { bytes, limit: "a control group" });
    let all = machine.into_iter().chain(groups).chain(of_slurm(&proc, variable));
    [all.min_by_key(|left| left.bytes), of_process(&proc).into_iter().min_by_key(|left| left.bytes)]
}

/// What Slurm's own limit leaves beside what this process has.
fn of_slurm(proc: &Path, variable: impl Fn(&str) -> Option<String>) -> Option<Left> {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok().filter(|number| *number > 0);
    variable("SLURM_JOB_ID")?;
    // In MiB; 0 is all that the machine has.
    let by_core =
        || Some(("SLURM_MEM_PER_CPU", number("SLURM_MEM_PER_CPU")?.checked_mul(number("SLURM_CPUS_ON_NODE")?)?));
    let (limit, mebibytes) = number("SLURM_MEM_PER_NODE").map(|all| ("SLURM_MEM_PER_NODE", all)).or_else(by_core)?;
    let used = text(&proc.join("self/status")).and_then(|status| kibibytes(&status, "VmRSS:")).unwrap_or(0);
    Some(Left { bytes: mebibytes.checked_mul(1 << 20)?.saturating_sub(used), limit })
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
fn of_process(proc: &Path) -> Vec<Left> {
    let limits = text(&proc.join("self/limits")).unwrap_or_default();
    let used = text(&proc.join("self/status")).unwrap_or_default();
    let left = |(name, size, limit): (&str, &str, &'static str)| {
        let most: u64 = field(&limits, name)?.split_whitespace().next()?.parse().ok()?;
        Some(Left { bytes: most.saturating_sub(kibibytes(&used, size)?), limit })
    };
    let own = [("Max address space", "VmSize:", "ulimit -v"), ("Max data size", "VmData:", "ulimit -d")];
    own.into_iter().filter_map(left).collect()
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
        let [all, own] = left_below(root.path(), |_| None);
        all.into_iter().chain(own).map(|left| left.bytes).min()
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
    fn what_slurm_gives_a_job_counts_where_no_file_says_it() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::write(root.path().join("proc/meminfo"), "MemAvailable: 8000000 kB\n").unwrap();
        fs::write(root.path().join("proc/self/status"), "VmRSS:\t    1024 kB\n").unwrap();
        let of = |variables: &[(&str, &str)]| {
            let of =
                |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string());
            left_below(root.path(), of)[0].unwrap()
        };
        let (job, machine) = (("SLURM_JOB_ID", "7"), Left { bytes: 8_192_000_000, limit: "" });
        let node = ("SLURM_MEM_PER_NODE", "150");
        assert_eq!(of(&[job, node]), Left { bytes: 149 << 20, limit: "SLURM_MEM_PER_NODE" });
        let core = [job, ("SLURM_MEM_PER_CPU", "100"), ("SLURM_CPUS_ON_NODE", "4")];
        assert_eq!(of(&core), Left { bytes: 399 << 20, limit: "SLURM_MEM_PER_CPU" });
        for none in [&[node][..], &[job, ("SLURM_MEM_PER_NODE", "0")], &core[..2], &[job, ("SLURM_MEM_PER_NODE", "x")]]
        {
            assert_eq!(of(none), machine, "{none:?}");
        }
    }

    #[test]
    fn the_limit_of_a_process_is_its_own_and_not_that_of_all() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        for (name, content) in
            [("meminfo", MEMINFO), ("self/limits", &LIMITS.replace("SOFT", "500000")), ("self/status", STATUS)]
        {
            fs::write(root.path().join("proc").join(name), content).unwrap();
        }
        let [all, own] = left_below(root.path(), |_| None);
        assert_eq!(all, Some(Left { bytes: 800 * 1024, limit: "" }));
        assert_eq!(own, Some(Left { bytes: 500_000 - 300 * 1024, limit: "ulimit -v" }));
    }
}
