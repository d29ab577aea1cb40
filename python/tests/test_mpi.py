"""Scripts that mpirun has started."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import laconic_gnn as lc
import pytest
from graphs import arrays, program

KEYS = {"parts": 2, "epochs": 10, "schedule": "lazy", "seed": 3}

# Every worker is told of a mistake, and that MPI begins once. Each hears of rounds and knows the result.
SCRIPT = """
import sys
import laconic_gnn as lc
from graphs import arrays

graph = lc.Graph.from_numpy(**arrays())
heard = []
keys = {"parts": 2, "epochs": 10, "schedule": "lazy", "seed": 3, "transport": "mpi"}
run = lc.train(graph, out=sys.argv[1], on_round=lambda round: heard.append(round["round"]), **keys)
for other in ({"arch": "gat", "hidden": 7}, {}):
    try:
        lc.train(graph, out=sys.argv[1] + "-other", **keys, **other)
    except lc.LaconicError as error:
        print(f"\\n{type(error).__name__} {error}", flush=True)
print(f"\\ndigest {run.digest} {run.bytes} {len(heard)}", flush=True)
"""

has_mpi = "mpi" in program("--version").stdout
needs_mpi = pytest.mark.skipif(not has_mpi or not shutil.which("mpirun"), reason="the package was built without MPI")


@pytest.mark.skipif(has_mpi, reason="the package was built with MPI")
def test_a_package_without_mpi_says_how_one_with_it_is_made(tmp_path: Path) -> None:
    graph = lc.Graph.from_numpy(**arrays())
    with pytest.raises(lc.ConfigError, match="built without MPI; pip install"):
        lc.train(graph, transport="mpi", out=tmp_path / "run", **KEYS)


@needs_mpi
def test_processes_of_mpirun_are_the_workers_of_one_run(tmp_path: Path) -> None:
    alone = lc.train(lc.Graph.from_numpy(**arrays()), **KEYS)
    line = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, "-c", SCRIPT]
    done = subprocess.run([*line, str(tmp_path / "run")], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stderr
    said = [line.split() for line in done.stdout.splitlines() if line.startswith("digest")]
    assert [words[1] for words in said] == [alone.digest] * 2
    assert [int(words[2]) for words in said] == [alone.bytes] * 2
    assert len({words[3] for words in said}) == 1 and int(said[0][3]) > 0
    again = [line for line in done.stdout.splitlines() if line.startswith("PeerLost")]
    assert len(again) == 2 and all("joined the job before" in line for line in again)
    wrong = [line for line in done.stdout.splitlines() if line.startswith("ConfigError")]
    assert len(wrong) == 2 and all("hidden" in line for line in wrong)
