#!/usr/bin/env bash
# PyO3 0.30.1, maturin 1.16.0: `maturin generate-stubs` writes a stub that does not type-check where a signature names a type
# of another module, as the guide of PyO3 says to do for types that PyO3 cannot derive.
#
# A type in `#[pyo3(signature = (call: "collections.abc.Callable[[], int]"))]` is written as that text, in quotes, and its module is
# not imported. Of types that PyO3 derives it is (`from pathlib import Path`). Seen, with mypy 2.4.1 on the stub:
#   derived (Option<PathBuf>)                     def derived(path: str | PathLike[str] | None) -> Path | None: ...
#   annotated, a builtin ("list[int]")            checks
#   annotated, of a module                        Name "collections" is not defined  [name-defined]
# A getter takes no signature, so that what it returns cannot be annotated at all. Whoever needs such types writes the stub by hand
# and compares it with the module (`python -m mypy.stubtest`).
#
# Needs a Rust toolchain. Exit code 0: as described. 1: something of it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset CARGO_TARGET_DIR
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check maturin==1.16.0 mypy==2.4.1
mkdir "$folder/src"
cat > "$folder/Cargo.toml" <<'TOML'
[package]
name = "annotated"
version = "0.0.0"
edition = "2021"
[lib]
crate-type = ["cdylib"]
[dependencies]
pyo3 = { version = "=0.30.1", features = ["abi3-py310", "experimental-inspect"] }
TOML
cat > "$folder/pyproject.toml" <<'TOML'
[build-system]
requires = ["maturin==1.16.0"]
build-backend = "maturin"
[project]
name = "annotated"
version = "0.0.0"
TOML
cat > "$folder/src/lib.rs" <<'RUST'
#[pyo3::pymodule]
mod annotated {
    use pyo3::prelude::*;
    use std::path::PathBuf;

    #[pyfunction]
    fn derived(path: Option<PathBuf>) -> Option<PathBuf> {
        path
    }

    #[pyfunction]
    #[pyo3(signature = (numbers: "list[int]") -> "list[int]")]
    fn builtin(numbers: Py<PyAny>) -> Py<PyAny> {
        numbers
    }

    #[pyfunction]
    #[pyo3(signature = (call: "collections.abc.Callable[[], int]"))]
    fn of_a_module(call: Py<PyAny>) -> bool {
        drop(call);
        true
    }
}
RUST
(cd "$folder" && venv/bin/maturin generate-stubs --quiet --profile dev --interpreter venv/bin/python --out stubs)
stub=$(find "$folder/stubs" -name '*.pyi')
cat "$stub"
grep -q 'def derived(path: str | PathLike\[str\] | None) -> Path | None' "$stub" || { echo "derived types differ"; exit 1; }
seen=$("$folder/venv/bin/mypy" "$stub" | sed 's/^[^ ]* //' || true)
echo "$seen"
expected='error: Name "collections" is not defined  [name-defined]
1 error in 1 file (checked 1 source file)'
[ "$seen" = "$expected" ] || { echo "expected: $expected"; exit 1; }
