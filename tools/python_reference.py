"""Makes docs/reference/python.md of the docstrings of the Python package.

    python3 tools/python_reference.py            writes the page
    python3 tools/python_reference.py --check    says with 1 that the page is old

It reads the sources and imports nothing, so the package need not be built.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "laconic_gnn"
PAGE = ROOT / "docs" / "reference" / "python.md"

# Headings, what is said under them, and the names there. Each name of `__all__` is in one of them.
GROUPS = (
    ("Graphs", "", ("Graph", "Partition", "generate", "partition")),
    ("Training", "", ("train", "resume", "Run", "Table")),
    ("Before a run, and several", "", ("keys", "plan", "Plan", "verify", "compare", "Comparison")),
    ("Predicting", "", ("predict", "Predictions")),
    ("With scikit-learn", "", ("LaconicClassifier",)),
    ("Pages and pictures", "What `report()` and the plots return.", ("figures.Page", "figures.Picture")),
    (
        "Trackers",
        "",
        (
            "trackers",
            "trackers.Tracker",
            "trackers.mlflow.MlflowTracker",
            "trackers.wandb.WandbTracker",
            "trackers.tensorboard.TensorBoardTracker",
        ),
    ),
    (
        "Errors",
        "",
        (
            "LaconicError",
            "ConfigError",
            "BudgetError",
            "MemoryRefused",
            "DataError",
            "PeerLost",
            "FileError",
            "DivergedError",
            "PolicyError",
            "LaconicWarning",
        ),
    ),
)
# Classes that users construct themselves.
CONSTRUCTED = ("Run", "Comparison", "Table", "LaconicClassifier")
# In `__all__`, and said in the head of the page.
IN_HEAD = ("__version__",)

HEAD = """# Python reference

Made from the docstrings by `tools/python_reference.py`; [the guide](../guide/python.md) is the page to begin with. `lc` is
`laconic_gnn`, `lc.__version__` its version. Shapes are in brackets, `[nodes, columns]`; bytes are bytes, times are seconds.
"""

SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Example")
TITLES = {"Args": "Arguments", "Attributes": "Attributes", "Raises": "Raises"}
COLUMNS = 128

Definition = ast.ClassDef | ast.FunctionDef | ast.Module


class Unknown(Exception):
    """A name without a definition, a docstring or a group."""


def parsed(module: str) -> ast.Module:
    """A module of the package by its name with dots."""
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def public() -> dict[str, str]:
    """The names of `__all__`, with the modules that they are defined in."""
    tree = parsed("")
    homes = {
        alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {name: homes[name] for name in ast.literal_eval(node.value)}
    raise Unknown("laconic_gnn has no __all__")


def definition(name: str, homes: dict[str, str]) -> Definition:
    """The class, function or module of a name of the groups."""
    module, _, last = name.rpartition(".")
    if not module and name not in homes:
        return parsed(name)
    for node in parsed(module or homes[name]).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == last:
            return node
    raise Unknown(f"{name} is not defined in {module or homes[name]}")


def page() -> str:
    """The whole page.

    Raises:
        Unknown: if a public name is in no group or has no docstring.
    """
    homes = public()
    grouped = [name for _, _, names in GROUPS for name in names]
    for name in homes:
        if name not in (*grouped, *IN_HEAD):
            raise Unknown(f"{name} is in __all__, and in none of the groups of tools/python_reference.py")
    described = {name: definition(name, homes) for name in grouped}
    targets = {name: anchor(heading(name, node)) for name, node in described.items()}
    for name, node in described.items():
        if isinstance(node, ast.ClassDef):
            for member in members(node):
                full = f"{name}.{member.name}"
                targets[full] = targets[name] if is_property(member) else anchor(full)
    lines = [HEAD]
    for title, _, names in GROUPS:
        listed = ", ".join(f"[`{name.rpartition('.')[2]}`](#{targets[name]})" for name in names)
        lines.append(wrapped(f"- {title}: {listed}"))
    for title, said, names in GROUPS:
        lines += ["", f"## {title}", *([said] if said else [])]
        for name in names:
            lines += ["", *entry(name, described[name], targets, source(name, homes))]
    text = "\n".join(lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def heading(name: str, node: Definition) -> str:
    """What stands above a public name: links do not tell `Plan` and `plan` apart."""
    return f"class {name}" if isinstance(node, ast.ClassDef) else name


def source(name: str, homes: dict[str, str]) -> str:
    """The file of a public name, as a link."""
    module = homes.get(name) or name.rpartition(".")[0] or name
    path = PACKAGE.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return f"Source: [{path.relative_to(PACKAGE)}](../../{path.relative_to(ROOT)})."


def entry(name: str, node: Definition, targets: dict[str, str], where: str) -> Iterator[str]:
    """The lines of one public name."""
    yield f"### {heading(name, node)}\n"
    if isinstance(node, ast.FunctionDef):
        yield from code(signature(node, name))
        yield from described(node, name, targets, name)
        yield where
    elif isinstance(node, ast.Module):
        yield from described(node, name, targets, name)
        yield where
    else:
        functions = [part for part in node.body if isinstance(part, ast.FunctionDef)]
        makes = next((part for part in functions if part.name == "__init__"), None)
        if makes is not None and (name in CONSTRUCTED or name.startswith("trackers.")):
            yield from code(signature(makes, name))
        bases = [ast.unparse(base) for base in node.bases]
        near = {full.rpartition(".")[2]: full for full in targets if "." not in full or full[0].islower()}
        own = [f"[`{near[base]}`](#{targets[near[base]]})" for base in bases if base in near]
        if own:
            yield f"A {', '.join(own)}.\n"
        yield from described(node, name, targets, name)
        if makes is not None and name in CONSTRUCTED and ast.get_docstring(makes):
            yield from described(makes, name, targets, name)
        properties = [member for member in members(node) if is_property(member)]
        if properties:
            yield "Properties:\n"
        for member in properties:
            kind = f" (`{shown(member.returns)}`)" if member.returns else ""
            text = " ".join(described(member, f"{name}.{member.name}", targets, name)).strip()
            yield wrapped(f"- `{member.name}`{kind}: {text}")
        yield f"\n{where}\n"
        for member in members(node):
            full = f"{name}.{member.name}"
            # What says nothing is as in the class that it is one of.
            if not is_property(member) and (ast.get_docstring(member) or not own):
                yield f"\n#### {full}\n"
                yield from code(signature(member, full))
                yield from described(member, full, targets, name)


def members(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """The public methods and properties of a class, in their order."""
    return [part for part in node.body if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")]


def is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(mark) in ("property", "cached_property") for mark in node.decorator_list)


def signature(node: ast.FunctionDef, name: str) -> str:
    """A function as it is called, without `self`; broken after arguments where it is long."""
    given = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(given, ast.FunctionDef)
    own = [ast.unparse(mark) for mark in given.decorator_list]
    if given.args.args and given.args.args[0].arg in ("self", "cls") and "staticmethod" not in own:
        del given.args.args[0]
    arguments = [shown(part) for part in _arguments(given.args)]
    returns = f" -> {shown(given.returns)}" if given.returns and node.name != "__init__" else ""
    line = f"{name}({', '.join(arguments)}){returns}"
    if len(line) <= 110:
        return line
    inner = textwrap.fill(" ".join(part.replace(" ", "\0") + "," for part in arguments), 104, break_long_words=False)
    return f"{name}(\n{textwrap.indent(inner, '    ')}\n){returns}".replace("\0", " ")


def _arguments(args: ast.arguments) -> Iterator[str]:
    """Arguments as they are written, one by one."""
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    for arg, default in zip(plain, defaults):
        yield _argument(arg, default)
    if args.vararg is not None:
        yield f"*{_argument(args.vararg, None)}"
    elif args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults):
        yield _argument(arg, default)
    if args.kwarg is not None:
        yield f"**{_argument(args.kwarg, None)}"


def _argument(arg: ast.arg, default: ast.expr | None) -> str:
    # `Any` says nothing that the text does not say better.
    kind = "" if arg.annotation is None or shown(arg.annotation) == "Any" else f": {shown(arg.annotation)}"
    if default is None:
        return f"{arg.arg}{kind}"
    return f"{arg.arg}{kind} = {shown(default)}" if kind else f"{arg.arg}={shown(default)}"


def shown(node: ast.AST | str) -> str:
    """A type or a value as the page has it."""
    text = node if isinstance(node, str) else ast.unparse(node)
    return text.replace("os.PathLike[str]", "Path").replace("'", '"')


def described(node: Definition, name: str, targets: dict[str, str], within: str) -> Iterator[str]:
    """The docstring of something, as Markdown."""
    text = ast.get_docstring(node)
    if not text:
        raise Unknown(f"{name} has no docstring")
    for title, body in sections(text):
        if title == "":
            for block in blocks(body):
                if block.startswith("```"):
                    yield block
                else:
                    yield wrapped(prose(block, targets, within))
                yield ""
        elif title == "Example":
            yield from code(body)
        elif title == "Returns":
            yield wrapped(f"Returns: {prose(body, targets, within)}") + "\n"
        else:
            yield f"{TITLES[title]}:\n"
            for term, said in terms(body):
                role = ":class:" if title == "Raises" else ""
                marked = prose(", ".join(f"{role}`{one}`" for one in term.split(", ")), targets, within)
                yield wrapped(f"- {marked}: {prose(said, targets, within)}")
            yield ""


def sections(text: str) -> Iterator[tuple[str, str]]:
    """A docstring in parts: what is before any title, and what is indented under each."""
    title = ""
    lines: list[str] = []
    for line in text.splitlines():
        found = re.fullmatch(r"(\w+):", line)
        if found and found[1] in SECTIONS:
            yield title, textwrap.dedent("\n".join(lines)).strip("\n")
            title, lines = found[1], []
        elif title and line and not line.startswith(" "):
            # A part ends where text is not indented.
            yield title, textwrap.dedent("\n".join(lines)).strip("\n")
            title, lines = "", [line]
        else:
            lines.append(line)
    yield title, textwrap.dedent("\n".join(lines)).strip("\n")


def blocks(text: str) -> Iterator[str]:
    """Paragraphs and lists as they are; what is indented, or follows two colons, as code."""
    literal: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.strip():
            continue
        if paragraph.startswith("    "):
            literal.append(textwrap.dedent(paragraph))
            continue
        if literal:
            yield _literal(literal)
            literal = []
        yield re.sub(r"::$", ":", paragraph)
    if literal:
        yield _literal(literal)


def _literal(paragraphs: list[str]) -> str:
    return "```python\n" + "\n\n".join(paragraphs) + "\n```"


def examples(text: str) -> Iterator[str]:
    """The code in a docstring."""
    for title, body in sections(text):
        if title == "Example":
            yield body
        elif title == "":
            yield from (block[10:-4] for block in blocks(body) if block.startswith("```python"))


def terms(text: str) -> Iterator[tuple[str, str]]:
    """What is named and what is said of it, where lines that go on are indented."""
    for one in re.split(r"\n(?=\S)", text):
        term, _, said = one.partition(":")
        yield term, " ".join(said.split())


def prose(text: str, targets: dict[str, str], within: str) -> str:
    """Text of a docstring as Markdown, with links to what it names."""

    def linked(found: re.Match[str]) -> str:
        words = re.fullmatch(r"(.*?)\s*<(.*)>", found[1], re.DOTALL)
        said, target = (words[1], words[2]) if words else (found[1], found[1])
        target = target.removeprefix("laconic_gnn.")
        for name in (f"{within}.{target}", target):
            if name in targets:
                return f"[`{said.removeprefix('laconic_gnn.')}`](#{targets[name]})"
        return f"`{said}`"

    text = re.sub(r":\w+:`([^`]+)`", linked, text)
    text = re.sub(r"``docs/([\w/-]+)\.md``", r"[\1](../\1.md)", text)
    return re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)


def wrapped(text: str) -> str:
    """Text in lines of the page's length; items of a list each begin one."""
    items = re.split(r"\n(?=- )", text)
    filled = []
    for item in items:
        indent = "  " if item.startswith("- ") else ""
        # A link and a piece of code stay whole.
        kept = re.sub(r"`[^`\n]*`", lambda code: code[0].replace(" ", "\0"), " ".join(item.split()))
        lines = textwrap.fill(kept, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        filled.append(lines.replace("\0", " "))
    return "\n".join(filled)


def code(text: str) -> Iterator[str]:
    yield f"```python\n{text}\n```\n"


def anchor(heading: str) -> str:
    """The name by which links call a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes docs/reference/python.md of the docstrings.")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if the page is old")
    asked = parser.parse_args()
    try:
        made = page()
    except Unknown as error:
        print(error, file=sys.stderr)
        return 2
    if asked.check:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made:
            print(f"{PAGE.relative_to(ROOT)} is old: python3 tools/python_reference.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(made, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(made.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
