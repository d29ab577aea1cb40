"""Independent trainers as real processes, of which one at a time is killed at a random moment, or held back.

    python tests/acceptance/failing_trainers.py target/release/laconic --kills 60
    python tests/acceptance/failing_trainers.py target/release/laconic --slow

`--kills` runs so many trainings on an invented graph. In each, at a moment drawn from a seed, one process gets SIGKILL: one
of the trainers, or the aggregator, after which `laconic resume` goes on. It prints how each run ended, its test accuracy beside
those of runs that nobody disturbed, and whether any mean is missing in the log of means.

`--slow` holds one of two trainers back to a quarter of its speed (stopped for three quarters of every tenth of a second)
and prints the steps a second of the other one, beside those of a run in which nobody is held back; in turn, three times.

The exit code is 1 where a run did not end as it should.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time


def program(args, folder, *words, **options):
    return subprocess.Popen(
        [args.laconic, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options
    )


def start(args, folder, trainers, limit, *more):
    keys = [
        "data.path=graph.npz",
        f"partition.parts={trainers}",
        "partition.method=random",
        "model.hidden=32",
        "schedule.kind=averaging",
        "schedule.interval=300ms",
        f"schedule.limit={limit}s",
        "schedule.grace=2s",
        "transport.kind=processes",
        "train.threads=1",
        *more,
    ]
    (folder / "run.toml").write_text("")
    return program(args, folder, "train", "run.toml", "--out", "run", *(f"--set={key}" for key in keys))


def processes(job):
    """The aggregator's and the trainers' processes, in their order."""
    found = []
    for task in pathlib.Path(f"/proc/{job.pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return sorted(int(process) for process in found)


def means(folder):
    log = folder / "run" / "metrics.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def wait_for_first_mean(folder, job):
    while not means(folder):
        if job.poll() is not None:
            sys.exit(f"the run ended before its first mean: {job.stderr.read()}")
        time.sleep(0.02)


def summary(folder):
    return json.loads((folder / "run" / "summary.json").read_text())


def kills(args):
    draw = random.Random(args.seed)
    calm, told, sound = [], [], True
    for number in range(args.kills + args.calm):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            data = "data synth sbm --nodes 2000 --features 16 --classes 5 --out graph.npz"
            assert program(args, folder, *data.split()).wait() == 0
            job = start(args, folder, 3, args.limit)
            if number < args.calm:
                job.communicate()
                calm.append(summary(folder)["metrics"]["test"]["accuracy"])
                continue
            wait_for_first_mean(folder, job)
            at = draw.uniform(0.0, 0.9 * args.limit)
            time.sleep(at)
            victim = draw.randrange(4)
            all_of_them = processes(job)
            if victim >= len(all_of_them):
                continue
            os.kill(all_of_them[victim], signal.SIGKILL)
            said = job.communicate()[1]
            code, resumed = job.returncode, False
            if victim == 0 and code != 0:
                resumed = program(args, folder, "resume", "run").wait() == 0
            numbers = [mean["round"] for mean in means(folder)]
            whole = numbers == list(range(1, len(numbers) + 1))
            ended = resumed if victim == 0 and code != 0 else code == 0
            notes = summary(folder)["averaging"]["notes"] if ended else []
            named = victim == 0 or any(f"trainer {victim - 1} was lost" in note for note in notes)
            accuracy = summary(folder)["metrics"]["test"]["accuracy"] if ended else None
            who = "aggregator" if victim == 0 else f"trainer {victim - 1}"
            row = {"who": who, "at": round(at, 2), "code": code, "resumed": resumed, "means": len(numbers)}
            row |= {"whole": whole, "named": named, "accuracy": accuracy}
            sound &= ended and whole and named
            told.append(row)
            print(json.dumps(row if ended else row | {"said": said[-300:]}), flush=True)
    ends = [row["accuracy"] for row in told if row["accuracy"] is not None]
    print(f"undisturbed: {statistics.mean(calm):.4f} ± {statistics.stdev(calm):.4f} ({len(calm)} runs)")
    for who in ["trainer", "aggregator"]:
        of = [row["accuracy"] for row in told if row["who"].startswith(who) and row["accuracy"] is not None]
        if len(of) > 1:
            print(f"{who} killed: {statistics.mean(of):.4f} ± {statistics.stdev(of):.4f} ({len(of)} runs)")
    print(f"{len(ends)} of {len(told)} ended with a model; all sound: {sound}")
    return sound


def hold_back(process, over):
    """A quarter of the speed: works for 25 ms, then stands for 75 ms."""
    try:
        while not over.wait(0.025):
            os.kill(process, signal.SIGSTOP)
            over.wait(0.075)
            os.kill(process, signal.SIGCONT)
    except ProcessLookupError:
        pass


def slow(args):
    shares = []
    for turn in range(3):
        speeds = {}
        for held in [False, True]:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                data = "data synth sbm --nodes 20000 --features 64 --classes 5 --out graph.npz"
                assert program(args, folder, *data.split()).wait() == 0
                # The aggregator judges the last mean alone: these two cores are the trainers'.
                more = ["schedule.interval=3s", "schedule.grace=1s", "train.eval_every=0", "schedule.quorum=1"]
                job = start(args, folder, 2, args.limit, *more)
                over = threading.Event()
                wait_for_start = time.monotonic()
                while len(processes(job)) < 3 and time.monotonic() - wait_for_start < 30:
                    time.sleep(0.02)
                if held:
                    threading.Thread(target=hold_back, args=(processes(job)[2], over), daemon=True).start()
                job.communicate()
                over.set()
                trainers = summary(folder)["averaging"]["trainers"]
                speeds[held] = [trainer["steps"] / trainer["working_seconds"] for trainer in trainers]
                print(json.dumps({"turn": turn, "held_back": held, "steps_per_second": speeds[held]}), flush=True)
        shares.append(speeds[True][0] / speeds[False][0])
    print("steps a second of the other, held back to not: " + ", ".join(f"{share:.3f}" for share in shares))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laconic", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--calm", type=int, default=6, help="undisturbed runs to compare with (6)")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--limit", type=float, default=6.0, help="seconds of a run (6)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    sound = kills(args) if args.kills else True
    sound = slow(args) and sound if args.slow else sound
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
