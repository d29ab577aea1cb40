"""Counts of the crate `train` by which its order can be judged, for one checkout or to compare two.

    python3 tools/counts.py PATH [--json]

Lines, files, long functions, wide functions, silenced lints; comparisons with names of members that are made although a
configuration is resolved by then; arrows between folders and files (uses of what another file has, re-exports seen
through) and the largest circle of each. Tests are not counted, but for lines and files. Python's standard library is
enough.
"""

import argparse
import json
import re
from pathlib import Path

NAMES = """exact half quantised masked all boundary_sample none synchronous pipelined lazy random multilevel given
gcn sage gat gin sgd adam adamw constant linear cosine step threads mpi""".split()
# Where names are looked up: they are what a configuration is made of.
RESOLUTION = ("config", "plan")
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 7

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>b?r(?P<hash>#*)".*?"(?P=hash)|b?"(?:[^"\\]|\\.)*")'
    r"|(?P<char>'(?:\\[^']+|[^'\\])')",
    re.DOTALL,
)


def blank(text, strings=True):
    """The text without comments, characters and, if wanted, what is in strings; lines stay where they are."""

    def spaces(match):
        if match["text"] and not strings:
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return TOKEN.sub(spaces, text)


def closing(code, start, brackets="([{"):
    """The place of the bracket that closes the one at `start`."""
    closers = {"(": ")", "[": "]", "{": "}", "<": ">"}
    depth = 0
    for at in range(start, len(code)):
        if code[at] in brackets:
            depth += 1
        elif code[at] in [closers[b] for b in brackets] and code[at - 1 : at + 1] not in ("->", "=>"):
            depth -= 1
            if depth == 0:
                return at
    return len(code) - 1


def without_tests(code, text):
    """Both without items that are compiled for tests alone."""
    for match in reversed(list(re.finditer(r"#\[cfg\((?:test|all\(test[^\]]*)\)\]", code))):
        ends = [at for at in (code.find("{", match.end()), code.find(";", match.end())) if at >= 0]
        end = min(ends, default=len(code) - 1)
        if code[end] == "{":
            end = closing(code, end)
        gap = re.sub(r"[^\n]", " ", code[match.start() : end + 1])
        code = code[: match.start()] + gap + code[end + 1 :]
        text = text[: match.start()] + gap + text[end + 1 :]
    return code, text


def functions(code):
    """(name, lines, parameters) of every function with a name."""
    for match in re.finditer(r"\bfn (\w+)", code):
        at = match.end()
        if code[at] == "<":
            at = closing(code, at, "<") + 1
        if code[at] != "(":
            continue
        end = closing(code, at)
        depth, parameters, filled = 0, 0, False
        for place in range(at + 1, end):
            c = code[place]
            if c in "([{<":
                depth += 1
            elif c in ")]}>" and code[place - 1 : place + 1] not in ("->", "=>"):
                depth -= 1
            if c == "," and depth == 0:
                parameters, filled = parameters + filled, False
            elif not c.isspace():
                filled = True
        body = re.search(r"[{;]", re.sub(r"\[[^\]]*\]", lambda m: " " * len(m[0]), code[end:]))
        last = end + body.start() if body else end
        if code[last] == "{":
            last = closing(code, last)
        yield match[1], 1 + code.count("\n", match.start(), last), parameters + filled


def expand(tree, prefix=()):
    """(path, name) of everything in `a::{b, c::d as e}`."""
    tree = tree.strip()
    if "{" in tree:
        before, inside = tree.split("{", 1)
        prefix += tuple(name.strip() for name in before.split("::") if name.strip())
        inside, depth, piece = inside.rstrip().removesuffix("}") + ",", 0, ""
        for c in inside:
            depth += (c == "{") - (c == "}")
            if c == "," and depth == 0:
                yield from expand(piece, prefix)
                piece = ""
            else:
                piece += c
    elif tree:
        path, _, name = tree.partition(" as ")
        path = tuple(part.strip() for part in path.split("::") if not (part.strip() == "self" and prefix))
        yield prefix + path, name.strip() or (prefix + path)[-1]


class Crate:
    """The modules of a crate with what they use."""

    def __init__(self, root):
        self.code, self.uses, self.exports, self.file = {}, {}, {}, {}
        for path in sorted(root.rglob("*.rs")):
            parts = path.relative_to(root).with_suffix("").parts
            if parts[-1] == "tests" or "tests" in parts:
                continue
            module = parts[:-1] if parts[-1] in ("lib", "main", "mod") else parts
            text = path.read_text()
            code, _ = without_tests(blank(text), text)
            self.code[module], self.file[module] = code, "/".join(path.relative_to(root).parts)
            self.uses[module], self.exports[module] = [], {}
            for match in re.finditer(r"(?m)^\s*(pub(?:\([^)]*\))? )?use ([^;]*);", code):
                for path_, name in expand(match[2]):
                    self.uses[module].append(path_)
                    if match[1]:
                        self.exports[module][name] = path_
            inline = re.sub(r"(?m)^\s*(pub(?:\([^)]*\))? )?use [^;]*;", "", code)
            self.uses[module] += [tuple(p.split("::")) for p in re.findall(r"\b(?:crate|super)(?:::\w+)+", inline)]

    def absolute(self, module, path):
        """The path from the crate's root, or nothing if it leads elsewhere."""
        base, path = module, list(path)
        if path[0] == "crate":
            base, path = (), path[1:]
        elif path[0] == "self":
            path = path[1:]
        elif path[0] != "super" and module + (path[0],) not in self.code:
            return None
        while path and path[0] == "super":
            base, path = base[:-1], path[1:]
        return base + tuple(path)

    def resolve(self, path, depth=8):
        """The module that has what an absolute path names."""
        size = max(size for size in range(len(path) + 1) if size == 0 or path[:size] in self.code)
        module = path[:size]
        if size < len(path) and depth and path[size] in self.exports.get(module, {}):
            further = self.absolute(module, self.exports[module][path[size]])
            if further is not None:
                return self.resolve(further, depth - 1)
        return module

    def arrows(self):
        """Pairs of modules that are files, the crate's root left out."""
        found = set()
        for module, uses in self.uses.items():
            for path in uses:
                path = self.absolute(module, path)
                to = self.resolve(path) if path is not None else ()
                if module and to and to != module:
                    found.add((module, to))
        return found


def largest_circle(arrows):
    """The largest set of points of which each reaches every other."""
    reach = {}
    for a, b in arrows:
        reach.setdefault(a, set()).add(b)
    while True:
        wider = {a: to.union(*(reach.get(b, ()) for b in to)) for a, to in reach.items()}
        if wider == reach:
            break
        reach = wider
    groups = [[b for b in to if a in reach.get(b, ())] for a, to in reach.items()]
    return sorted(max(groups, key=len, default=[]))


def comparisons(root):
    """Places, as file:line, where a member's name decides something after resolution."""
    name = '"(?:' + "|".join(NAMES) + ')"'
    compares = re.compile(rf"[=!]= Some\({name}|[=!]= {name}|matches!\([^)]*{name}|{name}[^=\n,;]*=>|{name} [=!]=")
    for path in sorted(root.rglob("*.rs")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in RESOLUTION or "tests" in parts:
            continue
        text = path.read_text()
        _, text = without_tests(blank(text), blank(text, strings=False))
        for line, code in enumerate(text.split("\n"), 1):
            for _ in compares.finditer(code):
                yield f"{path.relative_to(root)}:{line}"


def counts(checkout):
    """All counts of a checkout."""
    root = checkout / "crates/train/src"
    files = sorted(root.rglob("*.rs"))
    crate = Crate(root)
    every = [(crate.file[m], *f) for m, code in crate.code.items() for f in functions(code)]
    long = [f"{file} {name} ({lines})" for file, name, lines, _ in every if lines > FUNCTION_LINES_MAX]
    wide = [f"{file} {name} ({n})" for file, name, _, n in every if n > PARAMETERS_MAX]
    arrows = crate.arrows()
    folders = {(a[0], b[0]) for a, b in arrows if a[0] != b[0]}
    compared = list(comparisons(root))
    circle, folder_circle = largest_circle(arrows), largest_circle(folders)
    return {
        "lines": sum(len(path.read_text().splitlines()) for path in files),
        "files": len(files),
        "longest_file": max(len(path.read_text().splitlines()) for path in files),
        "functions": len(every),
        "functions_over_60_lines": long,
        "functions_over_7_parameters": wide,
        "comparisons_with_names": compared,
        "arrows_between_folders": len(folders),
        "arrows_between_files": len(arrows),
        "folders_in_largest_circle": folder_circle,
        "files_in_largest_circle": [crate.file[module] for module in circle],
        "allows": sum(len(re.findall(r"#!?\[(?:allow|expect)\(", code)) for code in crate.code.values()),
    }


def main():
    """Prints the counts, lists as their lengths unless as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--json", action="store_true", help="with the places that were counted")
    options = parser.parse_args()
    found = counts(options.checkout)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for key, value in found.items():
            print(f"{key:28} {len(value) if isinstance(value, list) else value}")


if __name__ == "__main__":
    main()
