"""Files of tensors."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# What the program writes.
_TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "U8": "|u1"}


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file that the program has written, as arrays of their own."""
    import numpy as np

    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            start, end = about["data_offsets"]
            values = np.frombuffer(data[start:end], dtype=_TYPES[about["dtype"]])
            tensors[name] = values.reshape(about["shape"]).copy()
    return tensors
