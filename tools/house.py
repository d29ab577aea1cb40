"""Figures by which the house can be judged, of one checkout or of two side by side.

    python3 tools/house.py CHECKOUT [OTHER]

Words and sentences of the pages that are read first, words that the glossary replaces, lines of code, tuples among
parameters, methods of public traits, pairs of files that import each other, and places that ask about a mode. Tests and
comments are left out, but for lines. Python's standard library is enough; `git worktree add FOLDER COMMIT` makes an older checkout.
"""

import re
import sys
from pathlib import Path

OWN_WORDS = r"on their own|way back|telephone|\bDesk\b|\bChair\b|\bCrew\b"
MODES = {
    "links": r"plan\.links|worker\.links|\.links\.is_(some|none)|TaskChoice::|\.of_pairs\b|\.of_labels\b",
    "late rows": r"\.late\b|is_late|\bstale\b",
    "precision": r"Precision::|\bprecision\b|is_half",
    "batches": r"\.batching\b|batch\.size|BatchKind::",
    "trainers": r"plan\.trainers|\.trainers\.is_(some|none)",
}


def sources(root, tests=False):
    """The text of every source, without tests and comments unless they are asked for."""
    for path in sorted(root.glob("crates/*/src/**/*.rs")):
        if tests:
            yield path, path.read_text()
        elif path.name != "tests.rs" and "/tests/" not in str(path).split("/src/")[1]:
            text = path.read_text().split("\n#[cfg(test)]\nmod tests {")[0]
            yield path, "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//"))


def sentences(page):
    """The lengths of a page's sentences in words; blocks of code, tables and headings left out."""
    text = "".join(page.read_text().split("```")[::2])
    prose = " ".join(line for line in text.split("\n") if not re.match(r"[|#<]", line.strip()))
    found = re.split(r"(?<=[.!?:;])\s+", prose)
    return sorted(len(sentence.split()) for sentence in found if len(sentence.split()) > 1)


def trait_methods(text):
    """The number of methods of each public trait."""
    for match in re.finditer(r"^pub trait (\w+)[^{]*\{(.*?)^\}", text, re.M | re.S):
        yield match[1], len(re.findall(r"^    fn ", match[2], re.M))


def tuple_parameters(text):
    """Parameters that take a tuple apart, and the leaves of the largest."""
    for match in re.finditer(r"\bfn \w+[^(]*\(", text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        for pattern in re.finditer(r"(?:^|[,(]\s*)(\([^:;]*?\)): \(", text[match.end() : end]):
            yield len(re.findall(r"\w+", pattern[1]))


def circles(root):
    """Pairs of files of one crate that import each other directly."""
    arrows = set()
    for path, text in sources(root):
        crate = next(parent for parent in path.parents if parent.name == "src")
        module = path.relative_to(crate).with_suffix("")
        module = module.parent if module.name in ("mod", "lib") else module
        for up, rest in re.findall(r"use ((?:super::)+|crate::)([\w:]+)", text):
            start = Path() if up == "crate::" else module
            for _ in range(0 if up == "crate::" else up.count("super")):
                start = start.parent
            parts = rest.split("::")
            for length in range(len(parts), 0, -1):
                target = start.joinpath(*parts[:length])
                if (crate / target).with_suffix(".rs").exists():
                    arrows.add((crate, module, target))
                    break
    return sum((crate, b, a) in arrows for crate, a, b in arrows if a < b)


def figures(root):
    """Every figure by its name."""
    texts = [text for _, text in sources(root)]
    tuples = [leaves for text in texts for leaves in tuple_parameters(text)]
    methods = sorted((count, name) for text in texts for name, count in trait_methods(text))
    pages = [root / "README.md", root / "ARCHITECTURE.md", root / "CHANGELOG.md"]
    found = {}
    for page in pages:
        lengths = sentences(page)
        found[f"{page.name}: words"] = len(page.read_text().split())
        found[f"{page.name}: median and longest sentence, words"] = f"{lengths[len(lengths) // 2]}, {lengths[-1]}"
    prose = pages + [page for page in root.glob("docs/**/*.md") if page.name != "glossary.md"]
    found["words of our own, in pages and sources"] = sum(
        len(re.findall(OWN_WORDS, text)) for text in [page.read_text() for page in prose] + texts
    )
    found["lines of crates/*/src"] = sum(text.count("\n") for _, text in sources(root, tests=True))
    found["of these without tests and comments"] = sum(
        sum(bool(line.strip()) for line in text.split("\n")) for text in texts
    )
    found["packages in the lock file"] = (root / "Cargo.lock").read_text().count("[[package]]")
    found["parameters that are tuples, and names in the largest"] = f"{len(tuples)}, {max(tuples, default=0)}"
    found["methods of the largest public traits"] = ", ".join(f"{name} {count}" for count, name in methods[:-4:-1])
    found["pairs of files that import each other"] = circles(root)
    train = [text for path, text in sources(root) if "/train/src/" in str(path)]
    for mode, asks in MODES.items():
        hits = [len(re.findall(asks, text)) for text in train]
        found[f"places in train that ask about {mode}, and files"] = f"{sum(hits)}, {sum(map(bool, hits))}"
    return found


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    checkouts = [figures(Path(path).resolve()) for path in sys.argv[1:]]
    for name in checkouts[0]:
        print(f"| {name} | {' | '.join(str(found[name]) for found in checkouts)} |")


if __name__ == "__main__":
    main()
