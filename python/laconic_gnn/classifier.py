"""A classifier of nodes as scikit-learn expects one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from . import settings
from .errors import DataError
from .graph import Graph
from .run import Run, train

if TYPE_CHECKING:
    import numpy as np

# What is given anew for each fit; all else of a graph is shared between fits.
_OF_A_FIT = ("y", "labels", "num_classes", "class_names", "train_mask", "val_mask", "test_mask", "about")

# The arrays of graphs that classifiers have been fitted on: copied once, however many fits there are.
_ARRAYS: WeakKeyDictionary[Graph, dict[str, np.ndarray]] = WeakKeyDictionary()


class LaconicClassifier:
    """Classifies nodes of a graph, with scikit-learn's conventions; scikit-learn need not be installed.

    Samples are nodes: ``X`` holds numbers of nodes of ``graph``, from 0, ``[samples]`` or ``[samples, 1]``. So cross
    validation and searches split nodes, while the graph and its features stay whole::

        nodes = np.flatnonzero(y >= 0)
        search = GridSearchCV(LaconicClassifier(graph, parts=4), {"schedule": ["synchronous", "lazy"]})
        search.fit(nodes, y[nodes])

    Labels, masks and ids of ``graph`` are not looked at: ``fit`` knows the classes of ``X`` alone. As each run already
    uses all processors, ``n_jobs`` makes searches faster only with ``train={"threads": 1}`` or on small graphs.

    Args:
        graph: the graph, with features.
        validation: the share of ``X`` (as even as possible over classes) that chooses the best round and does not
            train; None: all of ``X`` trains, the last round counts, and none before it is evaluated.
        keys: as in :func:`laconic_gnn.train`; ``model__hidden=64`` is ``**{"model.hidden": 64}``, in the grids of
            searches as well.

    Attributes:
        classes_: the classes in ``y``, sorted, ``[classes]``.
        run_: the :class:`Run` of the last ``fit``; a pickled classifier leaves it behind.
    """

    classes_: np.ndarray
    run_: Run

    def __init__(self, graph: Graph, *, validation: float | None = None, **keys: Any) -> None:
        self.graph = graph
        self.validation = validation
        self._keys = keys

    def fit(self, X: Any, y: Any) -> LaconicClassifier:
        """Trains on nodes whose classes are known.

        Args:
            X: numbers of nodes, ``[samples]`` or ``[samples, 1]``.
            y: their classes, numbers or texts, ``[samples]``.

        Raises:
            DataError: if ``X`` does not hold nodes of the graph, or ``y`` not one class for each.
            ConfigError: if a key is unknown or a value makes no sense.
        """
        import numpy as np

        nodes = self._nodes(X)
        classes, numbers = _classes(y)
        if len(numbers) != len(nodes):
            raise DataError(f"y: expected {len(nodes)} classes, one for each node of X, found {len(numbers)}")
        if len(nodes) == 0:
            raise DataError("X: expected at least one node to train on, found none")
        labels = np.full(self.graph.nodes, -1, dtype=np.int64)
        labels[nodes] = numbers
        if np.any(labels[nodes] != numbers):
            twice = nodes[labels[nodes] != numbers][0]
            raise DataError(f"X: node {twice} is there twice with different classes; give each node one")
        validates = np.zeros(len(labels), dtype=bool)
        validates[nodes[_share(numbers, self.validation)]] = True
        graph = _relabelled(self.graph, labels, classes, (labels >= 0) & ~validates, validates)
        # Of two keys the later one wins, so that whoever wants evaluations can have them.
        keys: dict[str, Any] = {} if validates.any() else {"train.eval_every": 0}
        own: dict[str, Any] = {"progress": False}
        for name, value in self._keys.items():
            if name in settings.OTHERS:
                own[name] = value
            else:
                keys.update(settings.dotted({name.replace("__", "."): value}))
        run = train(graph, **own, **keys)
        probabilities = run.predictions().probabilities.astype(np.float64)
        self._probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        self.classes_, self.run_ = classes, run
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each node, ``[samples]``."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        classes: np.ndarray = self.classes_[likeliest]
        return classes

    def predict_proba(self, X: Any) -> np.ndarray:
        """How sure the model is of each class, ``[samples, classes]``, as in ``classes_``; rows add up to 1."""
        if not self.__sklearn_is_fitted__():
            raise _not_fitted("this LaconicClassifier has learned nothing yet: call fit(X, y) first")
        sure: np.ndarray = self._probabilities[self._nodes(X)]
        return sure

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of nodes (their share of ``sample_weight``, if given) whose class is the likeliest one."""
        import numpy as np

        return float(np.average(self.predict(X) == np.asarray(y).ravel(), weights=sample_weight))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What the classifier was constructed with, by name."""
        return {"graph": self.graph, "validation": self.validation, **self._keys}

    def set_params(self, **params: Any) -> LaconicClassifier:
        """Changes what the classifier was constructed with; the next ``fit`` follows it."""
        for name, value in params.items():
            if name in ("graph", "validation"):
                setattr(self, name, value)
            else:
                # As the last one, so that it wins over another spelling of the key.
                self._keys.pop(name, None)
                self._keys[name] = value
        return self

    def __sklearn_clone__(self) -> LaconicClassifier:
        """A classifier with the same parameters that has learned nothing. The graph is the same one: scikit-learn would
        copy it."""
        import copy

        keys = copy.deepcopy(self._keys, {id(self.graph): self.graph})
        return type(self)(self.graph, validation=self.validation, **keys)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn from 1.6 on asks estimators that inherit nothing from it."""
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(one_d_array=True),
        )

    # What scikit-learn before 1.6 looks at.
    _estimator_type = "classifier"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "run_"}

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value is not None}
        return f"LaconicClassifier({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def _nodes(self, X: Any) -> np.ndarray:
        """Samples as numbers of nodes, ``[samples]``."""
        import numpy as np

        nodes = np.asarray(X)
        if nodes.ndim == 2 and nodes.shape[1] == 1:
            nodes = nodes[:, 0]
        if nodes.ndim != 1:
            shape = list(nodes.shape)
            raise DataError(f"X: expected numbers of nodes, [samples] or [samples, 1], found the shape {shape}; "
                            "features belong into the graph")
        if nodes.dtype.kind == "b":
            raise DataError("X: expected numbers of nodes, found a mask; np.flatnonzero(mask) has them")
        if nodes.dtype.kind == "f" and np.all(nodes == np.floor(nodes)):
            nodes = nodes.astype(np.int64)
        if nodes.size and nodes.dtype.kind not in "iu":
            raise DataError(f"X: expected numbers of nodes, found {nodes.flat[0]!r}")
        if nodes.size and (nodes.min() < 0 or nodes.max() >= self.graph.nodes):
            wrong = nodes.min() if nodes.min() < 0 else nodes.max()
            raise DataError(f"X: expected numbers of nodes from 0 to {self.graph.nodes - 1}, found {wrong}")
        return nodes.astype(np.int64)


def _classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes that there are, sorted, and of each sample the number of its own."""
    import numpy as np

    given = np.asarray(y)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        hint = "; y.argmax(axis=1) makes classes of one column a class" if given.ndim == 2 else ""
        raise DataError(f"y: expected one class a node, [samples], found the shape {list(given.shape)}{hint}")
    if given.dtype.kind == "f" and not np.all(given == np.floor(given)):
        wrong = given[given != np.floor(given)][0]
        raise DataError(f"y: expected classes, found {wrong}; leave nodes without a class out of X")
    classes, numbers = np.unique(given, return_inverse=True)
    return classes, numbers


def _share(numbers: np.ndarray, share: float | None) -> np.ndarray:
    """Places of a share of samples, drawn the same way each time, as evenly as possible over classes."""
    import numpy as np

    if share is None:
        return np.empty(0, dtype=np.int64)
    if not 0 < share < 1:
        raise DataError(f"validation: expected a share of the nodes between 0 and 1, or None, found {share}")
    drawn = np.random.default_rng(0).permutation(len(numbers))
    by_class = drawn[np.argsort(numbers[drawn], kind="stable")]
    # The middle one of each 1 / share that follow each other.
    return by_class[((np.arange(round(share * len(numbers))) + 0.5) / share).astype(np.int64)]


def _relabelled(
    graph: Graph, labels: np.ndarray, classes: np.ndarray, trains: np.ndarray, validates: np.ndarray
) -> Graph:
    """The same graph with other labels and masks; features are those of the first time, without a copy."""
    import numpy as np

    if graph not in _ARRAYS:
        _ARRAYS[graph] = graph.arrays()
    arrays = _ARRAYS[graph]
    shared: dict[str, Any] = {
        name: array for name, array in arrays.items() if name not in _OF_A_FIT and not name.startswith("ids")
    }
    about = json.loads(arrays["about"].tobytes()) if "about" in arrays else {}
    about["classes"] = [str(name) for name in classes]
    return Graph.from_numpy(
        **shared,
        y=labels,
        num_classes=np.array([len(classes)]),
        about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        train_mask=trains,
        val_mask=validates,
        name=graph.name,
        keep_self_loops=True,
    )


def _not_fitted(text: str) -> Exception:
    """scikit-learn's own error where it is installed, which also is a ValueError."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return ValueError(text)
    error: Exception = NotFittedError(text)
    return error
