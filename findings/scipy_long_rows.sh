#!/usr/bin/env bash
# SciPy 1.17.1, NumPy 2.4.6: the mean of one long row of a float32 sparse matrix has three values, by the way it is asked for.
#
# A node with four million neighbours that all have 0.1 is one row of a CSR matrix with four million entries. Seen:
#   matrix @ features / n     0.0961312    (the product adds float32 one after the other: 4 % off)
#   matrix.mean(axis=1)       0.0967835    (another order, 3 % off)
#   matrix.sum(axis=1) / n    0.1000000    (right)
#   coo_array.tocsr()         0.0961312    (duplicates of one entry are added one after the other, too)
# None of them warns. Whoever checks sums over the neighbours of a hub by SciPy in float32 has to convert to float64 first:
# `matrix.astype(numpy.float64) @ features` gives 0.1.
#
# Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy
from scipy import sparse

n = 4_000_000
features = numpy.full((n, 2), 0.1, numpy.float32)
ones = sparse.csr_array((numpy.ones(n, numpy.float32), numpy.arange(n), numpy.array([0, n])), shape=(1, n))
tenths = sparse.csr_array((features[:, 0], numpy.arange(n), numpy.array([0, n])), shape=(1, n))
zeros = numpy.zeros(n, int)
duplicates = sparse.coo_array((features[:, 0], (zeros, zeros)), shape=(1, 1))
seen = {
    "product": (ones @ features)[0, 0] / n,
    "mean": tenths.mean(axis=1)[0],
    "sum": tenths.sum(axis=1)[0] / n,
    "duplicates": duplicates.tocsr().data[0] / n,
    "product in float64": (ones.astype(numpy.float64) @ features)[0, 0] / n,
}
expected = {"product": 0.0961312, "mean": 0.0967835, "sum": 0.1, "duplicates": 0.0961312, "product in float64": 0.1}
for name, value in seen.items():
    print(f"{name:20} {value:.7f}")
changed = [name for name, value in seen.items() if abs(value - expected[name]) > 1e-4]
sys.exit(f"changed: {changed}" if changed else 0)
PYTHON
