#!/usr/bin/env bash
# scikit-learn 1.9.1: where a figure is 0/0, its functions answer in four ways, and two of them without a warning.
#
#   no positive at all           roc_auc_score                        nan, UndefinedMetricWarning (an error until 1.5)
#                                average_precision_score              0.0, UserWarning
#                                ndcg_score                           0.0, no warning
#   a node without any label     label_ranking_average_precision_score 1.0 for it, no warning
#   one class, all of it right   cohen_kappa_score                    nan; matthews_corrcoef 0.0
#   a class that neither occurs nor is predicted
#       one class a node         f1_score(average="macro") leaves it out: 1.0
#       the same as label sets   f1_score(average="macro") counts it as 0: 0.667; with zero_division=nan it is left out: 1.0
#       ROC AUC, several labels  the whole macro mean is nan because of one label
# So a table that mixes them holds numbers that nobody could have reached, and macro F1 changes with the shape in which the
# same labels are given.
#
# Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys
import warnings

import numpy
from sklearn import metrics

scores = [0.1, 0.5, 0.9]
# Three nodes: two of class 0, one of class 1, and a class 2 that nobody has; once as classes, once as sets of labels.
classes = [0, 0, 1]
sets = numpy.eye(3, dtype=int)[classes]
with_constant = numpy.array([[1, 1], [0, 1], [1, 1]])
cases = {
    "roc_auc, no positive": (lambda: metrics.roc_auc_score([0, 0, 0], scores), "nan", True),
    "average precision, no positive": (lambda: metrics.average_precision_score([0, 0, 0], scores), "0.000", True),
    "ndcg, nothing relevant": (lambda: metrics.ndcg_score([[0, 0, 0]], [scores]), "0.000", False),
    "lrap, a node without labels": (
        lambda: metrics.label_ranking_average_precision_score(numpy.zeros((1, 3), int), numpy.array([scores])),
        "1.000",
        False,
    ),
    "kappa, one class": (lambda: metrics.cohen_kappa_score([0, 0], [0, 0]), "nan", True),
    "matthews, one class": (lambda: metrics.matthews_corrcoef([0, 0], [0, 0]), "0.000", True),
    "macro f1, classes": (lambda: metrics.f1_score(classes, classes, average="macro"), "1.000", False),
    "macro f1, sets": (lambda: metrics.f1_score(sets, sets, average="macro"), "0.667", True),
    "macro f1, sets, zero_division=nan": (
        lambda: metrics.f1_score(sets, sets, average="macro", zero_division=numpy.nan),
        "1.000",
        False,
    ),
    "macro roc_auc, one label constant": (
        lambda: metrics.roc_auc_score(with_constant, numpy.array([[0.3, 0.1], [0.2, 0.5], [0.9, 0.1]])),
        "nan",
        True,
    ),
}
changed = []
for name, (figure, expected, warns) in cases.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = f"{float(figure()):.3f}"
    print(f"{name:36} {value:6} {'warns' if caught else 'says nothing'}")
    if value != expected or bool(caught) != warns:
        changed.append(name)
sys.exit(f"changed: {changed}" if changed else 0)
PYTHON
