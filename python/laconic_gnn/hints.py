"""What errors of the program mean in Python: it speaks of keys of a file and of flags."""

from __future__ import annotations

import re

# Found in a text, and what stands in its place.
_WORDS = (
    (
        r"give data\.split = \{ train = …, val = … \}",
        "train_mask= and val_mask= of Graph.from_numpy say which are, "
        'data={"split": {"train": 0.6, "val": 0.2}} draws them',
    ),
    (r"give some with data\.features_path", "x= of Graph.from_numpy gives some"),
    (r"(\d+ feature values are not finite.*)", r"\1; np.nan_to_num(x) has 0 in their place"),
    (r"(\d+ edge weights are not finite.*)", r"\1; np.nan_to_num(edge_weight) has 0 in their place"),
    (r"(\d+ nodes have more than one role.*)", r"\1; train_mask & ~test_mask leaves those of both to test_mask"),
    (r"^--methods\b", "methods"),
    (r"^--like\b", "like"),
    (
        r"(the model reads \d+ feature columns \(.*|feature column \d+ is .*, and the model reads .* there)",
        r"\1; tables get the columns of the run's by like=run of Graph.from_arrow and Graph.read",
    ),
    (r"(cannot make (\d+) parts of (\d+) nodes)", r"\1; parts= is at most \3 here"),
)


def in_python(text: str) -> str:
    """The text with the words of Python: keyword arguments and arrays."""
    for found, better in _WORDS:
        text = re.sub(found, better, text)
    if "For more information" in text or "unexpected argument" in text:
        # About a flag, which is an argument here.
        text = re.sub(r"--([a-z][a-z-]*)(?: <[^>]*>)?", lambda flag: flag.group(1).replace("-", "_"), text)
        text = re.sub(r"\s*(Usage:.*)?\s*For more information.*", "", text, flags=re.DOTALL)
    return text


def of_arguments(text: str) -> str:
    """The text with arguments of what makes a graph, in place of keys of data and of flags that stand for them."""
    return re.sub(r"data\.\w+(?: = ([^()]*?))? \(--([a-z-]+)[^()]*\)", _argument, text)


def _argument(found: re.Match[str]) -> str:
    name = found.group(2).replace("-", "_")
    return f"{'undirected' if name == 'symmetrise' else name}={found.group(1) or ''}"
