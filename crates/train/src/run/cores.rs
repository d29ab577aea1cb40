//! How the processes on a machine share its cores: each has those that it may run on, and shares each with every other
//! process that may run on it, too. So where a launcher has bound them nothing is divided twice.

use std::fs::read_to_string;
use std::path::Path;

use super::launcher::Launcher;

/// A machine's cores beyond these are not told apart.
const CORES_MAX: usize = 1024;

/// Which cores a process may run on, a bit each; none where the system does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask([u8; CORES_MAX / 8]);

impl Mask {
    /// That of this process.
    pub fn of_this_process() -> Mask {
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        Mask::listed(list.unwrap_or_default())
    }

    /// All that the machine has running.
    pub fn of_machine() -> Mask {
        Mask::listed(&read_to_string("/sys/devices/system/cpu/online").unwrap_or_default())
    }

    /// A list as Linux writes it: `0-3,8`.
    fn listed(list: &str) -> Mask {
        let mut mask = [0; CORES_MAX / 8];
        for range in list.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) {
                (first..=last).take_while(|core| *core < CORES_MAX).for_each(|core| mask[core / 8] |= 1 << (core % 8));
            }
        }
        Mask(mask)
    }

    fn has(&self, core: usize) -> bool {
        self.0[core / 8] >> (core % 8) & 1 == 1
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    fn joined(self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }
}

/// How many bytes a process needs to say where it is.
pub const PLACE_BYTES: usize = 32 + CORES_MAX / 8;

/// Where a process is: on which machine, and on which of its cores.
///
/// MPI would say with which others it shares memory (`MPI_Comm_split_type`), at 17 latencies where it was measured;
/// that each says where it is takes two, in a message that opens the connections which all need anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    machine: [u8; 32],
    mask: Mask,
}

impl Place {
    /// That of this process. What counts as a machine is what has a name of its own: containers do.
    pub fn of_this_process() -> Place {
        let text = |name: &str| read_to_string(Path::new("/proc/sys/kernel").join(name)).unwrap_or_default();
        Place { machine: machine(&text("hostname"), &text("random/boot_id")), mask: Mask::of_this_process() }
    }

    /// To be told to others.
    pub fn to_bytes(self) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        bytes[..32].copy_from_slice(&self.machine);
        bytes[32..].copy_from_slice(&self.mask.0);
        bytes
    }

    /// Where those who have said this may run that are on the same machine.
    pub fn beside(&self, all: &[[u8; PLACE_BYTES]]) -> Vec<Mask> {
        let here = all.iter().filter(|place| place[..32] == self.machine);
        here.map(|place| Mask(std::array::from_fn(|at| place[32 + at]))).collect()
    }
}

/// A machine by its name and by when it was started: clones have one name, and a restarted one is the same no more.
fn machine(name: &str, boot: &str) -> [u8; 32] {
    blake3::hash(format!("{name}\n{boot}").as_bytes()).into()
}

/// What a process has of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How many compute threads are its own.
    pub threads: usize,
    /// How many cores there are for all of them.
    pub cores: usize,
    /// How many threads each could have, where the launcher has bound them to fewer.
    pub unbound: Option<usize>,
}

/// The share of the process with the first of these masks among all that are on this machine, its own among them.
/// `most` is what the system lets it have at once, by its mask and by what its control group may use; `there` is how
/// many cores there are for all of them.
pub fn share(own: &Mask, all: &[Mask], most: usize, there: usize) -> Share {
    let (here, allowed) = (all.len().max(1), own.count());
    if allowed == 0 {
        return Share { threads: (most / here).max(1), cores: most, unbound: None };
    }
    let with = |core: usize| all.iter().filter(|other| other.has(core)).count().max(1);
    let of_mask: f64 = (0..CORES_MAX).filter(|core| own.has(*core)).map(|core| 1.0 / with(core) as f64).sum();
    // Sums of thirds are a little less than whole.
    let of_mask = (of_mask + 1e-6) as usize;
    // A limit of the control group is one for all processes in it.
    let of_group = if most < allowed { most / here } else { usize::MAX };
    let threads = of_mask.min(of_group).max(1);
    let reached = all.iter().fold(*own, Mask::joined).count();
    let cores = there.max(reached);
    let unbound = Some((cores / here).min(of_group)).filter(|each| reached < cores && *each > threads);
    Share { threads, cores, unbound }
}

/// What there is to say of the processes on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// How many processes the job has.
    pub all: usize,
    /// How many of them are on this machine.
    pub here: usize,
    /// What this one has of it.
    pub share: Share,
    /// The threads that the user has asked for; 0 where that is left to the program.
    pub asked: usize,
}

impl Found {
    /// In words, with what helps where cores lie idle.
    pub fn said(&self, launcher: &Launcher) -> String {
        let Found { all, here, share: Share { threads, cores, unbound }, asked } = *self;
        let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let each = match asked {
            0 => format!("{} each", plural(threads, "thread")),
            asked => format!("{} each (train.threads)", plural(asked, "thread")),
        };
        let mut text = format!("{here} of {all} processes are on this machine, of {}: {each}", plural(cores, "core"));
        if let Some(more) = unbound.filter(|_| asked == 0) {
            let how = match launcher.mpirun {
                true => "mpirun --bind-to none",
                false if launcher.scheduler == Some("Slurm") => "srun --cpu-bind=none, or more --cpus-per-task,",
                false => "a launcher that does not bind",
            };
            text += &format!("; the launcher has bound them to so few, {how} lets each have {more}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(lists: &[&str]) -> Vec<Mask> {
        lists.iter().map(|list| Mask::listed(list)).collect()
    }

    /// Threads of each process, one after the other, on a machine of so many cores.
    fn threads(lists: &[&str], there: usize) -> Vec<usize> {
        let all = masks(lists);
        all.iter().map(|own| share(own, &all, own.count(), there).threads).collect()
    }

    #[test]
    fn bound_processes_have_their_own_cores_and_unbound_ones_share_all() {
        assert_eq!(threads(&["0-15", "0-15"], 16), [8, 8]);
        assert_eq!(threads(&["0-7", "8-15"], 16), [8, 8]);
        assert_eq!(threads(&["0", "1"], 16), [1, 1]);
        assert_eq!(threads(&["0-15"], 16), [16], "one a machine, however many there are in the job");
        assert_eq!(threads(&["0-1", "0-1", "0-1", "0-1"], 2), [1, 1, 1, 1]);
        assert_eq!(threads(&["0-8", "0-8", "0-8"], 9), [3, 3, 3], "thirds are added up");
        // Two to a socket, and one that may run everywhere.
        assert_eq!(threads(&["0-3", "0-3", "0-7"], 8), [1, 1, 5]);
    }

    #[test]
    fn only_processes_of_the_same_machine_share_its_cores() {
        let at =
            |name: &str, boot: &str, cores: &str| Place { machine: machine(name, boot), mask: Mask::listed(cores) };
        let all = [at("a", "1", "0-3"), at("b", "1", "0-7"), at("a", "1", "4-5"), at("a", "2", "6")];
        let told: Vec<_> = all.iter().map(|place| place.to_bytes()).collect();
        assert_eq!(all[0].beside(&told), masks(&["0-3", "4-5"]));
        assert_eq!(all[1].beside(&told), masks(&["0-7"]), "containers have names of their own");
        assert_eq!(all[3].beside(&told), masks(&["6"]));
        let own = Place::of_this_process();
        assert_eq!(own.beside(&[own.to_bytes(), told[0]]), [Mask::of_this_process()]);
    }

    #[test]
    fn what_a_control_group_may_use_is_divided_among_all_in_it() {
        let all = masks(&["0-63", "0-63"]);
        assert_eq!(share(&all[0], &all, 8, 64), Share { threads: 4, cores: 64, unbound: None });
    }

    #[test]
    fn cores_that_nobody_may_use_are_noticed() {
        let of = |lists: &[&str], there| {
            let all = masks(lists);
            share(&all[0], &all, all[0].count(), there)
        };
        assert_eq!(of(&["0", "1"], 16), Share { threads: 1, cores: 16, unbound: Some(8) });
        assert_eq!(of(&["0", "1"], 2).unbound, None, "each has its half");
        assert_eq!(of(&["0-7", "8-15"], 16).unbound, None);
        assert_eq!(of(&["0", "1", "2"], 4).unbound, None, "a fourth core is too few for three");
    }

    #[test]
    fn what_was_found_is_said_with_the_remedy() {
        let said = |share, asked, variable: &str| {
            let launcher = Launcher::from(|name| (name == variable).then(|| "2".to_owned()));
            Found { all: 4, here: 2, share, asked }.said(&launcher)
        };
        let bound = Share { threads: 1, cores: 16, unbound: Some(8) };
        let start = "2 of 4 processes are on this machine, of 16 cores: 1 thread each";
        let open = said(bound, 0, "OMPI_COMM_WORLD_SIZE");
        assert!(open.starts_with(start) && open.contains("mpirun --bind-to none lets each have 8"), "{open}");
        let srun = said(bound, 0, "SLURM_JOB_ID");
        assert!(srun.contains("--cpus-per-task"), "{srun}");
        assert_eq!(said(Share { unbound: None, ..bound }, 0, ""), start);
        assert_eq!(said(bound, 3, ""), start.replace("1 thread each", "3 threads each (train.threads)"));
    }

    #[test]
    fn where_the_system_does_not_say_cores_are_divided_by_processes() {
        let none = Mask::listed("");
        assert_eq!(share(&none, &[none, none, none], 8, 0), Share { threads: 2, cores: 8, unbound: None });
        for list in ["x", "7-3", "-", "1024-4096", "99999999999999999999"] {
            assert_eq!(Mask::listed(list).count(), 0, "{list}");
        }
        assert_eq!(Mask::listed("0-3,8, 10-11\n").count(), 7);
        assert_eq!(Mask::listed("1000-9999").count(), 24);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_may_run_somewhere() {
        let own = Mask::of_this_process();
        assert!((1..=Mask::of_machine().count()).contains(&own.count()));
    }
}
