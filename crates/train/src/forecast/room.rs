//! Whether what workers need is there: for all processes of a machine, and for each by its own limit.

use laconic_graph::memory::Left;

use super::amounts::Memory;
use crate::error::{Result, TrainError};

/// The program, its libraries and the stacks of a few threads.
const PROGRAM: u64 = 32 << 20;

/// Refuses workers that need more memory than there is, unless they are `forced` to start; the text is a warning where
/// they come near it, or are. This process has so many workers, which need `memory`, and so has each of the others on
/// this machine: `alike` in all.
///
/// # Errors
/// If there is not enough; the text says what takes most, and what helps.
pub fn admit(memory: &Memory, (workers, alike): (usize, usize), forced: bool) -> Result<Option<String>> {
    judge(memory, (workers, alike), forced, laconic_graph::memory::left(), resident_bytes())
}

/// The same where so much is left for all, and for each by its own limit, and each has so much already.
fn judge(
    memory: &Memory,
    (workers, alike): (usize, usize),
    forced: bool,
    [all, own]: [Option<Left>; 2],
    resident: u64,
) -> Result<Option<String>> {
    // What is here already, such as parts that were read, is needed but no longer available.
    let of = |left: Option<Left>, processes: usize| {
        let Left { bytes, limit } = left?;
        let needed = memory.times(processes as u64).total().saturating_add(PROGRAM * processes as u64);
        let room = bytes.saturating_add(resident * processes as u64);
        (needed > room / 5 * 4).then_some((needed, room, processes, limit))
    };
    let scarce = [of(all, alike), of(own, 1)].into_iter().flatten();
    let scarcest = scarce.max_by(|a, b| (a.0 as f64 / a.1 as f64).total_cmp(&(b.0 as f64 / b.1 as f64)));
    let Some((needed, room, processes, limit)) = scarcest else { return Ok(None) };
    let (largest, workers) = (memory.times(processes as u64), workers * processes);
    let named = |(name, bytes): &(&str, u64)| format!("{name} {}", gigabytes(*bytes));
    let largest: Vec<String> = largest.items().iter().take(5).filter(|(_, bytes)| *bytes > 0).map(named).collect();
    let who = if workers == 1 { "a worker needs".to_owned() } else { format!("{workers} workers need") };
    let what = format!(
        "{who} about {} of memory {}, and there are {}{}: {}",
        gigabytes(needed),
        if limit.starts_with("ulimit") { "in one process" } else { "on this machine" },
        gigabytes(room),
        if limit.is_empty() { String::new() } else { format!(" ({limit})") },
        largest.join(", ")
    );
    if forced || needed <= room {
        return Ok(Some(what));
    }
    let help = "a smaller model.hidden or model.layers, a schedule that trains one layer at a time, or parts on \
                several machines (transport.kind = \"mpi\") need less; --force starts all the same";
    Err(TrainError::config(format!("{what}; {help}")))
}

pub(crate) fn gigabytes(bytes: u64) -> String {
    if bytes < 10_000_000 { format!("{:.2} MB", bytes as f64 / 1e6) } else { format!("{:.2} GB", bytes as f64 / 1e9) }
}

/// The largest resident size of this process so far, in bytes; 0 where the system does not tell.
pub fn peak_bytes() -> u64 {
    of_status("VmHWM:")
}

/// What this process has in memory now that is of no file, in bytes; 0 where the system does not tell. Pages of the
/// program and of its libraries are none of its data: an MPI library has as many as a small graph.
fn resident_bytes() -> u64 {
    of_status("RssAnon:")
}

fn of_status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_hardly_fits_is_warned_about() {
        let mut memory = Memory::default();
        memory.add("graph", 1_000_000_000);
        memory.add("activations", 6_000_000_000);
        memory.add("activations", 2_000_000_000);
        let needed = memory.total() + PROGRAM;
        assert_eq!(needed, 9_000_000_000 + PROGRAM);
        let left = |share: f64| Some(Left { bytes: (needed as f64 * share) as u64, limit: "" });
        let at = |share: f64, forced| judge(&memory, (3, 1), forced, [left(share), None], 0);
        let unknown = judge(&memory, (3, 1), false, [None, None], 0);
        assert_eq!((at(1.3, false).expect("fits"), unknown.expect("nobody knows")), (None, None));
        let warning = at(1.1, false).expect("fits").expect("a warning");
        let error = at(0.5, false).expect_err("does not fit");
        assert_eq!(error.exit_code(), 2);
        for text in [&warning, &error.to_string()] {
            for words in ["3 workers", "9.03 GB", "activations 8.00 GB, graph 1.00 GB"] {
                assert!(text.contains(words), "{words}: {text}");
            }
        }
        assert!(error.to_string().contains("--force") && error.to_string().contains("model.hidden"));
        assert!(at(0.5, true).expect("forced").expect("a warning").contains("9.03 GB"));
    }
    #[test]
    fn a_limit_of_each_process_holds_for_each_and_one_of_the_machine_for_all() {
        let mut memory = Memory::default();
        memory.add("graph", 100_000_000);
        let one = memory.total() + PROGRAM;
        let left = |bytes, limit| Some(Left { bytes, limit });
        let judged = |all, own| judge(&memory, (1, 4), false, [all, own], 0);
        let (enough, each) = (left(10 * one, ""), left(one + one / 2, "ulimit -v"));
        assert_eq!(judged(enough, each).expect("fits"), None, "four that need a limit of one each have four");
        let said = judged(left(3 * one, "SLURM_MEM_PER_NODE"), each).expect_err("too little for four").to_string();
        assert!(said.contains("4 workers need") && said.contains("(SLURM_MEM_PER_NODE)"), "{said}");
        let said = judged(enough, left(one / 2, "ulimit -v")).expect_err("too little for one").to_string();
        assert!(
            said.contains("a worker needs") && said.contains("in one process") && said.contains("(ulimit -v)"),
            "{said}"
        );
    }
}
