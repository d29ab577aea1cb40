"""What is written in Rust (crates/python)."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Registered",
    "Graph",
    "mark_bfloat16",
    "predict",
    "resume",
    "train",
    "transport",
    "__version__",
    "run_program",
]
__version__: str

def run_program(words: Sequence[str | os.PathLike[str]], again: Sequence[str | os.PathLike[str]]) -> int: ...
def train(
    graph: Graph | None,
    config: str | os.PathLike[str] | None,
    settings: Sequence[str],
    out: str | os.PathLike[str],
    watch: Callable[[str, str], object],
    *,
    force: bool = False,
) -> bool: ...
def resume(
    graph: Graph | None,
    folder: str | os.PathLike[str],
    settings: Sequence[str],
    watch: Callable[[str, str], object],
) -> bool: ...
def transport(config: str | os.PathLike[str] | None, settings: Sequence[str]) -> str: ...
def mark_bfloat16(capsule: Any) -> bool: ...
def predict(
    folder: str | os.PathLike[str], graph: Graph | None = None, *, own: bool = True
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, list[str], bool]: ...
@final
class Registered:
    def __new__(cls, codec: object, number: int | None = None) -> Registered: ...
    @property
    def number(self) -> int: ...
    def raised(self) -> BaseException | None: ...

@final
class Graph:
    @staticmethod
    def from_arrays(
        name: str,
        arrays: Mapping[str, NDArray[Any]],
        *,
        typed: bool = False,
        symmetrise: bool = False,
        keep_self_loops: bool = False,
    ) -> Graph: ...
    @staticmethod
    def read(
        path: str | os.PathLike[str], *, typed: bool = False, symmetrise: bool = False, keep_self_loops: bool = False
    ) -> Graph: ...
    def save(self, path: str | os.PathLike[str]) -> None: ...
    @property
    def source(self) -> Path | None: ...
    @property
    def name(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @property
    def edges(self) -> int: ...
    @property
    def features(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def is_typed(self) -> bool: ...
    @property
    def keeps_self_loops(self) -> bool: ...
    @property
    def class_names(self) -> list[str]: ...
    @property
    def ids(self) -> NDArray[np.int64] | list[str] | None: ...
    @property
    def roles(self) -> list[str]: ...
