#!/usr/bin/env bash
# dgl 2.1.0, the newest on the registry: it can be imported beside some patch releases of a PyTorch and not beside others.
#
# Its library is looked up by PyTorch's whole version, though nothing pins one: pip installs 2.2.2 without a complaint, and
# `import dgl` fails. Seen:
#   torch 2.2.1   imported
#   torch 2.2.2   FileNotFoundError: Cannot find DGL C++ graphbolt library at .../libgraphbolt_pytorch_2.2.2.so
# The wheel has libraries for 2.0.0, 2.0.1, 2.1.0 to 2.1.2, 2.2.0 and 2.2.1.
#
# Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# These releases have no wheels for Python 3.12 and newer.
for python in python3.11 python3.10 python3; do
  "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 12))' 2>/dev/null && break
done
"$python" -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" install --quiet --disable-pip-version-check)
"${pip[@]}" dgl==2.1.0 torchdata==0.7.1 torch==2.2.1 "numpy<2" "pandas<3" pydantic pyyaml "setuptools<70"
imported() {
  { "$folder/venv/bin/python" -c 'import dgl; print("imported")' 2>&1 || true; } | tail -n 1 | sed 's|at .*/|at .../|'
}
first=$(imported)
"${pip[@]}" --no-deps torch==2.2.2
second=$(imported)
printf '%s\n%s\n' "$first" "$second"
[ "$first" = imported ] || exit 1
[ "$second" = "FileNotFoundError: Cannot find DGL C++ graphbolt library at .../libgraphbolt_pytorch_2.2.2.so" ] || exit 1
