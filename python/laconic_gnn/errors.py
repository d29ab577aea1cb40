"""Errors: one class for each kind of trouble, all of them :class:`LaconicError`, with the program's own text."""

from __future__ import annotations

import re

from . import hints


_SECTIONS = "batch|data|messages|model|out|partition|policy|schedule|task|train|transport"
# Files that are called like keys.
_ENDINGS = ("csv", "json", "mtx", "npy", "npz", "parquet", "toml", "tsv", "txt")


class LaconicError(Exception):
    """An error of laconic_gnn; all others derive from it.

    Attributes:
        key: the configuration's key that it is about, such as ``"model.hidden"``; None where there is none.
        file: the file that it is about; None where there is none.
        suggestion: what was probably meant; None where nothing is near.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.key = _first(rf"(?<![\w./-])((?:{_SECTIONS})\.[a-z_]+(?:\.[a-z_]+)*)(?![\w./])", text)
        if self.key is not None and self.key.rpartition(".")[2] in _ENDINGS:
            self.key = None
        file = _first(r"^(?:data: )?((?:[^:\n]*/)?[^:/\n]*\.\w+|/[^:\n]+): ", text)
        self.file = None if file == self.key else file
        self.suggestion = _first(r"did you mean \"?(.+?)\"?\?", text)


class ConfigError(LaconicError):
    """The configuration cannot be used: an unknown key, a value that makes no sense, or two that cannot be combined."""


class BudgetError(ConfigError):
    """No messages keep the run within ``messages.budget``."""


class MemoryRefused(ConfigError):
    """The workers may need more memory than there is; ``force=True`` starts all the same."""


class DataError(LaconicError):
    """The data cannot be used."""


class PeerLost(LaconicError):
    """A worker did not answer, or failed."""


class FileError(LaconicError):
    """A file of a run cannot be read or written."""


class DivergedError(LaconicError):
    """Training left the numbers; a smaller ``train.lr`` or ``train.clip`` may help."""


class PolicyError(LaconicError):
    """Something was to be sent that ``policy.deny`` keeps back, or ``policy.allow`` does not allow; it was not sent."""


class LaconicWarning(UserWarning):
    """Something that may go wrong in a run."""


# By the program's exit codes, which `laconic --help` lists.
_OF_CODE = {
    2: ConfigError,
    3: DataError,
    4: PeerLost,
    5: FileError,
    6: DivergedError,
    7: PolicyError,
}


def of(code: int, text: str) -> LaconicError:
    """The error for an exit code of the program and its text, with flags of the command line as Python has them."""
    text = re.sub(r"^configuration: (?:--set .+?: (?=[\w.]+ ))?", "", text).replace("--force", "force=True")
    text = hints.in_python(text)
    kind = _OF_CODE.get(code, LaconicError)
    if kind is ConfigError and text.startswith("messages.budget"):
        kind = BudgetError
    if kind is ConfigError and "force=True starts all the same" in text:
        kind = MemoryRefused
    return kind(text)


def _first(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text)
    return found.group(1) if found else None
