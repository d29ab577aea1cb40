"""Trials of what starts, binds, limits and ends a run: Open MPI, MPICH, Slurm, and limits of memory.

    python3 engines.py LACONIC [--mpich LACONIC] [--only WORD] [--keep]

LACONIC is a program that was built with `--features mpi`; `--mpich` names one that was built against MPICH. Each trial
is a row of a Markdown table: what, how it was started, what was seen, and whether it held. Trials whose tools are not
here are listed with what they lack. The exit code is 1 where a trial did not hold.

Folders and batch files are made in a new folder in the current one, which Slurm's machines must see, and are removed at
the end. Trials with machines of their own names, and those with control groups, need root; no others do. Those with
time limits take minutes, of which nearly all is sleep: their rounds wait for a link model.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time

from bench import BASE, Bench, Done, NotHeld, check, short

MPI = ("transport.kind=mpi",)
FRUGAL = ('messages.parameters={codec="quantised",bits=8}',)
ENDLESS = "train.epochs=100000"
SRUN = ("srun", "-n", "3", "--mem=1500", "-t", "5")
NEEDED = ("slurm", "pmix", "open")

Trial = collections.namedtuple("Trial", "what how needs apart act")


def under(kibibytes):
    """How a command begins whose address space has a limit."""
    return ["bash", "-c", f'ulimit -v {kibibytes}; exec "$@"', "bash"]


def limited(bench, name, start, ranks, limit, others=1):
    """Holds runs to a limit, which `others` share: half of what there is fits, nearly all of it is warned of, and more
    is refused."""
    keys = (*(MPI if ranks else ()), "train.epochs=1")
    done = bench.train(f"{name}-large", (*keys, "model.hidden=65536"), start)
    bench.refused(f"{name}-large", done, f"({limit})", "--force starts all the same")
    needed, room = map(float, re.search(r"about ([\d.]+) GB.*there are ([\d.]+) GB", done.text).groups())
    seen = [f"room {room:.2f} GB"]
    for share in (0.55, 0.92, 1.2):
        # What a run needs grows as its hidden width does; the program itself is counted as 32 MiB.
        program = 0.0336 * others
        width, out = int(65536 * (share * room - program) / (needed - program)), f"{name}-{share}"
        done = bench.train(out, (*keys, f"model.hidden={width}"), start)
        if share > 1:
            bench.refused(out, done, f"({limit})")
            seen.append(f"{share:.0%} of it refused")
            continue
        warned = f"({limit})" in done.text
        check(done.code == 0 or (warned and share > 0.8), f"{share:.0%} of {room} GB: exit code {done.code}", done.text)
        how = f"runs (peak {bench.summary(out)['memory']['peak_bytes'] / 1e6:.0f} MB)" if done.code == 0 else "dies"
        seen.append(f"{share:.0%} of it {'warned of, and ' * warned}{how}")
    return ", ".join(seen)


def swept(bench, ranks, limits):
    """Holds runs under limits of their address space to run, or to be refused with the limit named."""
    if not (bench.work / "big.npz").exists():
        bench.run([bench.laconic, *"data synth sbm --nodes 60000 --features 64 --mean-degree 20 --out big.npz".split()])
    keys, seen, held = ("data.path=big.npz", "model.hidden=64", "train.epochs=1", *(MPI if ranks else ())), [], True
    for limit in limits:
        start = [*(bench.mpirun(ranks) if ranks else ()), *under(limit)]
        done = bench.train(f"s{ranks}-{limit}", keys, start)
        refused = done.code == 2 and "(ulimit -v)" in done.text
        how = "runs" if done.code == 0 else "refused" if refused else f"exit code {done.code}"
        if how.startswith("exit"):
            # Where the program has said nothing yet, the library has ended while it started.
            words = re.search(r"(memory allocation .*)", done.text) or re.search(r"laconic: (.*)", done.text)
            how += f", “{words[1]}”" if words else ", in the library"
            held = held and ranks and not words
        seen.append(f"{limit}: {how}")
    check(held, "; ".join(seen))
    return "; ".join(seen)


def by_srun(bench, name, keys, link, options, end=None, rounds=0, ranks=2):
    """A run under srun that Slurm or `scancel` ends, in rounds of at least so many seconds."""
    kind = "--mpi=pmix -n 2" if ranks else "-n 1"
    every = (*(MPI if ranks else ()), *keys, *link, ENDLESS)
    line = f"srun {kind} laconic train run.toml --out {name} " + " ".join(f"--set '{key}'" for key in every)
    job = bench.submit(name, line, "-n", ranks or 1, *options)
    if end:
        bench.begun(name)
        time.sleep(3 + 2.5 * rounds)
        bench.run([end, job])
    text = bench.over(job, name)
    found = bench.summary(name)
    check(not found or found["seconds"]["epoch_median"] >= rounds, f"rounds take less than {rounds} s")
    return bench.ended(name, keys, text, ranks)


def requeued(bench, name, which):
    """The batch file beside this one: ended before the limit, put back into the queue, and resumed."""
    messages = '[messages]\nparameters = { codec = "quantised", bits = 8 }\n'
    link = '[transport]\nshape = "1gbit,100ms"\nshape_sleeps = true\n'
    (bench.work / f"{name}.toml").write_text(BASE.replace("epochs = 10", "epochs = 200") + messages + link)
    script = pathlib.Path(__file__).resolve().parent / "slurm.sh"
    options = ("-t", 2, f"--signal={which}@60", "--open-mode=append")
    text = bench.over(bench.sbatch(name, *options, script, f"{name}.toml", name), name, 1500)
    stops = text.count("stopped early")
    check(stops > 0, "it was never ended", text)
    times = "once" if stops == 1 else f"{stops} times"
    return f"ended and put back into the queue {times}: {bench.as_straight(name, FRUGAL)} as a straight run"


def lonely(bench, name, start, program=None):
    """Processes that do not know each other, each of which could train alone."""
    done = bench.train(name, (*MPI, "partition.parts=0"), start, program)
    by_us = "MPI knows this process alone" in done.text
    check(done.code != 0 and not (bench.work / name).exists(), f"exit code {done.code}", done.text)
    check(by_us or "PMI" in done.text, "refused without a cause", done.text)
    how = "refused with the cause" if by_us else "the library itself ends it"
    return f"exit code {done.code}, {how}; nothing is made"


def no_transport(bench):
    """A run on threads that a launcher starts several times."""
    starts = {"OMPI_COMM_WORLD_SIZE": bench.mpirun(2)}
    if bench.hydra:
        starts["PMI_SIZE"] = [bench.hydra, "-n", "2"]
    for variable, start in starts.items():
        bench.refused("n1", bench.train("n1", (), start), variable, "transport.kind=mpi")
    return f"exit code 2, naming {' and '.join(starts)}; nothing is made"


def batch_threads(bench):
    """A run on threads in a job of several tasks, without srun, is alone."""
    text = bench.over(bench.submit("n2", "laconic train run.toml --out n2", "-n", 2, "-t", 2), "n2")
    check(bench.summary("n2"), "it did not run", text)
    return f"runs: {bench.as_straight('n2', ())} as elsewhere"


def same_bits(bench, name, starts, program=None):
    """Holds runs to the parameters and bytes of threads, each with as many parts as it has ranks."""
    digests = {}
    for at, (ranks, start) in enumerate(starts):
        parts, out = (f"partition.parts={ranks}",), f"{name}-{at}"
        done = bench.train(out, (*MPI, *parts), start, program)
        check(done.code == 0, f"{ranks} ranks", done.text)
        digests[ranks] = bench.as_straight(out, parts)
        sent = [found["bytes"]["total"] for found in (bench.summary(out), bench.straight(10, parts))]
        check(sent[0] == sent[1], f"bytes {sent}")
    return "parameters and bytes of threads: " + ", ".join(f"{digest} ({ranks})" for ranks, digest in digests.items())


def open_bits(bench):
    """Open MPI, bound to what it can bind to."""
    bound = ["none", "core", "socket"] if os.cpu_count() > 1 else ["none"]
    starts = [(2, bench.mpirun(2, "--bind-to", to)) for to in bound]
    return same_bits(bench, "b1", starts + [(ranks, bench.mpirun(ranks)) for ranks in (2, 3, 4)])


def crowded(bench):
    """More ranks than cores: they do not take the cores from each other by waiting."""
    pin = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))]
    medians, digests = {}, set()
    for kind, start in (("threads", []), ("processes", []), ("mpi", bench.mpirun(4, "--bind-to", "none"))):
        for turn in range(2):
            out = f"c-{kind}-{turn}"
            keys = ("partition.parts=4", "model.hidden=256", "train.epochs=20", f"transport.kind={kind}")
            done = bench.train(out, keys, [*pin, *start])
            check(done.code == 0, kind, done.text)
            median = bench.summary(out)["seconds"]["epoch_median"]
            medians[kind] = min(median, medians.get(kind, median))
            digests.add(short(bench.summary(out)))
    seen = "median round: " + ", ".join(f"{kind} {median:.3f} s" for kind, median in medians.items())
    check(len(digests) == 1, f"digests differ: {digests}")
    check(medians["mpi"] <= 4 * medians["threads"] + 0.05, seen)
    return seen + "; the same bits"


def two_machines(bench):
    """Each rank has the cores of its own machine, and says where it is bound to fewer."""
    start, seen, cores = bench.machines(2, bench.open), [], os.cpu_count()
    for at, more in enumerate((["--bind-to", "none"], [])):
        done = bench.train(f"m-{at}", MPI, [*start, *more])
        check(done.code == 0, "failed", done.text)
        note = re.search(r"note: (1 of 2 processes .*)", done.text)
        check(note, "processes are not told from those of the other machine", done.text)
        seen.append(f"“{note[1]}”")
    each = f"of {cores} cores: {cores} threads each" if cores > 1 else "of 1 core: 1 thread each"
    check(each in seen[0], seen[0])
    check(each in seen[1] or f"mpirun --bind-to none lets each have {cores}" in seen[1], seen[1])
    return "; ".join(seen)


def two_machines_mpich(bench):
    """The same with MPICH, which binds nothing."""
    done = bench.train("m-mpich", MPI, bench.machines(2, bench.hydra), bench.mpich)
    note = re.search(r"note: (1 of 2 processes .*)", done.text)
    check(done.code == 0 and note, f"exit code {done.code}, or processes of both machines are counted", done.text)
    check(f": {os.cpu_count()} thread" in note[1], note[1])
    return f"“{note[1]}”"


def wire(bench):
    """What interfaces have sent, beside what the run says of itself."""
    machines, seen = ("m1", "m2", "m3"), []
    codec = '{codec="quantised",bits=4}'
    for name, keys in (("exact", ()), ("4 bits", (f"messages.forward={codec}", f"messages.backward={codec}"))):
        start, out = bench.machines(3, bench.open), f"w-{name[0]}"
        before = sum(map(bench.sent, machines))
        done = bench.train(out, (*MPI, *keys, "model.hidden=64", "partition.parts=3", "train.epochs=40"), start)
        sent = sum(map(bench.sent, machines)) - before
        check(done.code == 0, "failed", done.text)
        ledger = bench.summary(out)["bytes"]
        check(ledger["total"] == ledger["predicted"], f"predicted {ledger['predicted']}, ledger {ledger['total']}")
        ratio = sent / ledger["total"]
        seen.append(f"{name}: wire / ledger {ratio:.3f} ({ledger['total'] / 3e6:.1f} MB a sender)")
        check(1 <= ratio <= 1.12, seen[-1])
    return "; ".join(seen) + "; prediction = ledger to the byte"


def limit_group(bench):
    """A control group of some size, for one process and for two."""
    start = bench.group("one", 250)
    alone = limited(bench, "g1", start, 0, "a control group")
    return f"threads: {alone}; MPI: {limited(bench, 'g2', [*start, *bench.mpirun(2)], 2, 'a control group', 2)}"


def limit_slurm(bench):
    """What Slurm gives a job, which no file says where Slurm counts by itself."""
    line = "srun -n 1 laconic train run.toml --out y1 --set model.hidden=20000; echo code $?"
    text = bench.over(bench.submit("y1", line, "-n", 1, "-t", 2, "--mem=150"), "y1")
    names = [name for name in ("SLURM_MEM_PER_NODE", "a control group") if f"({name})" in text]
    check(names, "no limit is named", text)
    bench.refused("y1", Done(2 if "code 2" in text else 1, text))
    return f"exit code 2 before anything is made, naming {names[0]}"


def too_few(bench):
    """Fewer ranks than parts."""
    words = "4 parts for 3 processes: start as many processes as there are parts"
    bench.refused("f1", bench.train("f1", (*MPI, "partition.parts=4"), bench.mpirun(3)), words)
    return f"exit code 2, “{words}”; nothing is made"


def slow(milliseconds):
    """A link model that really waits; a round of two layers has four exchanges."""
    return (f'transport.shape="1gbit,{milliseconds}ms"', "transport.shape_sleeps=true")


# What, how it is started, what it needs, whether it sleeps most of the time and runs beside others, and the trial.
TRIALS = [Trial(*one) for one in (
    ("threads, Slurm's time limit", "`sbatch -t 1`: `srun -n 1 laconic train`, parameters in 8 bits", ("slurm",), True,
     lambda bench: by_srun(bench, "t1", FRUGAL, slow(150), ("-t", 1), ranks=0)),
    ("MPI, Slurm's time limit", "`sbatch -t 1`: `srun --mpi=pmix -n 2`, parameters in 8 bits", NEEDED, True,
     lambda bench: by_srun(bench, "t2", FRUGAL, slow(100), ("-t", 1))),
    ("MPI, `scancel`", "`srun --mpi=pmix -n 2`", NEEDED, True,
     lambda bench: by_srun(bench, "t3", (), slow(100), ("-t", 5), "scancel")),
    ("MPI, time limit, slow rounds, error feedback", "`sbatch -t 1`: the same, parameters in 8 bits", NEEDED, True,
     lambda bench: by_srun(bench, "t4", FRUGAL, slow(400), ("-t", 1), rounds=1)),
    ("MPI, `scancel`, slow rounds that compute", "the same, hidden 1536, error feedback", NEEDED, True,
     lambda bench: by_srun(bench, "t5", (*FRUGAL, "model.hidden=1536"), slow(250), ("-t", 5), "scancel", 1)),
    ("MPI, SIGTERM before the limit", "`sbatch -t 2 --signal=TERM@60`, parameters in 16 bits", NEEDED, True,
     lambda bench: by_srun(bench, "t6", ('messages.parameters="half"',), slow(70), ("-t", 2, "--signal=TERM@60"))),
    ("SIGINT before the limit, and resume", "`sbatch -t 2 --signal=INT@60 slurm.sh`", NEEDED, True,
     lambda bench: requeued(bench, "t7", "INT")),
    ("SIGTERM before the limit, and resume", "`sbatch -t 2 --signal=TERM@60 slurm.sh`", NEEDED, True,
     lambda bench: requeued(bench, "t8", "TERM")),
    ("lonely processes, no plug-in", "`srun --mpi=none -n 3`, Open MPI", ("slurm", "open"), False,
     lambda bench: lonely(bench, "l1", [*SRUN, "--mpi=none"])),
    ("lonely processes, the other plug-in", "`srun --mpi=pmi2 -n 3`, Open MPI", ("slurm", "pmi2", "open"), False,
     lambda bench: lonely(bench, "l2", [*SRUN, "--mpi=pmi2"])),
    ("lonely processes, the other `mpirun`", "`mpirun.mpich -n 3`, Open MPI", ("hydra",), False,
     lambda bench: lonely(bench, "l3", [bench.hydra, "-n", "3"])),
    ("no transport under a launcher", "`mpirun -n 2 laconic train run.toml`, both libraries'", ("open",), False,
     no_transport),
    ("threads in a batch job of two tasks", "`sbatch -n 2`: `laconic train run.toml`", ("slurm",), False,
     batch_threads),
    ("Open MPI: bits", "`mpirun -n 2, 3, 4`; 2 also bound to none, cores, sockets", ("open",), False, open_bits),
    ("Open MPI under Slurm: bits", "`srun --mpi=pmix -n 3`", NEEDED, False,
     lambda bench: same_bits(bench, "b2", [(3, [*SRUN, "--mpi=pmix"])])),
    ("4 ranks on 2 cores", "`mpirun --oversubscribe --bind-to none -n 4`, the better of two", ("open",), False,
     crowded),
    ("threads a rank, two machines", "namespaces with names, `--bind-to none` and bound", ("spaces", "open"), False,
     two_machines),
    ("bytes: ledger against an interface", "three namespaces, MPI over TCP, `tx_bytes`", ("spaces", "open"), False,
     wire),
    ("memory, `ulimit -v`, threads", "`ulimit -v 600000; laconic train`", (), False,
     lambda bench: limited(bench, "u1", under(600_000), 0, "ulimit -v")),
    ("memory, `ulimit -v`, MPI", "`ulimit -v 600000; mpirun -n 2 laconic train`", ("open",), False,
     lambda bench: limited(bench, "u2", [*under(600_000), *bench.mpirun(2)], 2, "ulimit -v")),
    ("memory, small `ulimit -v`, threads", "60,000 nodes: `ulimit -v LIMIT; laconic train`", (), False,
     lambda bench: swept(bench, 0, (90_000, 120_000, 160_000, 200_000, 250_000, 300_000, 360_000, 420_000, 600_000))),
    ("memory, small `ulimit -v`, MPI", "60,000 nodes: `mpirun -n 2 bash -c 'ulimit -v LIMIT; …'`", ("open",), False,
     lambda bench: swept(bench, 2, (230_000, 240_000, 260_000, 300_000, 320_000, 400_000, 600_000))),
    ("memory, a control group", "250 MiB by hand, threads and `mpirun -n 2`", ("group", "open"), False, limit_group),
    ("memory, what Slurm gives", "`sbatch --mem=150`: `srun -n 1 laconic train`", ("slurm",), False, limit_slurm),
    ("fewer ranks than parts", "`mpirun -n 3`, four parts", ("open",), False, too_few),
    ("MPICH: bits", "`mpirun.mpich -n 2, 3, 4`", ("mpich", "hydra"), False,
     lambda bench: same_bits(bench, "p1", [(n, [bench.hydra, "-n", n]) for n in (2, 3, 4)], bench.mpich)),
    ("MPICH: threads a rank, two machines", "namespaces with names", ("mpich", "hydra", "spaces"), False,
     two_machines_mpich),
    ("MPICH under Slurm: bits", "`srun --mpi=pmi2 -n 3`", ("mpich", "slurm", "pmi2"), False,
     lambda bench: same_bits(bench, "p2", [(3, [*SRUN, "--mpi=pmi2"])], bench.mpich)),
    ("MPICH, lonely processes, the other plug-in", "`srun --mpi=pmix -n 3`", ("mpich", "slurm", "pmix"), False,
     lambda bench: lonely(bench, "p3", [*SRUN, "--mpi=pmix"], bench.mpich)),
    ("MPICH, lonely processes, no plug-in", "`srun --mpi=none -n 3`", ("mpich", "slurm"), False,
     lambda bench: lonely(bench, "p4", [*SRUN, "--mpi=none"], bench.mpich)),
    ("MPICH, lonely processes, the other `mpirun`", "`mpirun -n 3` of Open MPI", ("mpich", "open"), False,
     lambda bench: lonely(bench, "p5", bench.mpirun(3), bench.mpich)),
)]


def judged(bench, one):
    """Runs a trial. Says what was seen, and whether it held."""
    try:
        seen, held = one.act(bench), "held"
    except NotHeld as found:
        seen, held = str(found), "**not held**"
    except Exception as found:
        seen, held = f"the trial itself failed: {found!r}", "**not held**"
    print(f"{held.strip('*')}: {one.what}", file=sys.stderr, flush=True)
    cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in (one.what, one.how, seen, held)]
    return held == "held", "| " + " | ".join(cells) + " |"


def versions(bench):
    """What the programs say of their versions, a line."""
    programs = {"laconic": bench.laconic, "laconic for MPICH": bench.mpich, "Open MPI": bench.open,
                "MPICH": bench.hydra, "Slurm": "sinfo"}
    said = []
    for name, program in programs.items():
        if program and bench.has(program):
            found = re.search(r"\d+\.\d+[^\n]*", bench.run([program, "--version"]).text)
            said.append(f"{name} {found[0].strip() if found else '?'}")
    print(", ".join(said))


def all_of(bench, only):
    """Runs all trials whose names hold a word, and prints the table. Says how many did not hold."""
    needs = {need: bench.lacks(need) for one in TRIALS for need in one.needs}
    asked = [one for one in TRIALS if only.lower() in one.what.lower()]
    skipped = {one: "; ".join(filter(None, map(needs.get, one.needs))) for one in asked}
    with concurrent.futures.ThreadPoolExecutor(len(TRIALS)) as pool:
        able = [one for one in asked if not skipped[one]]
        apart = {one: pool.submit(judged, bench, one) for one in able if one.apart}
        try:
            rows = {one: judged(bench, one) for one in able if not one.apart}
            rows.update({one: future.result() for one, future in apart.items()})
        except BaseException:
            # Trials apart wait for their jobs.
            bench.clean()
            raise
    versions(bench)
    print("\n| what | started by | seen | |\n|---|---|---|---|")
    for one in able:
        print(rows[one][1])
    print()
    for one in (one for one in asked if skipped[one]):
        print(f"- skipped: {one.what}: {skipped[one]}")
    return sum(not held for held, _ in rows.values())


def main():
    """Reads the command line, runs the trials and cleans up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laconic", type=pathlib.Path, help="a program built with --features mpi")
    parser.add_argument("--mpich", type=pathlib.Path, help="one built against MPICH")
    parser.add_argument("--only", default="", help="trials whose names hold this word")
    parser.add_argument("--keep", action="store_true", help="leave the folder")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work = pathlib.Path(tempfile.mkdtemp(prefix="engines-", dir=".")).resolve()
    bench = None
    try:
        bench = Bench(given.laconic.resolve(), given.mpich and given.mpich.resolve(), work)
        sys.exit(1 if all_of(bench, given.only) else 0)
    finally:
        if bench:
            bench.clean()
        if not given.keep:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
