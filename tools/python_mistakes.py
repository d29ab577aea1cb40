"""Prints the table of docs/guide/python-mistakes.md: each mistake of python/tests/mistakes.py, and what is said to it.

python3 tools/python_mistakes.py > docs/guide/python-mistakes.md

Needs the package laconic_gnn with its extension, and networkx, pandas and torch for a few mistakes."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python" / "tests"))

HEAD = """\
# Mistakes from Python

What happens when something is not as it should be: an error that names the argument and says what would do, a warning
(`LaconicWarning`) where it works but may not be meant, or what was meant. `edge_index`, `x`, `y` and masks are those of
a graph of six nodes, and `graph` is made of them.

Made by `python3 tools/python_mistakes.py > docs/guide/python-mistakes.md`; the same list is a test
(`python/tests/test_mistakes.py`).

| mistake | what is said |
|---|---|"""


def cell(text):
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def main():
    from mistakes import MISTAKES, is_as_expected, outcome

    print(HEAD)
    wrong = []
    for mistake in MISTAKES:
        kind, said, result = outcome(mistake)
        if not is_as_expected(mistake, kind, said, result):
            wrong.append(f"{mistake.name}: {kind}: {said}")
        if kind == "works":
            said = "works: " + ", ".join(f"`{words}`" for words in mistake.words)
        else:
            said = f"`{'LaconicWarning' if kind == 'note' else kind}`: {cell(said)}"
        print(f"| {mistake.name}<br>`{cell(mistake.code)}` | {said} |")
    if wrong:
        sys.exit("not as expected:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
