//! What the environment of a process says of who has started it: how many belong together, and under which scheduler.

use crate::error::{Result, TrainError};

/// What starts processes that belong together tells each how many they are. What an MPI library's own launcher says
/// comes first: inside a step of Slurm's it starts other processes than the step has.
const SIZES: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];

/// What only a `mpirun` says to those that it starts itself: Open MPI's, and that of MPICH.
const MPIRUN: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"];

/// Open MPI's key, as versions 4 and 5 have it.
const KILLS_AFTER: [&str; 2] = ["OMPI_MCA_odls_base_sigkill_timeout", "PRTE_MCA_odls_base_sigkill_timeout"];

/// How many of them are on this machine, where MPI itself cannot be asked.
const SIZES_HERE: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"];

/// Schedulers, by a variable that each sets in every job.
const SCHEDULERS: [(&str, &str); 8] = [
    ("Slurm", "SLURM_JOB_ID"),
    ("Slurm", "SLURM_JOBID"),
    ("PBS", "PBS_JOBID"),
    ("LSF", "LSB_JOBID"),
    ("Grid Engine", "SGE_TASK_ID"),
    ("Flux", "FLUX_JOB_ID"),
    ("HTCondor", "_CONDOR_JOB_AD"),
    ("Kubernetes", "KUBERNETES_SERVICE_HOST"),
];

/// How many of a job's processes were started together, and which variable says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// The name of the environment variable.
    pub variable: &'static str,
    /// How many processes.
    pub processes: u32,
}

/// What the environment says of whoever has started this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launcher {
    /// How many processes were started together; none where nobody says so.
    pub started: Option<Started>,
    /// How many of them are on this machine, as far as the launcher tells.
    pub here: Option<u32>,
    /// The scheduler under which it runs. It ends a job with a signal and leaves it some time.
    pub scheduler: Option<&'static str>,
    /// Whether a `mpirun` has started this process, which kills all soon after it has asked them to end.
    pub mpirun: bool,
    /// After how many seconds Open MPI's kills them, where somebody has set that.
    pub kills_after: Option<u32>,
    /// The cores that the scheduler gives on this machine, where it says so.
    pub cores: Option<u32>,
}

impl Launcher {
    /// Of this process. Before MPI is initialised: some libraries change the environment.
    pub fn of_this_process() -> Launcher {
        Launcher::from(|name| std::env::var(name).ok())
    }

    /// Where this function gives the values of variables.
    pub fn from(variable: impl Fn(&str) -> Option<String>) -> Launcher {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok().filter(|number| *number > 0);
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let started = SIZES.iter().find_map(|name| Some(Started { variable: name, processes: number(name)? }));
        let here = SIZES_HERE.iter().find_map(|name| number(name));
        let scheduler = SCHEDULERS.iter().find(|(_, name)| is_set(name)).map(|(scheduler, _)| *scheduler);
        let mpirun = MPIRUN.iter().any(|name| is_set(name));
        // A `mpirun` inside a step of Slurm's counts for itself.
        let of_slurm = || {
            let tasks = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"].into_iter().find_map(&variable)?;
            let node = variable("SLURM_NODEID").and_then(|node| node.parse().ok()).unwrap_or(0);
            tasks_of(&tasks, node)
        };
        let here = here.or_else(|| if mpirun { None } else { of_slurm() });
        let kills_after = KILLS_AFTER.iter().find_map(|name| number(name));
        Launcher { started, here, scheduler, mpirun, kills_after, cores: number("SLURM_CPUS_ON_NODE") }
    }

    /// Refuses a job of which MPI, by this library, knows this process alone although several were started: each would
    /// train by itself.
    ///
    /// # Errors
    /// With the usual cause and the remedy.
    pub fn refuse_alone(&self, size: usize, library: &str) -> Result<()> {
        let Some(Started { variable, processes }) = self.several().filter(|_| size == 1) else { return Ok(()) };
        let open = library.starts_with("Open MPI");
        let (kind, other) = if open { ("Open MPI", "MPICH") } else { ("MPICH", "Open MPI") };
        let why = match variable {
            "SLURM_STEP_NUM_TASKS" => {
                let plugin = if open { "pmix" } else { "pmi2" };
                format!(
                    "srun has no way to tell {library} of them: srun --mpi={plugin} has (srun --mpi=list says which \
                         there are), or {kind}'s own mpirun within the job"
                )
            }
            "PMI_SIZE" if self.scheduler == Some("Slurm") && !self.mpirun && open => {
                format!(
                    "srun --mpi=pmi2 tells {other} of them, and this program has {library}: srun --mpi=pmix, or \
                     {kind}'s own mpirun within the job"
                )
            }
            _ => format!(
                "they were started by another library's mpirun than {library}, which this program was built \
                          with: start them with {kind}'s (mpirun.{}, where both are installed), or build the program \
                          with the other (MPICC=mpicc.{})",
                short(open),
                short(!open)
            ),
        };
        let what = "MPI knows this process alone, and each would train by itself";
        Err(TrainError::config(format!("{processes} processes were started together ({variable}), but {what}: {why}")))
    }

    /// How many were started together where that is more than one.
    pub fn several(&self) -> Option<Started> {
        self.started.filter(|started| started.processes > 1)
    }
}

/// As Debian calls the programs of Open MPI and of MPICH.
fn short(open: bool) -> &'static str {
    if open { "openmpi" } else { "mpich" }
}

/// The tasks of this node in what Slurm writes: `2(x3),1` are two on each of the first three nodes and one on the
/// fourth.
fn tasks_of(text: &str, node: u32) -> Option<u32> {
    let mut before = 0u32;
    for group in text.split(',') {
        let (tasks, nodes) = match group.split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse().ok()?),
            None => (group, 1),
        };
        before = before.checked_add(nodes)?;
        if node < before {
            return tasks.trim().parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Launcher {
        Launcher::from(|name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn each_launcher_says_how_many_there_are_and_how_many_are_here() {
        let open = of(&[("OMPI_COMM_WORLD_SIZE", "6"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")]);
        assert_eq!((open.several().map(|s| s.processes), open.here, open.mpirun), (Some(6), Some(2), true));
        let hydra = of(&[("PMI_SIZE", "2"), ("PMI_RANK", "0"), ("MPI_LOCALNRANKS", "1")]);
        assert_eq!((hydra.several().map(|s| s.variable), hydra.here, hydra.mpirun), (Some("PMI_SIZE"), Some(1), true));
        let step = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_NUM_TASKS", "16"), ("SLURM_STEP_TASKS_PER_NODE", "1(x16)")];
        let srun = of(&step);
        assert_eq!((srun.several().map(|s| s.processes), srun.here, srun.mpirun), (Some(16), Some(1), false));
        assert_eq!(srun.scheduler, Some("Slurm"));
    }

    #[test]
    fn a_lone_program_in_a_batch_script_of_several_tasks_is_alone() {
        let script = of(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")]);
        assert_eq!((script.several(), script.scheduler), (None, Some("Slurm")));
        assert_eq!(of(&[("OMPI_COMM_WORLD_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "2")]).several(), None);
        assert_eq!(of(&[("PMI_SIZE", "two"), ("OMPI_COMM_WORLD_SIZE", "")]).several(), None);
    }

    #[test]
    fn a_process_that_is_alone_in_a_job_of_several_is_refused_with_the_cause() {
        let said = |variables: &[(&str, &str)], size, library| {
            of(variables).refuse_alone(size, library).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let (open, mpich) = ("Open MPI v4.1.4", "MPICH 4.0.2");
        let step = [("SLURM_JOB_ID", "7"), ("SLURM_STEP_NUM_TASKS", "3")];
        let pmi2 = [step[0], step[1], ("PMI_SIZE", "3")];
        for (variables, library, words) in [
            (&step[..], open, ["SLURM_STEP_NUM_TASKS", "srun --mpi=pmix"]),
            (&step, mpich, ["SLURM_STEP_NUM_TASKS", "srun --mpi=pmi2"]),
            (&pmi2, open, ["PMI_SIZE", "srun --mpi=pmix"]),
            (&[("OMPI_COMM_WORLD_SIZE", "3")], mpich, ["OMPI_COMM_WORLD_SIZE", "mpirun.mpich"]),
            (&[("PMI_SIZE", "3"), ("MPI_LOCALNRANKS", "3")], open, ["PMI_SIZE", "MPICC=mpicc.mpich"]),
        ] {
            let text = said(variables, 1, library);
            assert!(text.contains("3 processes were started together"), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
            assert_eq!(said(variables, 3, library), "");
        }
        for alone in [&[("OMPI_COMM_WORLD_SIZE", "1")][..], &[("SLURM_NTASKS", "3"), ("SLURM_JOB_ID", "7")], &[]] {
            assert_eq!(said(alone, 1, open), "");
        }
    }

    #[test]
    fn an_mpirun_within_a_step_counts_for_itself() {
        let within = of(&[
            ("SLURM_JOB_ID", "7"),
            ("SLURM_STEP_NUM_TASKS", "3"),
            ("SLURM_STEP_TASKS_PER_NODE", "1(x3)"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ]);
        assert_eq!((within.several().map(|s| s.processes), within.here, within.mpirun), (Some(8), Some(2), true));
    }

    #[test]
    fn tasks_by_node_are_read_as_slurm_writes_them() {
        let by_node = |text: &str| (0..6).map(|node| tasks_of(text, node)).collect::<Vec<_>>();
        assert_eq!(by_node("2(x3),1"), [Some(2), Some(2), Some(2), Some(1), None, None]);
        assert_eq!(by_node("4"), [Some(4), None, None, None, None, None]);
        assert_eq!(by_node("1,3(x2)")[..3], [Some(1), Some(3), Some(3)]);
        for text in ["", "x", "2(x", "2(xthree)", "2(x4294967295),1(x9)"] {
            assert_eq!(tasks_of(text, 5).filter(|_| !text.starts_with("2(x4")), None, "{text}");
        }
    }

    #[test]
    fn every_scheduler_is_known_by_what_it_sets_and_none_elsewhere() {
        for (name, variable) in SCHEDULERS {
            assert_eq!(of(&[(variable, "7")]).scheduler, Some(name));
            assert_eq!(of(&[(variable, "")]).scheduler, None);
        }
        assert_eq!(of(&[("PATH", "/bin")]), Launcher::default());
    }
}
