"""Real tools write small files, and what Laconic makes of them is held to the truth.

`python3 tests/trials/trials.py [--laconic PATH] [--venv FOLDER] [--only 1,2] [--out FILE.json]` makes a virtual
environment (in a temporary folder unless --venv names one, which is used again), installs the tools in the versions
below, prints a table in Markdown, and exits with 1 if something was read wrong in silence or refused without a remedy.
Spark needs Java; without it its trials are skipped. Needs Python 3.11 or newer and a package index."""
import argparse
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

PACKAGES = ("duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1 fastparquet==2026.9.0 pyspark==4.3.0 deltalake==1.6.6 "
            "networkx==3.6.1 igraph==1.0.0 networkit==11.3 scipy==1.17.1 kuzu==0.11.3 ladybug==0.22.0 dask==2026.8.0 "
            "anndata==0.12.19").split()
LATER = ["pandas==3.1.1"]  # anndata asks for an older one and writes the same files with this
# What is kept for tests that need no Python, in crates/graph/tests/fixtures, by trial.
KEPT = {6: ["edges.parquet", "nodes.parquet"], 9: ["edges.parquet", "nodes.parquet"],
        13: ["duckdb_lz4_raw.parquet", "duckdb_brotli.parquet", "spark_lz4"], 14: ["edges.parquet", "nodes.parquet"],
        19: ["calls"], 21: ["edges.parquet", "nodes.parquet"], 25: ["edges.parquet"],
        26: ["edges.parquet", "nodes.parquet"], 40: ["edges.parquet", "nodes.parquet"], 49: ["kuzu_pays.parquet"],
        66: ["plain.mtx", "mirrored.mtx"], 69: ["edges.txt"], 74: ["weighted.graph"], 75: ["loop.graph"],
        77: ["csr_matrix.npz"]}
FAMILIES = ("parquets", "folders", "exports", "lists", "matrices", "sets", "savers")


def environment(folder):
    """The Python of a virtual environment with all tools."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if not os.path.exists(os.path.join(folder, "complete")):
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES], check=True)
        subprocess.run([*pip, "--no-deps", *LATER], check=True)
        open(os.path.join(folder, "complete"), "w").close()
    return python


def keep(number, made, into):
    """Copies the files of a trial that are kept, without those that Spark hides, in the place of earlier ones."""
    shutil.rmtree(os.path.join(into, f"{number:03}"), ignore_errors=True)
    for name in KEPT.get(number, ()):
        to, hidden = os.path.join(into, f"{number:03}", name), shutil.ignore_patterns(".*", "_SUCCESS")
        if os.path.isdir(os.path.join(made, name)):
            shutil.copytree(os.path.join(made, name), to, ignore=hidden, dirs_exist_ok=True)
        elif os.path.exists(os.path.join(made, name)):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copyfile(os.path.join(made, name), to)


def main(options):
    import trial
    trial.LACONIC = os.path.abspath(options.laconic) if os.path.exists(options.laconic) else options.laconic
    for family in FAMILIES:
        __import__(family)
    only = {int(number) for number in options.only.split(",")} if options.only else trial.TRIALS
    folder = options.work or tempfile.mkdtemp(prefix="laconic-trials-")
    rows, files = [], 0
    print("| # | tool and file | verdict | what it says |\n|---|---|---|---|")
    for number in sorted(set(only) & set(trial.TRIALS)):
        made_in = os.path.join(folder, f"{number:03}")
        verdict, why, made = trial.run(number, made_in)
        if options.fixtures:
            keep(number, made_in, options.fixtures)
        files += made
        rows.append({"number": number, "tool": trial.TRIALS[number][0], "verdict": verdict, "why": why, "inputs": made})
        why = why.replace("|", "\\|").replace("\n", " ")
        print(f"| {number} | {rows[-1]['tool']} | {verdict} | {why} |", flush=True)
    counts = collections.Counter(row["verdict"] for row in rows)
    print(f"\n{len(rows)} trials, {files} inputs: " + ", ".join(f"{counts[one]} {one}" for one in counts))
    version = subprocess.run([trial.LACONIC, "--version"], capture_output=True, text=True).stdout.strip()
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"version": version, "packages": PACKAGES + LATER, "counts": counts, "trials": rows}, file,
                      indent=1)
    sys.exit(any(counts[verdict] for verdict in trial.BAD))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--laconic", default="laconic", help="the binary")
    parser.add_argument("--venv", help="folder of the virtual environment")
    parser.add_argument("--only", help="numbers of trials, with commas between them")
    parser.add_argument("--work", help="folder for the files that are made")
    parser.add_argument("--fixtures", help="folder for the files that tests read")
    parser.add_argument("--out", help="file for the results as JSON")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        main(given)
    python = environment(given.venv or tempfile.mkdtemp(prefix="laconic-trials-env-"))
    os.execv(python, [python, os.path.abspath(__file__), *sys.argv[1:], "--inside"])
