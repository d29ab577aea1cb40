"""The classifier: scikit-learn's conventions over nodes of a graph."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays
from laconic_gnn.classifier import LaconicClassifier

NODES = np.arange(200)
NAMES = np.array(["ann", "bob", "cem"])
KEYS: dict[str, Any] = {"parts": 2, "epochs": 8, "model__hidden": 8}


def graph(**other: Any) -> lc.Graph:
    """The graph of all tests here, without labels and masks unless they are given."""
    given = arrays()
    return lc.Graph.from_numpy(given["edge_index"], given["x"], undirected=True, **other)


def labels() -> np.ndarray:
    return arrays()["y"]


@pytest.fixture(scope="module")
def fitted() -> LaconicClassifier:
    return LaconicClassifier(graph(), **KEYS).fit(NODES[:120], NAMES[labels()[:120]])


def test_it_learns_what_a_run_with_the_same_labels_and_masks_learns(fitted: LaconicClassifier) -> None:
    trains = NODES < 120
    same = graph(y=np.where(trains, labels(), -1), train_mask=trains)
    run = lc.train(same, parts=2, model={"hidden": 8}, train={"epochs": 8})
    assert fitted.run_.digest == run.digest
    # Nothing validates, so only the last round is evaluated.
    assert fitted.run_.bytes < run.bytes and fitted.run_.summary["metrics"]["best_round"] == 8
    sure = fitted.predict_proba(NODES)
    np.testing.assert_allclose(sure, run.predictions().probabilities, atol=1e-5)
    assert sure.shape == (200, 3) and np.allclose(sure.sum(axis=1), 1, atol=1e-12)


def test_predictions_are_the_likeliest_of_the_classes_in_y(fitted: LaconicClassifier) -> None:
    assert fitted.classes_.tolist() == NAMES.tolist()
    some = NODES[::-7]
    assert fitted.predict(some).tolist() == NAMES[fitted.predict_proba(some).argmax(axis=1)].tolist()
    assert fitted.predict(some[:, None]).tolist() == fitted.predict(some.astype(float)).tolist()
    right = fitted.predict(NODES[120:]) == NAMES[labels()[120:]]
    assert fitted.score(NODES[120:], NAMES[labels()[120:]]) == right.mean() > 0.5
    weights = np.arange(80) + 1.0
    assert fitted.score(NODES[120:], NAMES[labels()[120:]], weights) == pytest.approx(right @ weights / weights.sum())


def test_labels_masks_and_ids_of_the_graph_are_not_seen() -> None:
    draw = np.random.default_rng(5)
    role = draw.integers(0, 3, 200)
    other = graph(
        y=draw.integers(0, 7, 200),
        class_names=[f"class {place}" for place in range(7)],
        train_mask=role == 0,
        val_mask=role == 1,
        ids=[f"node {place}" for place in NODES[::-1]],
    )
    fits = [LaconicClassifier(one, **KEYS).fit(NODES[:90], labels()[:90]) for one in (graph(), other)]
    assert fits[0].run_.digest == fits[1].run_.digest
    np.testing.assert_array_equal(fits[0].predict_proba(NODES), fits[1].predict_proba(NODES))


@pytest.mark.parametrize("names", [[-1, 1, 5], [0.0, 1.0, 2.0], ["", "x", "é"]])
def test_classes_may_be_any_whole_numbers_or_texts(names: list[Any]) -> None:
    names = np.array(names)
    found = LaconicClassifier(graph(), **KEYS).fit(NODES, names[labels()])
    assert found.classes_.tolist() == names.tolist() and found.score(NODES, names[labels()]) > 0.5


@pytest.mark.parametrize("method", [{}, {"schedule": "lazy"}, {"schedule": "averaging"}, {"batch": {"size": 40}}])
def test_a_share_validates_evenly_over_classes_and_does_not_train(method: dict[str, Any]) -> None:
    found = LaconicClassifier(graph(), validation=0.25, **KEYS, **method).fit(NODES, labels())
    summary = found.run_.summary
    assert sum(summary["parts"]["val"]["count"]) == 50
    support = [line["support"] for line in summary["classes"]["val"]]
    assert np.abs(np.array(support) - np.bincount(labels()) / 4).max() <= 1
    assert "accuracy" in summary["metrics"]["val"]
    without = LaconicClassifier(graph(), **KEYS, **method).fit(NODES, labels()).run_.summary
    assert without["parts"]["val"]["count"] == [0, 0] and "accuracy" not in without["metrics"]["val"]
    assert without["metrics"]["best_round"] == without["rounds"]


def test_features_are_taken_from_the_graph_once_for_all_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[lc.Graph] = []
    arrays_of = lc.Graph.arrays
    monkeypatch.setattr(lc.Graph, "arrays", lambda self: asked.append(self) or arrays_of(self))
    found = LaconicClassifier(graph(), **KEYS)
    for share in (50, 100):
        found.fit(NODES[:share], labels()[:share])
        found.__sklearn_clone__().fit(NODES, labels())
    assert asked == [found.graph]


MISTAKES: dict[str, tuple[Any, Any, str]] = {
    "features for nodes": (arrays()["x"], labels(), r"X: .*\[200, 3\]; features belong into the graph"),
    "a mask for nodes": (NODES < 9, labels(), r"X: .*np.flatnonzero\(mask\)"),
    "a node beyond": ([0, 200], [0, 1], "X: .*from 0 to 199, found 200"),
    "a negative node": ([0, -1], [0, 1], "X: .*from 0 to 199, found -1"),
    "names for nodes": (["ann"], [0], "X: .*found .*ann"),
    "half a node": ([0.5, 1], [0, 1], "X: .*found .*0.5"),
    "no nodes": ([], [], "X: expected at least one node"),
    "fewer classes": ([1, 2, 3], [0, 1], "y: expected 3 classes"),
    "one-hot classes": ([1, 2], np.eye(2), r"y: .*y.argmax\(axis=1\)"),
    "unknown classes": ([1, 2], [0, np.nan], "y: expected classes, found nan"),
    "numbers to regress": ([1, 2], [0, 1.5], "y: expected classes, found 1.5"),
    "two classes of a node": ([1, 2, 1], [0, 1, 1], "X: node 1 is there twice"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_errors_that_name_the_argument(mistake: str) -> None:
    nodes, classes, said = MISTAKES[mistake]
    with pytest.raises(lc.DataError, match=said):
        LaconicClassifier(graph(), **KEYS).fit(nodes, classes)


def test_a_share_that_is_none_and_a_misspelt_key_are_errors_that_name_them() -> None:
    with pytest.raises(lc.DataError, match="validation: .*found 1.5"):
        LaconicClassifier(graph(), validation=1.5).fit(NODES, labels())
    with pytest.raises(lc.ConfigError, match="hidden"):
        LaconicClassifier(graph(), model__hiden=4).fit(NODES, labels())


def test_parameters_come_back_as_they_were_given_and_the_last_spelling_wins() -> None:
    found = LaconicClassifier(graph(), **{"model.hidden": 4}, validation=0.5, train={"epochs": 2})
    assert found.get_params() == {
        "graph": found.graph, "validation": 0.5, "model.hidden": 4, "train": {"epochs": 2}
    }
    assert found.set_params(model__hidden=16, validation=None) is found and found.validation is None
    found.fit(NODES, labels())
    assert found.run_.summary["config"]["model"]["hidden"] == 16
    assert "model__hidden=16" in repr(found) and "validation" not in repr(found)


def test_without_scikit_learn_it_imports_learns_and_says_that_it_has_learned_nothing() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import test_classifier as t\n"
        "found = t.LaconicClassifier(t.graph(), **t.KEYS)\n"
        "try: found.predict([0])\n"
        "except ValueError as error: print(error)\n"
        "print(found.fit(t.NODES, t.labels()).score(t.NODES, t.labels()) > 0.5)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "call fit(X, y) first" in done.stdout and done.stdout.endswith("True\n")


def test_scikit_learn_takes_it_for_a_classifier_that_is_to_be_fitted(fitted: LaconicClassifier) -> None:
    base = pytest.importorskip("sklearn.base")
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    assert base.is_classifier(fitted)
    check_is_fitted(fitted)
    again = base.clone(fitted)
    assert again.graph is fitted.graph and again.get_params() == fitted.get_params() and again is not fitted
    with pytest.raises(NotFittedError):
        check_is_fitted(again)
    with pytest.raises(NotFittedError):
        again.predict(NODES)
    nested = LaconicClassifier(fitted.graph, train={"epochs": 2})
    base.clone(nested).get_params()["train"]["epochs"] = 3
    assert nested.get_params()["train"] == {"epochs": 2}


def test_cross_validation_splits_nodes_by_class_and_scores_what_was_left_out() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    found, y = LaconicClassifier(graph(), **KEYS), NAMES[labels()]
    scores = selection.cross_val_score(found, NODES, y, cv=3)
    by_hand = []
    for train, test in selection.StratifiedKFold(3).split(NODES, y):
        by_hand.append(LaconicClassifier(graph(), **KEYS).fit(NODES[train], y[train]).score(NODES[test], y[test]))
    assert scores.tolist() == by_hand
    columns = selection.cross_val_score(found, NODES[:, None], y, cv=3, scoring="roc_auc_ovr")
    assert columns.min() > 0.6


def test_a_grid_is_searched_over_keys_of_the_configuration_and_in_a_pipeline() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.pipeline import Pipeline

    grid = {"schedule": ["synchronous", "lazy"], "model__hidden": [2, 16]}
    search = selection.GridSearchCV(LaconicClassifier(graph(), **KEYS), grid, cv=2).fit(NODES, labels())
    assert len(set(search.cv_results_["mean_test_score"])) > 1 and search.best_params_ in search.cv_results_["params"]
    best = search.best_estimator_.run_.summary["config"]
    assert best["model"]["hidden"] == search.best_params_["model__hidden"]
    assert best["schedule"]["kind"] == search.best_params_["schedule"]
    assert search.predict(NODES[:5]).shape == (5,) and search.classes_.tolist() == [0, 1, 2]
    assert "LaconicClassifier" in search._repr_html_()

    pipeline = Pipeline([("gnn", LaconicClassifier(graph(), **KEYS))])
    inner = selection.GridSearchCV(pipeline, {f"gnn__{name}": values for name, values in grid.items()}, cv=2)
    inner.fit(NODES, labels())
    assert inner.cv_results_["mean_test_score"].tolist() == search.cv_results_["mean_test_score"].tolist()


def test_searches_in_threads_find_what_searches_one_by_one_find() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    from joblib import parallel_backend

    found = LaconicClassifier(graph(), **KEYS)
    alone = selection.cross_val_score(found, NODES, labels(), cv=4)
    with parallel_backend("threading", n_jobs=4):
        assert selection.cross_val_score(found, NODES, labels(), cv=4).tolist() == alone.tolist()


def test_a_pickled_classifier_predicts_the_same(fitted: LaconicClassifier) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(NODES), fitted.predict_proba(NODES))
    assert not hasattr(again, "run_")
    assert again.fit(NODES[:120], NAMES[labels()[:120]]).run_.digest == fitted.run_.digest
