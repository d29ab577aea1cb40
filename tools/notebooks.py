"""Executes the notebooks of examples/notebooks, each in a folder of its own that goes with it.

    python3 tools/notebooks.py [NUMBER ...]             writes them with their outputs
    python3 tools/notebooks.py --check [NUMBER ...]     writes nothing; 1 if a cell fails

Needs laconic_gnn, nbclient and ipykernel, and what a notebook itself says under `needs` in its metadata; one whose
packages are not here is skipped, which is said. Numbers are those that the names begin with, otherwise all.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "notebooks"
BYTES_MAX = 300_000
# Seconds that a cell may take on a busy machine.
PATIENCE = 600


def main() -> int:
    parser = argparse.ArgumentParser(description="Executes the notebooks of examples/notebooks.")
    parser.add_argument("numbers", nargs="*", help="which ones, by the number that the name begins with [default: all]")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a cell fails")
    asked = parser.parse_args()
    paths = [path for path in sorted(FOLDER.glob("*.ipynb")) if not asked.numbers or path.name[0] in asked.numbers]
    if not paths:
        parser.error(f"no notebook of these numbers in {FOLDER.relative_to(ROOT)}")
    failed = 0
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        lacking = [name for name in notebook.metadata.get("needs", []) if importlib.util.find_spec(name) is None]
        if lacking:
            print(f"skipped: {path.name}, which needs {', '.join(lacking)}")
            continue
        fault = executed(notebook) or ("" if asked.check else written(notebook, path))
        failed += bool(fault)
        print(f"{path.name}: {fault or 'executed'}")
    return 1 if failed else 0


def executed(notebook: Any) -> str:
    """Runs all cells; what went wrong, or nothing."""
    with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
        client = NotebookClient(
            notebook,
            timeout=PATIENCE,
            resources={"metadata": {"path": folder}},
            record_timing=False,
            # Through files rather than open ports; by a whole path, since the kernel is in another folder.
            config=Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}}),
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return str(error)
    return ""


def written(notebook: Any, path: Path) -> str:
    """Writes a notebook without what is of this machine; what is wrong with it, or nothing."""
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # Progress and its seconds.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    text = nbformat.writes(notebook) + "\n"
    for place in (tempfile.gettempdir(), str(ROOT), str(Path.home())):
        if len(place) > 1 and place in text:
            return f"an output has {place}, a place on this machine; nothing is written"
    if len(text) > BYTES_MAX:
        return f"{len(text)} bytes, expected at most {BYTES_MAX}; nothing is written"
    path.write_text(text, encoding="utf-8")
    return ""


if __name__ == "__main__":
    sys.exit(main())
