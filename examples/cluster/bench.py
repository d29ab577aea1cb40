"""Programs, a folder to work in, and what has to be cleaned up, for the trials in engines.py."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

BASE = '[data]\npath = "g.npz"\n[partition]\nparts = 2\n[model]\narch = "sage"\nhidden = 16\n[train]\nepochs = 10\n'
AWAKE = "transport.shape_sleeps=false"
STATES = "state-*.safetensors"
V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")

Done = collections.namedtuple("Done", "code text")


class NotHeld(Exception):
    """What was seen is not what should be."""


def check(holds, what, text=""):
    """Ends a trial that does not hold, with the last lines of what was printed."""
    if not holds:
        lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
        own = [line for line in lines if line.startswith("laconic:")]
        raise NotHeld(what + (": " + " / ".join(own[:1] or lines[-6:]) if lines else ""))


def sets(keys):
    """Options that set keys of a configuration."""
    return [part for key in keys for part in ("--set", key)]


class Bench:
    """The programs, a folder to work in, and what has to be cleaned up."""

    def __init__(self, laconic, mpich, work):
        self.laconic, self.mpich, self.work = laconic, mpich, work
        self.jobs, self.spaces, self.groups, self.known = set(), [], [], {}
        self.lock = threading.Lock()
        (work / "bin").mkdir()
        (work / "bin" / "laconic").symlink_to(laconic)
        self.env = dict(os.environ, PATH=f"{work}/bin:{os.environ['PATH']}")
        if os.geteuid() == 0:
            self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        (work / "run.toml").write_text(BASE)
        synth = "data synth sbm --nodes 2000 --features 16 --classes 4 --mean-degree 8 --out g.npz --quiet"
        made = self.run([laconic, *synth.split()])
        if made.code:
            sys.exit(made.text)
        self.open = self.launcher("Open MPI", "mpirun", "mpirun.openmpi", "orterun", "prterun")
        self.hydra = self.launcher("HYDRA", "mpirun", "mpirun.mpich", "mpiexec.hydra", "mpiexec.mpich")
        self.plugins = self.run(["srun", "--mpi=list"]).text if self.has("srun") else ""

    def has(self, program):
        """Whether a program is installed."""
        return shutil.which(program, path=self.env["PATH"]) is not None

    def launcher(self, says, *names):
        """The first of these programs whose version says this."""
        found = (name for name in names if self.has(name) and says in self.run([name, "--version"]).text)
        return next(found, None)

    def lacks(self, need):
        """Why trials with this need cannot run here; nothing where they can."""
        if need == "slurm":
            answers = self.has("sinfo") and "idle" in self.run(["sinfo", "-h", "-o", "%T"]).text
            return "" if answers else "no Slurm that answers with an idle machine"
        if need in ("pmix", "pmi2"):
            return "" if re.search(rf"^\s*{need}$", self.plugins, re.M) else f"this Slurm has no --mpi={need}"
        if need == "group":
            return "" if self.group_root() else "no memory controller of control groups that may be written"
        rest = {
            "open": (self.open, "no mpirun of Open MPI"),
            "hydra": (self.hydra, "no mpirun of MPICH (Hydra)"),
            "mpich": (self.mpich, "no program built against MPICH was given"),
            "spaces": (os.geteuid() == 0 and self.has("ip") and self.has("unshare"), "needs root, ip and unshare"),
        }
        return "" if rest[need][0] else rest[need][1]

    def run(self, argv, seconds=180):
        """Runs a command in the folder, and everything that it has started no longer than this."""
        with tempfile.TemporaryFile(mode="w+", errors="replace") as out:
            child = subprocess.Popen(list(map(str, argv)), cwd=self.work, env=self.env, stdin=subprocess.DEVNULL,
                                     stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = child.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                code = child.wait()
            out.seek(0)
            # As a shell says it where a signal has ended it.
            return Done(128 - code if code < 0 else code, out.read())

    def train(self, out, keys, start=(), program=None, options=()):
        """Trains under this launcher with these keys."""
        return self.run([*start, program or self.laconic, "train", "run.toml", "--out", out, *options, *sets(keys)])

    def mpirun(self, ranks, *more):
        """Open MPI's launcher with room for so many."""
        return [self.open, "--oversubscribe", *more, "-n", str(ranks)]

    def summary(self, out):
        """What a run has left of itself; none where it has no summary."""
        path = self.work / out / "summary.json"
        return json.loads(path.read_text()) if path.exists() else None

    def straight(self, rounds, keys):
        """The summary of the same rounds in one go on threads."""
        with self.lock:
            name = f"straight-{len(self.known)}"
            known = (rounds, *keys)
            if known not in self.known:
                done = self.train(name, (*keys, f"train.epochs={rounds}"))
                check(done.code == 0, "the straight run failed", done.text)
                self.known[known] = self.summary(name)
            return self.known[known]

    def as_straight(self, out, keys):
        """Holds a finished run to a straight one: the same parameters. Says their digest."""
        mine = self.summary(out)
        check(mine and not mine["interrupted"], f"{out} has no summary of a whole run")
        digest, other = (short(found) for found in (mine, self.straight(mine["rounds"], keys)))
        check(digest == other, f"parameters {digest}, those of a straight run on threads {other}")
        return digest

    def refused(self, out, done, *words, code=2):
        """Holds a run to have been refused before it made anything, with these words."""
        missing = [word for word in words if word not in done.text]
        check(done.code == code and not missing, f"exit code {done.code}, without {missing}", done.text)
        check(not (self.work / out).exists(), "a folder was made", done.text)

    def ended(self, out, keys, text, ranks):
        """Holds a run that was ended to have a checkpoint and a summary, resumes it, and says what there was."""
        left = self.summary(out)
        check((self.work / out / "checkpoint.safetensors").exists(), "no checkpoint", text)
        check(left and left["interrupted"], "no summary of an interrupted run", text)
        states = len(list((self.work / out).glob(STATES)))
        rounds, median = left["rounds"], left["seconds"]["epoch_median"]
        start = self.mpirun(ranks) if ranks else []
        on = (f"train.epochs={rounds + 3}", AWAKE)
        done = self.run([*start, self.laconic, "resume", out, *sets(on)])
        check(done.code == 0, "cannot be resumed", done.text)
        digest = self.as_straight(out, keys)
        files = f"checkpoint, {states} states" if states else "checkpoint"
        return (f"round {rounds} ended ({median:.2f} s each), {files} and summary; resumed for three more: "
                f"{digest} as a straight run")

    def submit(self, name, body, *options):
        """Submits a batch file. Says its number."""
        script = self.work / f"{name}.sh"
        script.write_text("#!/bin/bash\n" + body + "\n")
        return self.sbatch(name, *options, script)

    def sbatch(self, name, *command):
        """Submits this command as a job that is cancelled at the end if it is still there."""
        options = ["--parsable", "--job-name=engines", f"--output={name}.out"]
        if not any(part.startswith("--mem") for part in map(str, command)):
            options.append("--mem=1500")
        done = self.run(["sbatch", *options, *command])
        check(done.code == 0, "sbatch refuses", done.text)
        job = done.text.strip().split(";")[0]
        self.jobs.add(job)
        return job

    def over(self, job, name, seconds=900):
        """Waits for the end of a job. Says what it has printed."""
        until = time.time() + seconds
        while self.run(["squeue", "-h", "-j", job, "-o", "%T"]).text.strip().isupper():
            check(time.time() < until, f"the job is not over after {seconds} s", self.printed(name))
            time.sleep(1)
        self.jobs.discard(job)
        return self.printed(name)

    def printed(self, name):
        """What a job has printed so far."""
        path = self.work / f"{name}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def begun(self, name, seconds=120):
        """Waits until a run is in its rounds."""
        until = time.time() + seconds
        while "round 1 of" not in self.printed(name):
            check(time.time() < until, "no round began", self.printed(name))
            time.sleep(0.2)

    def group_root(self):
        """Where control groups with limits of memory can be made."""
        if (V1 / "memory.limit_in_bytes").exists() and os.access(V1, os.W_OK):
            return V1, "memory.limit_in_bytes"
        control = V2 / "cgroup.subtree_control"
        if os.access(control, os.W_OK) and "memory" in control.read_text().split():
            return V2, "memory.max"
        return None

    def group(self, name, mebibytes):
        """Makes a control group. Says how a command begins that runs in it."""
        root, limit = self.group_root()
        folder = root / f"laconic-{os.getpid()}-{name}"
        folder.mkdir()
        self.groups.append(folder)
        (folder / limit).write_text(str(mebibytes << 20))
        return ["bash", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "bash"]

    def machines(self, count, program):
        """Makes three machines with names and addresses of their own. Says how MPI starts on the first of them."""
        tag = f"laconic{os.getpid()}"
        hosts, agent = self.work / "hosts", self.work / "agent.sh"
        if not self.spaces:
            names = ["m1", "m2", "m3"]
            hosts.write_text("127.0.0.1 localhost\n" + "".join(f"10.77.0.{k[1:]} {k}\n" for k in names))
            lines = [f"netns add {tag}-sw", f"-n {tag}-sw link add br0 type bridge", f"-n {tag}-sw link set br0 up"]
            self.spaces.append(f"{tag}-sw")
            for name in names:
                space = f"{tag}-{name}"
                self.spaces.append(space)
                lines += [f"netns add {space}", f"-n {space} link add wan0 type veth peer name {name} netns {tag}-sw",
                          f"-n {tag}-sw link set {name} master br0 up", f"-n {space} link set lo up",
                          f"-n {space} addr add 10.77.0.{name[1:]}/24 dev wan0",
                          f"-n {space} link set wan0 gso_max_segs 1 up"]
            for line in lines:
                done = self.run(["ip", *line.split()])
                check(done.code == 0, f"ip {line}", done.text)
            inner = f'mount --bind {hosts} /etc/hosts; hostname "$0"; cd {self.work}; exec "$@"'
            agent.write_text("#!/bin/bash\n# Runs a command on a machine, as ssh would, or its arguments as they are.\n"
                             'while [[ $1 == -* ]]; do shift; done\nh=$1; shift\n'
                             'if [[ $1 == exactly ]]; then shift; else set -- bash -c "$*"; fi\n'
                             f"exec ip netns exec {tag}-$h unshare -u bash -c '{inner}' \"$h\" \"$@\"\n")
            agent.chmod(0o755)
        names = ",".join(f"m{k}" for k in range(1, count + 1))
        if program != self.open:
            options = ["-launcher", "ssh", "-launcher-exec", agent, "-hosts", names, "-ppn", 1]
            return [agent, "m1", "exactly", program, *options, "-n", count]
        mca = {"plm": "rsh", "plm_rsh_agent": agent, "btl": "tcp,self", "pml": "ob1", "btl_tcp_if_include": "wan0",
               "oob_tcp_if_include": "wan0"}
        options = [part for key in mca.items() for part in ("--mca", *key)]
        return [agent, "m1", "exactly", program, *options, "--host", names, "-n", count]

    def sent(self, machine):
        """The bytes that a machine's interface has sent."""
        where = "/sys/class/net/wan0/statistics/tx_bytes"
        return int(self.run(["ip", "netns", "exec", f"laconic{os.getpid()}-{machine}", "cat", where]).text)

    def clean(self):
        """Ends jobs and removes what is left outside the folder."""
        for job in list(self.jobs):
            self.run(["scancel", job])
        while self.spaces:
            self.run(["ip", "netns", "del", self.spaces.pop()])
        while self.groups:
            self.groups.pop().rmdir()


def short(summary):
    """The beginning of the digest of a run's parameters."""
    return summary["parameters"]["digest"].removeprefix("blake3:")[:12]
