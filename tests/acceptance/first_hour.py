#!/usr/bin/env python3
"""Plays six new users from their own files to the end, and checks what they get against what is known.

    python3 tests/acceptance/first_hour.py [target/release/laconic] [--pyg] [--keep FOLDER]

An engineer with tables, a researcher who compares methods, the owner of a site who must know what leaves, a company
with call records in three regions, a fraud team with a Delta table, and a biologist with single cells. Every
expectation is about something this script knows by itself: who it drew into which class, the sums of columns, files
that have to agree. Needs Python's standard library alone; with --pyg also torch and PyTorch Geometric, and then the
exported model has to find what `laconic predict` does. Where deltalake and pyarrow are installed they write the fraud
team's table, and otherwise this script writes its log.
"""

import argparse
import csv
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failed(Exception):
    """An expectation that did not hold."""


def expect(holds, what):
    """Goes on if `holds`, and otherwise ends with `what` was expected."""
    if not holds:
        raise Failed(what)


class Laconic:
    """The program, run in one folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def __call__(self, *arguments, rc=0):
        """Runs it and returns what it wrote to both streams; the exit status has to be `rc`."""
        command = [self.program, *map(str, arguments)]
        print("$ laconic", *command[1:], flush=True)
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        said = ran.stdout + ran.stderr
        expect(ran.returncode == rc, f"exit status {rc}, not {ran.returncode}:\n{said}")
        return said

    def json(self, *arguments):
        """The same with --json; returns the document."""
        command = [self.program, *map(str, arguments), "--json"]
        print("$ laconic", *command[1:], flush=True)
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        expect(ran.returncode == 0, f"exit status 0, not {ran.returncode}:\n{ran.stderr}")
        return json.loads(ran.stdout)


def rows_of(path):
    """The rows of a CSV file, by column."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read(path):
    """A JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------------------------------- the engineer

ACCOUNTS = 900
NEW_ACCOUNTS = 300
STATES = ["banned", "ok", "watched"]
COUNTRIES = ["at", "ch", "de", "fr", "it"]


def write_accounts(folder, prefix, count, seed, known):
    """Accounts and the transfers between them; returns who is what.

    The state moves the balance and the country, and seven transfers in ten stay within a state; larger amounts more
    often than small ones. Rows are shuffled, so that a row's number is not the account.
    """
    draw = random.Random(seed)
    names = [f"{prefix}-{number:04d}" for number in range(count)]
    state = {name: draw.randrange(3) for name in names}
    order = names[:]
    draw.shuffle(order)
    with open(folder / f"{prefix}.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["user_id", "age", "balance", "country", "note"] + (["status", "set"] if known else []))
        for name in order:
            kind = state[name]
            age = "n/a" if draw.random() < 0.05 else f"{draw.gauss(40, 10):.1f}"
            country = COUNTRIES[kind] if draw.random() < 0.4 else draw.choice(COUNTRIES)
            row = [name, age, f"{draw.gauss(1000 * kind, 1500):.2f}", country, f"free text {draw.random():.9f}"]
            part = draw.choices(["train", "val", "test"], [4, 2, 4])[0]
            out.writerow(row + ([STATES[kind], part] if known else []))
    by_state = {kind: [name for name in names if state[name] == kind] for kind in range(3)}
    with open(folder / f"{prefix}-transfers.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["payer", "payee", "amount"])
        for _ in range(5 * count):
            payer = draw.choice(names)
            inside = draw.random() < 0.7
            payee = draw.choice(by_state[state[payer]] if inside else names)
            if payee != payer:
                out.writerow([payer, payee, f"{draw.uniform(1, 3) if inside else draw.uniform(0.1, 1):.2f}"])
    return {name: STATES[kind] for name, kind in state.items()}


ENGINEERS_RUN = """\
[data]
path = "acc-transfers.csv"
nodes_path = "acc.csv"
source = "payer"
target = "payee"
weight = "amount"
id = "user_id"
label = "status"
split_column = "set"
missing = "mean"
features = "standardised"
symmetrise = true

[partition]
parts = 3

[model]
arch = "gcn"
hidden = 32

[train]
epochs = 80
lr = 0.01
"""


def engineer(laconic, with_pyg):
    """Own ids and columns, text labels, missing values, weights; predictions of new nodes that nobody has labelled."""
    folder = laconic.folder
    truth = write_accounts(folder, "acc", ACCOUNTS, 1, known=True)
    new_truth = write_accounts(folder, "new", NEW_ACCOUNTS, 2, known=False)

    # A table whose ids nobody recognises is not read by the numbers of its rows.
    columns = ["--nodes", "acc.csv", "--source", "payer", "--target", "payee", "--weight", "amount"]
    said = laconic("data", "check", "acc-transfers.csv", *columns, rc=3)
    expect("user_id" in said and "--id" in said, f"the columns and --id named: {said}")
    columns += ["--id", "user_id", "--label", "status", "--split", "set", "--symmetrise"]
    said = laconic("data", "info", "acc-transfers.csv", *columns, rc=3)
    expect("age" in said and "missing" in said, f"a missing age named, and what to do: {said}")
    said = laconic("data", "info", "acc-transfers.csv", *columns, "--missing", "mean")
    for word in ["user_id", "banned", "watched", "country", "note"]:
        expect(word in said, f"{word} with its role: {said}")

    (folder / "run.toml").write_text(ENGINEERS_RUN, encoding="utf-8")
    laconic("train", "run.toml", "--out", "runs/accounts")
    summary = read(folder / "runs/accounts/summary.json")
    accuracy = summary["metrics"]["test"]["accuracy"]
    expect(accuracy > 0.6, f"more than guesses (0.33): {accuracy}")

    # What is said of the run's own nodes is what was judged.
    laconic("predict", "runs/accounts", "--out", "own.csv")
    rows = rows_of(folder / "own.csv")
    expect({row["id"] for row in rows} == set(truth), "a row an account, under its own id")
    tested = [row for row in rows if row["split"] == "test"]
    right = sum(row["class"] == truth[row["id"]] for row in tested) / len(tested)
    expect(math.isclose(right, accuracy, abs_tol=1e-9), f"the accuracy of the summary, {accuracy}, not {right}")
    expect(all(row["label"] == truth[row["id"]] for row in rows), "true labels by name")

    # New accounts, without states and split: other nodes, other edges, the same columns.
    new = ["--data", "new-transfers.csv", "--nodes", "new.csv"]
    for workers, out in [(1, "new.csv.out.csv"), (2, "new-2.csv"), (1, "new.jsonl")]:
        laconic("predict", "runs/accounts", *new, "--workers", workers, "--out", out)
    rows = rows_of(folder / "new.csv.out.csv")
    expect({row["id"] for row in rows} == set(new_truth), "a row a new account")
    right = sum(row["class"] == new_truth[row["id"]] for row in rows) / len(rows)
    expect(right > 0.55, f"new accounts better than guesses: {right}")
    by_id = {row["id"]: row for row in rows}
    for other in [rows_of(folder / "new-2.csv"), map(json.loads, (folder / "new.jsonl").read_text().splitlines())]:
        for row in other:
            expect(row["class"] == by_id[row["id"]]["class"], f"one worker and two say the same of {row['id']}")
    print(f"  accuracy {accuracy:.3f} on test nodes, {right:.3f} on nodes that were never seen")

    laconic("export", "runs/accounts", "--to", "pyg")
    if with_pyg:
        laconic("data", "convert", "acc-transfers.csv", *columns, "--missing", "mean", "--out", "accounts.npz")
        same_as_pyg(folder)


def same_as_pyg(folder):
    """The exported model in PyTorch Geometric against `own.csv`, on the arrays of the converted tables."""
    import importlib.util

    import numpy
    import torch

    spec = importlib.util.spec_from_file_location("load", folder / "runs/accounts/pyg/load.py")
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    arrays = numpy.load(folder / "accounts.npz")
    inputs = [arrays["features"], arrays["edge_index"].astype(numpy.int64), arrays["edge_weight"]]
    with torch.no_grad():
        found = exported.load().probabilities(*map(torch.from_numpy, inputs)).numpy()
    ends = arrays["ids_offsets"]
    names = [arrays["ids_data"].tobytes()[ends[row] : ends[row + 1]].decode() for row in range(len(ends) - 1)]
    ours = {row["id"]: [float(row[f"prob_{number}"]) for number in range(3)] for row in rows_of(folder / "own.csv")}
    most = max(abs(found[row] - ours[name]).max() for row, name in enumerate(names))
    expect(most < 1e-5, f"PyTorch Geometric to say the same, not {most} apart")
    print(f"  PyTorch Geometric's probabilities are at most {most:.1e} away")


# -------------------------------------------------------------------------------------------------- the researcher


RESEARCHERS_RUN = """\
[data]
path = "graph.npz"

[partition]
parts = 3

[model]
hidden = 16

[train]
epochs = 4
"""


def researcher(laconic):
    """The methods of the papers on one graph: what they will send, what they sent, what they reached."""
    folder = laconic.folder
    laconic("data", "synth", "sbm", "--nodes", 600, "--classes", 4, "--out", "graph.npz")
    (folder / "papers_run.toml").write_text(RESEARCHERS_RUN, encoding="utf-8")
    methods = ROOT / "examples/methods/papers.toml"
    common = ["papers_run.toml", "--runs", methods, "--seeds", 2]
    planned = laconic.json("compare", *common, "--plan")
    laconic("compare", *common, "--out", "runs/papers")
    compared = read(folder / "runs/papers/compare.json")
    names = [line["name"] for line in compared["methods"]]
    for paper in ["RETEXO", "AdaQP", "VARCO", "BNS-GCN", "PipeGCN", "SANCUS"]:
        expect(any(paper in name for name in names), f"{paper} among {names}")
    expect([line["name"] for line in planned["methods"]] == names, "a plan for every method")

    # The sums of the table, made here from the runs.
    with open(folder / "runs/papers/compare.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    expect(len(table) == 2 * len(names), f"a row a run, not {len(table)}")
    first = None
    for line in compared["methods"]:
        summaries = [read(folder / "runs/papers" / run["folder"] / "summary.json") for run in line["runs"]]
        for summary in summaries:
            expect(sum(summary["bytes"]["by_purpose"].values()) == summary["bytes"]["total"], "purposes that add up")
        training = [s["bytes"]["total"] - s["bytes"]["by_purpose"]["evaluation"] for s in summaries]
        mean = sum(training) / len(training)
        first = first or mean
        expect(math.isclose(line["training"], mean), f"{line['name']}: {mean} bytes to train, not {line['training']}")
        expect(math.isclose(line["fewer"], first / mean), f"{line['name']}: {first / mean} times fewer")
        tests = [s["metrics"]["test"]["accuracy"] for s in summaries]
        expect(math.isclose(line["test"]["mean"], sum(tests) / len(tests)), f"{line['name']}: the mean of {tests}")
        plan = next(plan for plan in planned["methods"] if plan["name"] == line["name"])
        exact = not summaries[0]["bytes"]["is_bound"]
        what = f"{line['name']}: planned {plan['training']}, sent {mean}"
        expect(not exact or math.isclose(plan["training"], mean), what)
        print(f"  {line['name']:<36} {mean / 1e3:>8.1f} kB, {first / mean:>5.1f} times fewer")
    for file in ["compare.md", "compare.tex", "compare.svg"]:
        expect((folder / "runs/papers" / file).stat().st_size > 0, f"{file}")
    laconic("report", "runs/papers")
    page = (folder / "runs/papers/report.html").read_text(encoding="utf-8")
    named = all(name in page for name in names)
    expect("<script" not in page and named, "a page without scripts that names all methods")


# ------------------------------------------------------------------------------------------------ the site's owner

SITES_RUN = """\
[data]
path = "calls-3"

[model]
arch = "sage"
hidden = 16

[train]
epochs = 5
metrics = ["accuracy", "macro_f1"]

[schedule]
kind = "lazy"
start = "mlp"

[transport]
shape = "50mbit,25ms"
"""


def owner(laconic):
    """What leaves site 1, before anything runs, from its own part alone, and after."""
    folder = laconic.folder
    subprocess.run(["sh", ROOT / "docs/example/calls.sh"], cwd=folder, check=True)
    laconic("data", "convert", "calls.csv", "--nodes", "people.csv", "--symmetrise", "--out", "calls.npz")
    said = laconic("partition", "calls.npz", "--parts", 3, "--method", "multilevel", "--out", "calls-3")
    expect("skew" in said, f"how far the parts' classes lie from all nodes': {said}")
    (folder / "site.toml").write_text(SITES_RUN, encoding="utf-8")

    said = laconic("plan", "site.toml", "--ledger", "planned.csv")
    expect("class scores" in said and "50mbit" in said, f"what crosses in words, and the own link: {said}")
    laconic("train", "site.toml", "--out", "runs/site")
    ours, theirs = rows_of(folder / "planned.csv"), rows_of(folder / "runs/site/ledger.csv")
    expect(ours and ours == theirs, f"the planned accounts ({len(ours)}) to be those that were counted ({len(theirs)})")
    # From class scores: no feature leaves.
    expect(not any(row["kind"] == "features" for row in theirs), "no features")
    said = laconic("plan", "site.toml", "--set", "schedule.kind=synchronous", rc=2)
    expect("schedule.start" in said, f"schedule.start refused where nothing reads it: {said}")

    # Nobody else's part is here.
    alone = folder / "alone"
    (alone / "calls-3").mkdir(parents=True)
    shutil.copy(folder / "calls-3/meta.json", alone / "calls-3")
    shutil.copytree(folder / "calls-3/part-1", alone / "calls-3/part-1")
    shutil.copy(folder / "site.toml", alone)
    said = Laconic(laconic.program, alone)("plan", "site.toml")
    expect("class scores" in said, f"the plan of one site: {said}")

    # What an evaluation sends says nothing of single nodes: it does not grow with those that are judged.
    of_nodes = {}
    for nodes in [600, 1200]:
        laconic("data", "synth", "sbm", "--nodes", nodes, "--classes", 2, "--out", f"{nodes}.npz")
        for metric in ["roc_auc", "roc_auc_exact"]:
            keys = ["data.path=" + f"{nodes}.npz", "model.arch=mlp", f"train.metrics={metric}", "partition.parts=3"]
            (folder / "empty.toml").write_text("", encoding="utf-8")
            planned = laconic.json("plan", "empty.toml", *(word for key in keys for word in ["--set", key]))
            of_nodes[metric, nodes] = planned["by_kind"]["evaluation"]
    expect(of_nodes["roc_auc", 600] == of_nodes["roc_auc", 1200], f"counts of one size: {of_nodes}")
    expect(of_nodes["roc_auc_exact", 600] < of_nodes["roc_auc_exact", 1200], f"exact scores to grow: {of_nodes}")


# ------------------------------------------------------------------------------------------- a company of three regions

REGIONS = ["Nord", "West", "Süd"]
CUSTOMERS = 900


def write_calls(folder):
    """Call records and customers in no order; returns who is where, and who leaves."""
    draw = random.Random(3)
    phones = [f"+49{number:08d}" for number in draw.sample(range(10**8), CUSTOMERS)]
    region = {phone: REGIONS[min(2, draw.randrange(4))] for phone in phones}
    leaves = {phone: draw.random() < 0.4 for phone in phones}
    with open(folder / "customers.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["phone", "region", "age", "contract_start", "monthly_fee", "leaves", "split"])
        for phone in phones:
            start = f"20{draw.randrange(10, 26)}-0{draw.randrange(1, 10)}-1{draw.randrange(10)}"
            fee = draw.gauss(30 if leaves[phone] else 45, 10)
            part = draw.choices(["train", "val", "test"], [5, 2, 3])[0]
            answer = "yes" if leaves[phone] else "no"
            out.writerow([phone, region[phone], draw.randrange(18, 90), start, f"{fee:.2f}", answer, part])
    groups = {(place, gone): [] for place in REGIONS for gone in [True, False]}
    for phone in phones:
        groups[region[phone], leaves[phone]].append(phone)
    with open(folder / "calls.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["call_id", "caller", "callee", "start", "duration_s"])
        for number in range(6 * CUSTOMERS):
            caller = draw.choice(phones)
            near = groups[region[caller], leaves[caller]]
            callee = draw.choice(near if draw.random() < 0.7 else phones)
            if callee != caller:
                start = f"2026-05-0{draw.randrange(1, 10)} 12:00:00"
                out.writerow([number, caller, callee, start, draw.randrange(900)])
    return region, leaves


COMPANYS_RUN = """\
[data]
path = "regions"

[model]
hidden = 16

[train]
epochs = 40
lr = 0.01
"""


def company(laconic):
    """Call records are read by who called whom, cut by region, and the page for the lawyers names what leaves."""
    folder = laconic.folder
    region, leaves = write_calls(folder)
    tables = ["calls.csv", "--nodes", "customers.csv", "--id", "phone", "--label", "leaves", "--dates", "days"]
    said = laconic("data", "check", *tables)
    expect("caller" in said and "callee" in said, f"who called whom named as the ends: {said}")
    cut = laconic.json("partition", *tables, "--symmetrise", "--part-column", "region", "--out", "regions")
    expect(sorted(cut["part_names"]) == sorted(REGIONS), f"a part a region: {cut['part_names']}")
    (folder / "run.toml").write_text(COMPANYS_RUN, encoding="utf-8")
    plan = laconic.json("plan", "run.toml", "--out", "lawyers.html")
    page = (folder / "lawyers.html").read_text(encoding="utf-8")
    for word in [*REGIONS, "monthly_fee", "contract_start", "once", "not encrypted"]:
        expect(word in page, f"{word} on the page")
    expect(not any(phone in page for phone in region), "nobody's number on the page")
    summary = laconic.json("train", "run.toml")
    expect(summary["bytes"]["total"] == plan["bytes"], f"{plan['bytes']} bytes sent, as the page says")
    expect(summary["metrics"]["test"]["accuracy"] > 0.7, f"more than guesses: {summary['metrics']['test']}")
    laconic("predict", "runs/run", "--out", "predicted.csv")
    rows = rows_of(folder / "predicted.csv")
    expect({row["id"] for row in rows} == set(region), "a row a customer, under the own number")
    expect(all(row["label"] == ("yes" if leaves[row["id"]] else "no") for row in rows), "the answers of the table")
    # A site's rows are its own customers: the table with parts in another order is matched by the number.
    with open(folder / "sites.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["phone", "region"], *sorted(region.items())])
    again = laconic.json("partition", *tables, "--symmetrise", "--file", "sites.csv", "--out", "sites")
    sizes = [[(part["nodes"], part["edges"]) for part in one["parts"]] for one in [cut, again]]
    expect(sizes[0] == sizes[1], f"the same parts from a table in another order: {sizes}")
    expect(cut["part_names"] == again["part_names"], "the same names of parts")
    accuracy, sent = summary["metrics"]["test"]["accuracy"], summary["bytes"]["total"]
    print(f"  accuracy {accuracy:.3f}, {sent} bytes left their regions")


# ------------------------------------------------------------------------------------------------------ the fraud team


def write_transfers(laconic, rows, version):
    """One version of the Delta table: what it replaces stays in the folder, and only the log says so."""
    table = laconic.folder / "transfers"
    columns = list(zip(*rows))
    try:
        import deltalake
        import pyarrow
    except ImportError:
        plain = laconic.folder / f"v{version}.csv"
        with open(plain, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["payer", "payee", "weight"], *rows])
        ends = ["--source", "payer", "--target", "payee"]
        laconic("data", "convert", plain.name, *ends, "--to", "parquet", "--out", f"v{version}")
        (table / "_delta_log").mkdir(parents=True, exist_ok=True)
        name = f"part-00000-{version}.snappy.parquet"
        edges = next((laconic.folder / f"v{version}").glob("edges*"))
        shutil.copy(edges, table / name)
        columns = [("source", "string"), ("target", "string"), ("weight", "double")]
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
        schema = {"id": "a", "format": {"provider": "parquet", "options": {}}, "partitionColumns": []}
        schema |= {"schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {}}
        actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": schema}]
        actions += [{"add": {"path": name, "partitionValues": {}, "size": edges.stat().st_size, "dataChange": True}}]
        if version:
            actions.append({"remove": {"path": f"part-00000-{version - 1}.snappy.parquet", "dataChange": True}})
        log = table / "_delta_log" / f"{version:020d}.json"
        log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    else:
        data = pyarrow.table(dict(zip(["payer", "payee", "weight"], columns)))
        deltalake.write_deltalake(str(table), data, mode="overwrite" if version else "error")


def fraud(laconic):
    """The current version of a Delta table is read, and no row of an older one."""
    draw = random.Random(4)
    accounts = [f"A{number:03d}" for number in range(200)]
    old = [(*draw.sample(accounts, 2), 1.0) for _ in range(500)]
    new = {tuple(draw.sample(accounts, 2)): float(draw.randrange(1, 50)) for _ in range(900)}
    write_transfers(laconic, old, 0)
    write_transfers(laconic, [(*ends, amount) for ends, amount in new.items()], 1)
    laconic("data", "check", "transfers")
    laconic("data", "convert", "transfers", "--to", "csv", "--out", "read")
    (edges,) = (laconic.folder / "read").glob("edges*")
    found = {}
    for row in rows_of(edges):
        source, target, weight = list(row.values())[:3]
        found[source, target] = float(weight)
    expect(found == new, f"{len(new)} transfers of the current version, not {len(found)}")
    print(f"  {len(found)} transfers of the current version, none of the {len(old)} of the one before")


# ------------------------------------------------------------------------------------------------------- the biologist

CELLS = 300
TYPES = ["B cell", "T cell", "monocyte"]
BIOLOGISTS_RUN = """\
[data]
path = "cells.npz"
split = { train = 0.5, val = 0.2 }

[model]
hidden = 16

[train]
epochs = 60
lr = 0.01
"""


def biologist(laconic):
    """Neighbours of single cells as a Matrix Market file, and their types as pandas writes them: row names first."""
    folder, draw = laconic.folder, random.Random(5)
    names = ["".join(draw.choices("ACGT", k=16)) + "-1" for _ in range(CELLS)]
    kinds = [draw.randrange(3) for _ in names]
    pairs = {}
    for cell, kind in enumerate(kinds):
        alike = [other for other, of in enumerate(kinds) if of == kind and other != cell]
        for other in draw.sample(alike, 5) + draw.sample(range(CELLS), 1):
            if other != cell:
                pairs[max(cell, other), min(cell, other)] = round(draw.uniform(0.1, 1), 6)
    with open(folder / "connectivities.mtx", "w", encoding="utf-8") as file:
        file.write("%%MatrixMarket matrix coordinate real symmetric\n%\n")
        file.write(f"{CELLS} {CELLS} {len(pairs)}\n")
        file.writelines(f"{row + 1} {column + 1} {weight}\n" for (row, column), weight in pairs.items())
    with open(folder / "obs.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["", "n_genes", "percent_mito", "cell_type"])
        for name, kind in zip(names, kinds):
            out.writerow([name, draw.randrange(500, 5000), f"{draw.gauss(3 + kind, 1):.4f}", TYPES[kind]])
    tables = ["connectivities.mtx", "--nodes", "obs.csv", "--id", "row", "--label", "cell_type"]
    laconic("data", "convert", *tables, "--out", "cells.npz")
    info = laconic.json("data", "info", "cells.npz")
    expect((info["nodes"], info["edges"]) == (CELLS, 2 * len(pairs)), f"both directions of {len(pairs)} pairs: {info}")
    (folder / "run.toml").write_text(BIOLOGISTS_RUN, encoding="utf-8")
    summary = laconic.json("train", "run.toml")
    expect(summary["bytes"]["total"] == 0, "one machine, so nothing is sent")
    laconic("predict", "runs/run", "--out", "types.csv")
    rows = rows_of(folder / "types.csv")
    expect([row["label"] for row in rows] == [TYPES[kind] for kind in kinds], "the types of the table, cell by cell")
    tested = [row for row in rows if row["split"] == "test"]
    right = sum(row["class"] == row["label"] for row in tested) / len(tested)
    expect(right > 0.7, f"more than guesses: {right}")
    print(f"  {right:.3f} of {len(tested)} cells that were left out")


def main():
    """Each user in a folder of its own."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("laconic", nargs="?", default="target/release/laconic", type=Path)
    arguments.add_argument("--pyg", action="store_true", help="compare the export with PyTorch Geometric, too")
    arguments.add_argument("--keep", type=Path, help="work in this folder and leave it there")
    arguments = arguments.parse_args()
    place = arguments.keep or Path(tempfile.mkdtemp(prefix="laconic-first-hour-"))
    users = {"engineer": lambda run: engineer(run, arguments.pyg), "researcher": researcher, "owner": owner}
    users |= {"company": company, "fraud team": fraud, "biologist": biologist}
    try:
        for name, play in users.items():
            print(f"== {name}", flush=True)
            (place / name).mkdir(parents=True)
            play(Laconic(arguments.laconic.resolve(), place / name))
    except (Failed, subprocess.CalledProcessError) as error:
        sys.exit(f"{name}: expected {error}")
    finally:
        if not arguments.keep:
            shutil.rmtree(place)
    print("all six got to the end")


if __name__ == "__main__":
    main()
