#!/usr/bin/env python3
"""Makes the usual mistakes of new users and prints what the program answers, as a table in Markdown.

    python3 tests/acceptance/mistakes.py [target/release/laconic]

Every line is a command in a folder with the graph of docs/example/calls.sh, a run of three rounds and a few files that
are no configuration. What the answers have to say is tested in crates/laconic/tests/mistakes.rs.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

RUN = """[data]
path = "calls.csv"
nodes_path = "people.csv"
symmetrise = true

[train]
epochs = 3
"""

FILES = {
    "run.toml": RUN,
    "run.yaml": "data:\n  path: calls.csv\ntrain:\n  epochs: 3\n",
    "run.json": '{"data": {"path": "calls.csv"}}\n',
    "run.py": "epochs = 3\nsymmetrise = True\nfor name in names:\n    print(name)\n",
    "unquoted.toml": "[data]\npath = calls.csv\n",
    "empty.toml": "",
    "directed.toml": RUN.replace("symmetrise = true\n", ""),
    "ids.csv": "user_id,x,class,split\n5,0.5,a,train\n3,0.1,b,val\n4,0.3,a,test\n",
    "pairs.csv": "src,dst\n5,3\n3,4\n4,5\n",
    "gaps.csv": "id,x,class,split\n3,0.5,100,train\n4,0.1,205,val\n5,0.3,100,test\n",
    "commas.csv": 'id;x;class;split\n3;"0,5";a;train\n4;"0,1";b;val\n5;"0,3";a;test\n',
    "holes.csv": "id,x,class,split\n3,0.5,a,train\n4,n/a,b,val\n5,0.3,a,test\n",
    "unlabelled.csv": "id,x\n3,0.5\n4,0.1\n5,0.3\n",
    "notes.txt": "a b c\n",
}

# What a user does, and what was meant.
MISTAKES = [
    ("no such configuration", "train rum.toml"),
    ("no such data", "train run.toml --set data.path=cals.csv"),
    ("data for a configuration", "train calls.npz"),
    ("a table for a configuration", "train calls.csv"),
    ("a run's folder for a configuration", "train runs/run"),
    ("a configuration for data", "partition run.toml --parts 2 --out parts"),
    ("YAML", "train run.yaml"),
    ("JSON", "train run.json"),
    ("Python", "train run.py"),
    ("no quotes in a file", "train unquoted.toml"),
    ("no quotes in --set", "plan run.toml --set messages.forward={codec=quantised,bits=4}"),
    ("an empty file", "train empty.toml"),
    ("ids that nobody recognises", "data check pairs.csv --nodes ids.csv"),
    ("a column that is not there", "data check pairs.csv --nodes ids.csv --id user --label klass"),
    ("labels with gaps", "data check pairs.csv --nodes gaps.csv --symmetrise"),
    ("decimal commas", "data check pairs.csv --nodes commas.csv"),
    ("missing values", "data check pairs.csv --nodes holes.csv"),
    ("no labels", "train run.toml --set data.path=pairs.csv --set data.nodes_path=unlabelled.csv --set partition.parts=2"),
    ("edges one way", "data check calls.csv --nodes people.csv"),
    ("edges one way, trained", "plan directed.toml"),
    ("another program's layer", "plan run.toml --set model.arch=graphsage"),
    ("another spelling", "plan run.toml --set model.arch=GCN"),
    ("a layer that is not there", "plan run.toml --set model.arch=gatv2"),
    ("a slip in a key", "plan run.toml --set train.epocs=3"),
    ("another program's key", "plan run.toml --set train.learning_rate=0.1"),
    ("mini-batches", "plan run.toml --set train.batch_size=32"),
    ("a key without its section", "plan run.toml --set epochs=3"),
    ("a word for a number", "plan run.toml --set train.epochs=many"),
    ("a word for a rate", "plan run.toml --set train.lr=fast"),
    ("no rounds", "train run.toml --set train.epochs=0"),
    ("a key as an option", "train run.toml --epochs 5"),
    ("a key that nothing reads", "plan run.toml --set model.heads=4 --set model.arch=sage"),
    ("a start that nothing reads", "plan run.toml --set schedule.start=mlp"),
    ("American spelling", "plan run.toml --set messages.forward={codec=\"quantized\"}"),
    ("bits that are not there", "plan run.toml --set messages.forward={codec=\"quantised\",bits=3}"),
    ("a link that is not there", "plan run.toml --set transport.shape=wan"),
    ("a budget that is too small", "plan run.toml --set messages.budget=1kB"),
    ("more parts than nodes", "plan run.toml --set partition.parts=5000"),
    ("the output is there", "partition calls.npz --parts 2 --out there"),
    ("the run is there", "train run.toml"),
    ("no MPI in this build", "train run.toml --set transport.kind=mpi"),
    ("no format", "data info notes.txt"),
]

# What is said of a run that goes well, whatever its user did.
PROGRESS = re.compile(r"^reading |share 2 cores|: ids |: source |^ +(ids|labels|split|features|source|target) |^\S+\.csv$")


def main():
    """Prints the table."""
    program = Path(sys.argv[1] if len(sys.argv) > 1 else "target/release/laconic").resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def laconic(line):
            words = [program, *line.split()]
            ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            return ran.returncode, ran.stdout, ran.stderr

        subprocess.run(["sh", ROOT / "docs/example/calls.sh"], cwd=folder, check=True)
        for file, text in FILES.items():
            (folder / file).write_text(text, encoding="utf-8")
        (folder / "there").mkdir()
        (folder / "there/mine").write_text("mine\n", encoding="utf-8")
        for line in ["data convert calls.csv --nodes people.csv --symmetrise --out calls.npz", "train run.toml"]:
            rc, _, error = laconic(line)
            assert rc == 0, error
        print("| mistake | command | code | answer |\n| --- | --- | --: | --- |")
        for mistake, line in MISTAKES:
            rc, out, error = laconic(line)
            said = error[error.find("laconic: ") :] if "laconic: " in error else error + out
            said = [text for text in said.splitlines() if text.strip() and not PROGRESS.search(text)]
            answer = "<br>".join(said[: 6 if rc else 2]).replace(str(folder.resolve()), "…").replace(name, "…").replace("|", "\\|")
            print(f"| {mistake} | `{line}` | {rc} | {answer} |")


if __name__ == "__main__":
    main()
