"""Graphs: from arrays, from other libraries, from files."""

from __future__ import annotations

import html
import os
import re
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from . import _laconic, _program, checks, hints
from .errors import ConfigError, DataError, LaconicError
from .folders import Folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from .run import Run


_MASKS = ("train_mask", "val_mask", "test_mask")


class Graph:
    """A graph in memory: edges, and features, labels and masks of its nodes.

    Dense features that are C-contiguous float32 or bfloat16 stay where they are: whoever writes into that array
    afterwards changes the graph. All else is copied once.

    A notebook shows its sizes. Graphs are made by the functions ``from_...``, by :meth:`read` and by
    :func:`laconic_gnn.generate`.
    """

    def __init__(self, graph: _laconic.Graph, lender: Any = None) -> None:
        self._held = graph
        # A tensor whose memory is read in place, and where that is.
        is_tensor = str(getattr(lender, "layout", "")) == "torch.strided"
        self._lender = lender if is_tensor else None
        self._place = lender.data_ptr() if is_tensor else 0
        self._folder: Folder | None = None
        self._lock = threading.Lock()
        self._roles: list[dict[str, Any]] | None = None

    @property
    def _graph(self) -> _laconic.Graph:
        # A tensor that is shared with other processes moves, and what was there may be anything by now.
        if self._lender is not None and self._lender.data_ptr() != self._place:
            what = "its memory has moved since (share_memory_(), or sent to another process); make the graph anew"
            raise DataError(f"x: the tensor is read in place, and {what}")
        return self._held

    @classmethod
    def from_numpy(
        cls,
        edge_index: Any,
        x: Any = None,
        y: Any = None,
        *,
        train_mask: Any = None,
        val_mask: Any = None,
        test_mask: Any = None,
        ids: Any = None,
        num_nodes: int | None = None,
        edge_weight: Any = None,
        class_names: Any = None,
        name: str = "graph",
        undirected: bool | None = None,
        keep_self_loops: bool = False,
        **arrays: Any,
    ) -> Graph:
        """A graph of arrays: NumPy's, tensors, or what becomes an array.

        Args:
            edge_index: sources and targets, ``[2, edges]``, whole numbers from 0.
            x: features, ``[nodes, columns]``, dense or a sparse matrix of SciPy. Dense C-contiguous float32 and
                bfloat16 stay where they are.
            y: a class a node, ``[nodes]``, as numbers (below 0, NaN or None where unknown) or as texts; or 0 and 1,
                ``[nodes, classes]``, of several each.
            train_mask, val_mask, test_mask: who trains, validates and tests: truth values, ``[nodes]`` (or ``[nodes,
                splits]``), or the numbers of nodes.
            ids: your own names of nodes, ``[nodes]``: whole numbers, or anything else as texts. No two are the same.
            num_nodes: where the last nodes have no edges, features or labels.
            edge_weight: a weight an edge, ``[edges]``.
            class_names: what classes are called, in the order of their numbers.
            name: what messages and reports call the graph.
            undirected: adds the other direction of every edge. False says that edges lead one way; None does too, and
                warns where they look as if each were one of an undirected graph.
            keep_self_loops: keeps edges from a node to itself.
            arrays: further arrays of the interchange format, such as ``edge_type`` (``docs/formats.md``).

        Raises:
            DataError: if an array does not fit the others; the message names it, and what would.

        Example:
            edge_index = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
            graph = lc.Graph.from_numpy(edge_index, np.eye(4, dtype=np.float32), ["a", "b", "a", "b"], undirected=True)
            print(graph.class_names)
        """
        from .sources import numpy as source

        given = {
            "edge_index": edge_index,
            "x": x,
            "y": y,
            "train_mask": train_mask,
            "val_mask": val_mask,
            "test_mask": test_mask,
            "ids": ids,
            "num_nodes": num_nodes,
            "edge_weight": edge_weight,
            "class_names": class_names,
            **arrays,
        }
        plain = source.arguments(given)
        if undirected is None and "directed" not in plain:
            checks.one_way(plain["edge_index"])
        typed = "edge_type" in plain or "node_type" in plain
        try:
            graph = _laconic.Graph.from_arrays(
                name, plain, typed=typed, symmetrise=bool(undirected), keep_self_loops=keep_self_loops
            )
        except DataError as error:
            raise DataError(checks.explained(str(error), plain, source.shapes(plain))) from None
        return cls(graph, arrays.get("features") if x is None else x)

    @classmethod
    def from_pyg(cls, data: Any, **more: Any) -> Graph:
        """A graph of a ``torch_geometric.data.Data`` or ``HeteroData``: edges with weights and types, features, labels and
        masks; ``adj_t`` where there is no ``edge_index``. ``more`` is as in :meth:`from_numpy`.

        Raises:
            DataError: if a tensor is on a GPU, or does not fit the others; the message says what would.
        """
        from .sources import pyg

        graph = cls.from_numpy(**{"undirected": False, **pyg.arguments(data), **more})
        return cls(graph._held, None if "x" in more else data.to_dict().get("x"))

    @classmethod
    def from_scipy(cls, adjacency: Any, x: Any = None, y: Any = None, **more: Any) -> Graph:
        """A graph of a sparse matrix or array of SciPy, ``[nodes, nodes]``.

        Each stored value of row ``i`` and column ``j``, also 0, is an edge from ``i`` to ``j``; values that are not all
        1 are weights. ``x`` (dense or sparse), ``y`` and ``more`` are as in :meth:`from_numpy`.

        Raises:
            DataError: if the matrix is dense or not square.

        Example:
            graph = lc.Graph.from_scipy(matrix, x, y, undirected=True)
        """
        from .sources import scipy

        return cls.from_numpy(**{**scipy.arguments(adjacency, x, y), **more})

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        x: Any = None,
        y: Any = None,
        *,
        weight: str | None = "weight",
        split: str | None = None,
        **more: Any,
    ) -> Graph:
        """A graph of NetworkX; its nodes are the ids, in its order.

        Args:
            graph: with or without directions; parallel edges are one edge with the sum of their weights.
            x: features: an array, ``[nodes, columns]``, or names of attributes of nodes, such as ``["age", "size"]``.
            y: labels: an array, ``[nodes]``, or the name of an attribute.
            weight: the attribute of edges that is their weight, 1 where only some have it.
            split: the attribute of nodes that is train, val or test.
            more: as in :meth:`from_numpy`; masks may be names of attributes.

        Raises:
            DataError: if a node lacks an attribute, or it is no number.

        Example:
            graph = lc.Graph.from_networkx(nx_graph, ["age", "size"], "club")
        """
        from .sources import networkx

        masks = {name: more.pop(name) for name in _MASKS if name in more}
        return cls.from_numpy(**{**networkx.arguments(graph, x, y, weight=weight, split=split, **masks), **more})

    @classmethod
    def from_igraph(
        cls,
        graph: Any,
        x: Any = None,
        y: Any = None,
        *,
        ids: Any = None,
        weight: str | None = "weight",
        split: str | None = None,
        **more: Any,
    ) -> Graph:
        """A graph of igraph, in the order of its vertices.

        Args:
            graph: with or without directions; parallel edges are one edge with the sum of their weights.
            x: features: an array, ``[nodes, columns]``, or names of attributes of vertices.
            y: labels: an array, ``[nodes]``, or the name of an attribute.
            ids: an array, or the name of an attribute; without it ``name``, where vertices have that.
            weight: the attribute of edges that is their weight, 1 where only some have it.
            split: the attribute of vertices that is train, val or test.
            more: as in :meth:`from_numpy`; masks may be names of attributes.

        Raises:
            DataError: if a vertex lacks an attribute, or it is no number.
        """
        from .sources import igraph

        masks = {name: more.pop(name) for name in _MASKS if name in more}
        found = igraph.arguments(graph, x, y, ids=ids, weight=weight, split=split, **masks)
        return cls.from_numpy(**{**found, **more})

    @classmethod
    def from_dgl(
        cls, graph: Any, x: str = "feat", y: str = "label", *, weight: str | None = None, **more: Any
    ) -> Graph:
        """A graph of DGL, of one type of nodes and edges or of several; masks are its ``train_mask`` and so on.

        Args:
            graph: a ``DGLGraph`` in main memory.
            x: the features among the data of nodes.
            y: the labels among them.
            weight: the weights among the data of edges; without it ``weight``, ``w`` or ``edge_weight``, if there is
                one.
            more: as in :meth:`from_numpy`.

        Raises:
            DataError: if the graph is on a GPU, or has no data of a name that was given.
        """
        from .sources import dgl

        return cls.from_numpy(**{"undirected": False, **dgl.arguments(graph, x, y, weight=weight), **more})

    @classmethod
    def from_anndata(
        cls,
        cells: Any,
        label: str | None = None,
        *,
        key: str = "connectivities",
        features: str | None = None,
        split: str | None = None,
        **more: Any,
    ) -> Graph:
        """Cells with their neighbours; ``obs_names`` are the ids.

        Args:
            cells: an ``AnnData`` with a matrix of neighbours, such as ``scanpy.pp.neighbors`` adds.
            label: the column of ``obs`` with the classes, such as ``"cell_type"``.
            key: the matrix of ``obsp`` whose entries are edges and their weights.
            features: the matrix of ``obsm`` with the features, or ``"X"``; without it ``X_pca`` where it is there, else
                ``X``.
            split: the column of ``obs`` that is train, val or test.
            more: as in :meth:`from_numpy`.

        Raises:
            DataError: if there is no such matrix or column; the message lists those there are.
        """
        from .sources import anndata

        found = anndata.arguments(cells, label, key=key, features=features, split=split)
        return cls.from_numpy(**{**found, **more})

    @classmethod
    def from_arrow(
        cls,
        edges: Any,
        nodes: Any = None,
        *,
        name: str = "graph",
        like: Run | str | os.PathLike[str] | None = None,
        **flags: Any,
    ) -> Graph:
        """A graph of tables: data frames of pandas or polars, relations of DuckDB, tables of pyarrow, and whatever else
        has Arrow's ``__arrow_c_stream__``.

        Columns become edges, features, labels and splits by the rules, flags and messages of ``laconic data convert``;
        :attr:`roles` says which became what.

        Args:
            edges: a row an edge: two columns of ends, perhaps a weight and a relation.
            nodes: a row a node: its id, features, label and split.
            name: what messages and reports call the graph.
            like: a run, or its folder, that is to predict this graph: the columns and classes of ``nodes`` become those of its
                model. A text that the run did not know is 0 in all columns of its kind, and labels and split may be missing.
            flags: those of ``laconic data convert`` with underscores, such as ``label="genre"``, ``undirected=True``.

        Raises:
            DataError: with what is wrong with a table; its columns are named.
            ImportError: if neither the table nor an installed package can write it (pyarrow or polars can).

        Example:
            graph = lc.Graph.from_arrow(calls, people, label="plan", undirected=True)
            print(*graph.roles, sep="\\n")
        """
        from .sources import arrow

        with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
            arrow.write("edges", edges, os.path.join(folder, "edges.parquet"))
            if nodes is not None:
                arrow.write("nodes", nodes, os.path.join(folder, "nodes.parquet"))
                flags["nodes"] = "nodes.parquet"
            return cls._converted("edges.parquet", {**flags, "like": _of_run(like)}, name, where=folder)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        typed: bool = False,
        undirected: bool = False,
        keep_self_loops: bool = False,
        like: Run | str | os.PathLike[str] | None = None,
        **flags: Any,
    ) -> Graph:
        """Reads a file or folder in any format that ``laconic data info`` reads.

        Args:
            path: an ``.npz``, an edge list (``.csv``, ``.parquet``), a matrix (``.mtx``), a folder of OGB …
            typed: tells types of edges and nodes apart where the data have them.
            undirected: adds the other direction of every edge.
            keep_self_loops: keeps edges from a node to itself.
            like: a run, or its folder, that is to predict this graph; of tables, as in :meth:`from_arrow`.
            flags: further ones of ``laconic data convert`` with underscores, such as ``nodes="people.csv"``,
                ``label="genre"``, ``ignore=["phone"]``.

        Raises:
            DataError: with the file, the place in it, and what was expected there.

        Example:
            graph = lc.Graph.read("calls.csv", nodes="people.csv", label="plan", undirected=True)
        """
        path = os.fspath(path)
        if like is not None:
            flags["like"] = _of_run(like)
        if not flags:
            return cls(
                _laconic.Graph.read(path, typed=typed, symmetrise=undirected, keep_self_loops=keep_self_loops)
            )
        flags["keep_self_loops"] = keep_self_loops
        name = os.path.splitext(os.path.basename(os.path.normpath(path)))[0]
        return cls._converted(path, {**flags, "typed": typed, "undirected": undirected}, name)

    @classmethod
    def _converted(
        cls, path: str, flags: Mapping[str, Any], name: str, where: str | os.PathLike[str] | None = None
    ) -> Graph:
        """What the program makes of data and flags; of tables that were written here, in the folder ``where``."""

        def named(text: str) -> str:
            # Those are files that nobody has given: the arguments are called so.
            return text if where is None else re.sub(r"\b(edges|nodes)\.parquet\b", r"\1", text)

        with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
            file = os.path.join(folder, f"{name}.npz")
            try:
                said = _program.call("data", "convert", path, "--out", file, *_program.flags(flags), where=where)
            except LaconicError as error:
                raise type(error)(hints.of_arguments(named(str(error)))) from None
            graph = cls(_laconic.Graph.read(file, typed=bool(flags.get("typed")), keep_self_loops=True))
        graph._roles = [{**role, "table": named(role["table"])} for role in said["roles"]]
        # Nobody looks at roles of what is only to be predicted.
        for role in graph._roles if flags.get("like") else ():
            if role["role"] == "features" and "warning" in role:
                checks.note(f"{role['table']}: {role['warning']}")
        return graph

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph as one ``.npz``, which :meth:`read` and the program take; an older file is replaced."""
        self._graph.save(os.fspath(path))

    def arrays(self) -> dict[str, np.ndarray]:
        """The graph as arrays by the names of the interchange format (``docs/formats.md``).

        Returns:
            ``edge_index``, ``[2, edges]``, with a column for every direction of an edge; ``features``, ``[nodes,
            columns]``, or ``features_data`` and so on where they are sparse; ``labels``, ``[nodes]`` or ``[nodes,
            classes]``; masks of 0 and 1, ``[nodes]``; and what else the graph has. All of them are copies.
        """
        import numpy as np

        with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
            path = os.path.join(folder, "graph.npz")
            self.save(path)
            with np.load(path) as file:
                return {name: file[name] for name in file.files}

    def _file(self) -> str:
        """The graph as a file: the one that was read, or one that is written now and goes with this object."""
        source = self._graph.source
        if source is not None:
            return os.fspath(source)
        # Several threads may ask.
        with self._lock:
            if self._folder is None:
                folder = Folder()
                self.save(folder.path(f"{file_name(self.name)}.npz"))
                self._folder = folder
            return self._folder.path(f"{file_name(self.name)}.npz")

    def info(self) -> dict[str, Any]:
        """Figures of the graph: degrees, features, labels, splits, as ``laconic data info --json`` prints them
        (``docs/json.md``)."""
        return _program.call("data", "info", *self._words())

    def check(self) -> dict[str, Any]:
        """What is wrong or unusual, as ``laconic data check --json`` prints it (``docs/json.md``): ``findings``, and
        how many of them are ``errors``. No exception is raised for them."""
        return _program.call("data", "check", *self._words())

    def partition(self, parts: int, method: str = "random", **flags: Any) -> Partition:
        """Who would own which node, and what that costs.

        Args:
            parts: how many parts, one worker each.
            method: ``random``, ``multilevel`` (METIS), ``super_node`` or ``streaming``.
            flags: further ones of ``laconic partition`` with underscores, such as ``seed=1``, ``balance_train=True``.

        Raises:
            ConfigError: if there is no such method or flag.

        Example:
            print(graph.partition(4, "multilevel", balance_train=True))
        """
        import numpy as np

        with tempfile.TemporaryDirectory(prefix="laconic-") as folder:
            file = os.path.join(folder, "assignment.txt")
            words = _program.flags({"parts": parts, "method": method, **flags, "assignment": file})
            said = _program.call("partition", *self._words(), *words)
            return Partition(np.loadtxt(file, dtype=np.int64, ndmin=1), said)

    def _words(self) -> list[str]:
        """The graph in a command line of the program."""
        reading = self._reading()
        flags = {"typed": reading.get("data.typed"), "keep_self_loops": reading.get("data.keep_self_loops")}
        return [self._file(), *_program.flags(flags)]

    def _keys(self) -> dict[str, Any]:
        """The graph in a configuration."""
        return {"data.path": self._file(), **self._reading()}

    def _reading(self) -> dict[str, Any]:
        """How its file is read: what was written here has the edges that are to be there, and no others."""
        keys = {"data.typed": self._graph.is_typed, "data.keep_self_loops": self._graph.keeps_self_loops}
        return {key: True for key, value in keys.items() if value}

    def to_pyg(self) -> Any:
        """The graph as a ``torch_geometric.data.Data``, or a ``HeteroData`` where nodes or edges have types."""
        from .sources import pyg

        return pyg.data(self)

    @property
    def name(self) -> str:
        """What messages and reports call the graph."""
        return self._graph.name

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self._graph.nodes

    @property
    def edges(self) -> int:
        """The number of directed edges: an undirected one counts twice."""
        return self._graph.edges

    @property
    def features(self) -> int:
        """The number of feature columns, 0 where there are none."""
        return self._graph.features

    @property
    def classes(self) -> int:
        """The number of classes, 0 where nothing is labelled."""
        return self._graph.classes

    @property
    def class_names(self) -> list[str]:
        """What each class is called, in their order."""
        return self._graph.class_names

    @property
    def ids(self) -> np.ndarray:
        """What nodes are called, ``[nodes]``: numbers or texts; their rows where nothing else was said."""
        import numpy as np

        ids = self._graph.ids
        return np.arange(self.nodes) if ids is None else np.asarray(ids)

    @property
    def roles(self) -> list[str]:
        """What became of arrays and columns, a line each table."""
        if self._roles is not None:
            return [f"{role['table']}: {role['role']}: {role['text']}" for role in self._roles]
        return self._graph.roles

    def __deepcopy__(self, _: Any) -> Graph:
        # Nothing changes a graph.
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.name, self.arrays())

    def __repr__(self) -> str:
        return repr(self._graph)

    def _repr_html_(self) -> str:
        rows = [("nodes", self.nodes), ("edges", self.edges), ("features", self.features), ("classes", self.classes)]
        cells = "".join(f"<tr><td>{what}</td><td style='text-align:right'>{count:,}</td></tr>" for what, count in rows)
        return f"<table><caption>{html.escape(self.name)}</caption>{cells}</table>"


class Partition:
    """Who owns which node.

    Attributes:
        assignment: the number of each node's part, ``[nodes]``.
        report: what it costs, as ``laconic partition --json`` says it: edges and nodes of each part, ``cut_edges``,
            ``halo_rows``, balance (``docs/json.md``).
    """

    def __init__(self, assignment: np.ndarray, report: dict[str, Any]) -> None:
        self.assignment = assignment
        self.report = report

    def __repr__(self) -> str:
        cut, parts = self.report["cut_share"], len(self.report["parts"])
        return f"Partition({parts} parts, {100 * cut:.1f} % of edges cut)"


# Keys of data that are about what is in memory, too.
_OF_MEMORY = ("data.split", "data.split_index", "data.features", "data.inductive")


def taken(graph: Any, keys: Mapping[str, Any]) -> tuple[Graph | None, dict[str, Any]]:
    """What was given as a graph, or the path of one, and the keys of the run.

    Raises:
        DataError: if it is neither.
        ConfigError: if a key is about how a file is read, and the graph is in memory.
    """
    if isinstance(graph, (str, os.PathLike)):
        # Whatever the configuration says about reading is about this file.
        return None, {**keys, "data.path": graph}
    if graph is None or isinstance(graph, Graph):
        for key in keys if graph is not None else ():
            if key.startswith("data.") and key not in _OF_MEMORY:
                what = "about how files are read, and the graph has been; say it where it is made, or give its path here"
                raise ConfigError(f"{key}: {what}")
        return graph, dict(keys)
    library = type(graph).__module__.partition(".")[0]
    known = {
        "anndata": "from_anndata(adata)",
        "dgl": "from_dgl(graph)",
        "igraph": "from_igraph(graph)",
        "networkx": "from_networkx(graph)",
        "numpy": "from_numpy(edge_index, x, y)",
        "scipy": "from_scipy(adjacency)",
        "torch_geometric": "from_pyg(data)",
    }
    how = known.get(library, "from_arrow(edges, nodes)" if hasattr(graph, "__arrow_c_stream__") else "read(path)")
    raise DataError(f"graph: expected a Graph, found {type(graph).__name__}; lc.Graph.{how} makes one")


def _of_run(run: Run | str | os.PathLike[str] | None) -> str | None:
    """The folder of a run, wherever the program is started."""
    folder = run if run is None or isinstance(run, (str, os.PathLike)) else run.folder
    return None if folder is None else os.path.abspath(folder)


def _restored(name: str, arrays: dict[str, Any]) -> Graph:
    """A graph that was pickled."""
    return Graph.from_numpy(**arrays, name=name, keep_self_loops=True)


def file_name(name: str) -> str:
    """A name as files have it."""
    return re.sub(r"[^\w.-]+", "_", name) or "graph"
