"""Documents: the reference is up to date, and the code of the guide and of docstrings runs.

Blocks of the guide run in their order, in one namespace and one folder. What needs a library that is not installed is
skipped, and so is what needs a name from there.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "python.md"
TOOL = ROOT / "tools" / "python_reference.py"
# Columns of tables that hold code.
CODE = ("code", "here", "of `run`")


def blocks(page: str) -> list[tuple[int, str]]:
    """The Python of a page, with the line where each block begins."""
    found = re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [(page[: block.start()].count("\n") + 1, block[1]) for block in found]


def cells(page: str) -> list[tuple[int, str]]:
    """The code in the tables of a page, with the line of each."""
    found, column = [], None
    for number, line in enumerate(page.splitlines(), 1):
        parts = [part.strip() for part in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not parts:
            column = None
        elif column is None and any(part in CODE for part in parts):
            column = next(place for place, part in enumerate(parts) if part in CODE)
        elif column is not None and not line.startswith("|--"):
            found += [(number, code) for code in re.findall(r"`([^`]+)`", parts[column])]
    return found


def stand_ins(folder: Path) -> dict[str, Callable[[], Any]]:
    """What the tables take for granted, and how it is made when something asks for it."""
    draw = np.random.default_rng(1)
    nodes = 60
    edges = draw.integers(0, nodes, (2, 300))
    y = np.arange(nodes) % 3
    x = (np.eye(3)[y] + draw.normal(size=(nodes, 3))).astype(np.float32)
    names = [f"p{number}" for number in range(nodes)]

    def networkx() -> Any:
        import networkx as nx

        graph = nx.gnm_random_graph(nodes, 150, seed=1)
        for node in graph:
            graph.nodes[node].update(age=float(node % 7), size=1.0, club="ab"[node % 2])
        return graph

    def igraph() -> Any:
        import igraph as ig

        graph = ig.Graph.Erdos_Renyi(n=nodes, m=150)
        graph.vs["age"], graph.vs["size"] = [float(number % 7) for number in range(nodes)], [1.0] * nodes
        graph.vs["club"] = ["ab"[number % 2] for number in range(nodes)]
        return graph

    def matrix() -> Any:
        import scipy.sparse

        return scipy.sparse.coo_array((np.ones(edges.shape[1]), edges), shape=(nodes, nodes))

    def cells() -> Any:
        import anndata

        made = anndata.AnnData(x)
        made.obs["cell_type"] = [f"type {number}" for number in y]
        made.obsp["connectivities"] = matrix().tocsr()
        return made

    def dgl_graph() -> Any:
        import dgl
        import torch

        graph = dgl.graph((torch.from_numpy(edges[0]), torch.from_numpy(edges[1])), num_nodes=nodes)
        graph.ndata["feat"], graph.ndata["label"] = torch.from_numpy(x), torch.from_numpy(y)
        return graph

    def people() -> Any:
        import pandas as pd

        return pd.DataFrame({"id": names, "age": x[:, 0], "plan": [f"plan {number}" for number in y]})

    def calls() -> Any:
        import pandas as pd

        return pd.DataFrame({"caller": [names[end] for end in edges[0]], "callee": [names[end] for end in edges[1]]})

    lines = ["caller,callee", *(f"p{source},p{target}" for source, target in edges.T)]
    (folder / "calls.csv").write_text("\n".join(lines) + "\n")
    lines = ["id,age,plan", *(f"{name},{age},plan {number}" for name, age, number in zip(names, x[:, 0], y))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    role = np.arange(nodes) % 4
    return {
        **{name: lambda value=value: value for name, value in {"edge_index": edges, "x": x, "y": y}.items()},
        **{name: lambda mask=mask: mask for name, mask in
           {"train": role < 2, "val": role == 2, "test": role == 3}.items()},
        "source": lambda: edges[0],
        "target": lambda: edges[1],
        "nx_graph": networkx,
        "ig_graph": igraph,
        "matrix": matrix,
        "cells": cells,
        "dgl_graph": dgl_graph,
        "people": people,
        "calls": calls,
    }


def needed(name: str, code: str) -> bool:
    """Whether code reads a name; a keyword, an attribute and a text are none."""
    return re.search(rf"(?<![\w.\"]){name}(?![\w\"]|=[^=])", code) is not None


def absent(error: ImportError) -> str | None:
    """The library that is not installed, if that is what went wrong."""
    asked = error.name or "".join(re.findall(r"pip install ([\w-]+)", str(error))[:1])
    top = asked.partition(".")[0].replace("-", "_")
    return top if top and importlib.util.find_spec(top) is None else None


class Session:
    """Pieces of code that run one after the other."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.lacking: dict[str, str] = {}

    def run(self, code: str, where: str) -> BaseException | str | None:
        """None, or what went wrong, or what it needs that is not here."""
        compiled = compile(code, where, "exec")
        try:
            exec(compiled, self.names)
        except ImportError as error:
            needs = absent(error)
            if needs is None:
                return error
            self.lacking.update({name: needs for name in re.findall(r"^(\w+)(?:, \w+)* = ", code, re.MULTILINE)})
            return f"needs {needs}"
        except NameError as error:
            return f"needs {self.lacking[error.name]}" if error.name in self.lacking else error
        except BaseException as error:
            return error
        return None


def judge(result: BaseException | str | None) -> None:
    if isinstance(result, str):
        pytest.skip(result)
    if result is not None:
        raise result


SMALL = lc.generate(nodes=200, classes=5, seed=1)
PAGE = GUIDE.read_text(encoding="utf-8")
BLOCKS = blocks(PAGE)
CELLS = cells(PAGE)


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, dict[int, Any]]]:
    """All blocks of the guide, run, and what came of each by its line."""
    folder = tmp_path_factory.mktemp("guide")
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    session = Session({"__name__": "guide"})
    with patch.context():
        yield session, {line: session.run(code, f"{GUIDE.name}:{line}") for line, code in BLOCKS}
    patch.undo()


@pytest.mark.parametrize("line", [line for line, _ in BLOCKS])
@pytest.mark.filterwarnings("ignore")
def test_the_code_of_the_guide_runs(line: int, guide: tuple[Session, dict[int, Any]]) -> None:
    judge(guide[1][line])


@pytest.mark.parametrize(("line", "code"), CELLS, ids=[str(line) for line, _ in CELLS])
@pytest.mark.filterwarnings("ignore")
def test_the_code_in_tables_of_the_guide_runs(line: int, code: str, guide: tuple[Session, dict[int, Any]]) -> None:
    session, _ = guide
    # A smaller graph than the text's, with the same columns and classes.
    names = {**session.names, "graph": SMALL}
    for name, make in stand_ins(Path.cwd()).items():
        if needed(name, code):
            try:
                names[name] = make()
            except ImportError as error:
                if absent(error) is None:
                    raise
                pytest.skip(f"needs {absent(error)}")
    asked = Session(names)
    asked.lacking = session.lacking
    judge(asked.run(code, f"{GUIDE.name}:{line}"))


def test_the_guide_has_code_and_tables() -> None:
    assert len(BLOCKS) > 10 and len(CELLS) > 30


def test_the_reference_is_what_the_docstrings_make() -> None:
    done = subprocess.run([sys.executable, str(TOOL), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def documented() -> Iterator[tuple[str, Any]]:
    """Everything public that may have a docstring, by its name."""
    yield "laconic_gnn", lc
    for name in lc.__all__:
        value = getattr(lc, name)
        yield name, value
        if isinstance(value, type):
            for member, of in vars(value).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", getattr(of, "__func__", of)
    yield "trackers", importlib.import_module("laconic_gnn.trackers")


def examples() -> dict[str, str]:
    """The code of docstrings, by what it is of."""
    tool = types.ModuleType("python_reference")
    tool.__file__ = str(TOOL)
    sys.modules[tool.__name__] = tool
    exec(compile(TOOL.read_text(encoding="utf-8"), str(TOOL), "exec"), tool.__dict__)
    found = {}
    for name, value in documented():
        for number, code in enumerate(tool.examples(inspect.getdoc(value) or "")):
            found[f"{name} {number}"] = code
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("ignore")
def test_the_examples_of_docstrings_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = EXAMPLES[name]
    given: dict[str, Any] = {"lc": lc, "np": np, "graph": SMALL, "y": SMALL.arrays()["labels"]}
    given.update({public: getattr(lc, public) for public in lc.__all__ if not hasattr(SMALL, public)})
    if "cora.npz" in code:
        SMALL.save("cora.npz")
    if re.search(r"\brun\.", code):
        given["run"] = lc.train(SMALL, epochs=3)
    try:
        given.update({name: make() for name, make in stand_ins(tmp_path).items() if needed(name, code) and name != "y"})
        if "matrix" in given:
            given["y"] = stand_ins(tmp_path)["y"]()
    except ImportError as error:
        pytest.skip(f"needs {absent(error)}")
    if "GridSearchCV" in code:
        given["GridSearchCV"] = pytest.importorskip("sklearn.model_selection").GridSearchCV
    judge(Session(given).run(EXAMPLES[name], name))
