"""Temporary folders that go with an object."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class Folder:
    """A folder that is there as long as this object: removed when it goes, or when the interpreter ends."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="laconic-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)

    def path(self, name: str) -> str:
        """The path of a file or folder in it."""
        return os.path.join(self.name, name)
