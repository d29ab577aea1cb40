"""What a trial is: a file that a tool has written, the flags that a user gives, and the truth."""
import contextlib
import io
import json
import os
import subprocess
import numpy as np

TRIALS, LACONIC = {}, "laconic"
# From best to worst; a trial of several files counts as its worst.
ORDER = ("read right", "told", "right after its remedy", "refused with its remedy", "refused without remedy",
         "WRONG AFTER ITS REMEDY", "WRONG IN SILENCE")
BAD = ORDER[4:]


class Missing(Exception):
    """A tool of this trial is not on this machine."""


def trial(number, tool):
    """Lists a function that makes files in the current folder and yields a `Case` for each."""
    def add(function):
        TRIALS[number] = (tool, function)
        return function
    return add


class Truth:
    """A graph by names of nodes: `edges` are (from, to) or (from, to, weight), `x` and `y` go by name, too.

    Edges from a node to itself are left out and those that are listed twice added up, as Laconic says it does."""
    def __init__(self, edges, nodes=None, x=None, y=None, split=None, loops=False, kinds=None):
        self.edges = {}
        for a, b, *w in edges:
            if a != b or loops:
                key = (str(a), str(b))
                self.edges[key] = self.edges.get(key, 0.0) + w[0] if w else None
        ends = {end for edge in edges for end in edge[:2]}
        self.nodes = {str(node) for node in (ends if nodes is None else nodes)}
        self.x = x and {str(node): np.ravel(np.asarray(row, dtype=np.float64)) for node, row in x.items()}
        self.y = y and {str(node): None if name is None else str(name) for node, name in y.items()}
        self.split, self.kinds = split and {str(node): role for node, role in split.items()}, kinds

    def differences(self, got):
        """What of it is not in `got`, in words."""
        found = []
        if self.nodes != set(got["nodes"]):
            found.append(f"nodes: {len(self.nodes)}, read {len(got['nodes'])}: {sorted(got['nodes'])[:3]}")
        if set(self.edges) != set(got["edges"]):
            found.append(f"edges: {len(self.edges)}, read {len(got['edges'])}: {sorted(got['edges'])[:3]}")
        elif any(not same(self.edges[key], got["edges"][key]) for key in self.edges):
            key = next(key for key in self.edges if not same(self.edges[key], got["edges"][key]))
            found.append(f"weight of {key}: {self.edges[key]}, read {got['edges'][key]}")
        if found:
            return found
        for what in ("x", "y", "split"):
            mine, theirs = getattr(self, what), got[what]
            if (mine is None) != (theirs is None):
                found.append(f"{what}: {'there' if mine else 'none'}, read {'none' if theirs is None else 'some'}")
            for node in sorted(mine) if mine and theirs is not None else ():
                if not same(mine[node], theirs.get(node)):
                    found.append(f"{what} of {node}: {mine[node]}, read {theirs.get(node)}")
                    break
        if self.kinds is not None and self.kinds != got["kinds"]:
            found.append(f"kinds of edges: {self.kinds}, read {got['kinds']}")
        return found


def same(one, other):
    if one is None or other is None or isinstance(one, str):
        return one == other
    one, other = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-6, atol=1e-6, equal_nan=True)


def both(edges):
    """The other direction of each edge beside it, once each."""
    seen = {(edge[0], edge[1]): edge for edge in edges}
    for edge in edges:
        seen.setdefault((edge[1], edge[0]), (edge[1], edge[0], *edge[2:]))
    return list(seen.values())


class Case:
    """One input. `says` are words that `data check` must print beside it; `told` are the words that name what is
    lost, with `truth` without it. `remedy` is what a refusal must name: flags to add, or words of another way, whose
    last step `follow` takes: a function that returns the new words for the command."""
    def __init__(self, *words, truth=None, says=(), told=(), remedy=(), follow=None):
        self.words, self.truth, self.says, self.told = [str(word) for word in words], truth, says, told
        self.remedy, self.follow = [str(word) for word in remedy], follow

    def judge(self):
        code, checked = laconic("data", "check", *self.words)
        failed, said = convert(self.words)
        if code == 1 and self.remedy and not failed:  # what can be read and nothing be trained on
            failed, said = True, next(line for line in checked.splitlines() if line.startswith("error"))
        if not failed:
            if self.truth is None:
                return "WRONG IN SILENCE", "read, and should not be"
            wrong = self.truth.differences(result(self.words))
            wrong += [f"does not say {word!r}" for word in (*self.says, *self.told) if word not in checked]
            return ("WRONG IN SILENCE", "; ".join(wrong)) if wrong else ("told" if self.told else "read right", "")
        why = next((line for line in said.splitlines() if line.startswith("laconic")), said.strip().splitlines()[-1])
        why = why.replace(os.getcwd() + "/", "").removeprefix("laconic: ")
        flags = [word for word in self.remedy if word.startswith("--")]
        named = [word for word in self.remedy if self.follow or not flags or word in flags]
        lost = [word for word in named if word not in said + checked]
        if not self.remedy or lost:
            return "refused without remedy", (f"does not name {lost}: " if lost else "") + why
        if not code:
            return "WRONG IN SILENCE", "check finds no error where convert refuses"
        if self.truth is None:
            return "refused with its remedy", why
        words = self.follow() if self.follow else [*self.words, *self.remedy]
        failed, said = convert(words)
        wrong = [said.strip().splitlines()[-1]] if failed else self.truth.differences(result(words))
        return ("WRONG AFTER ITS REMEDY", "; ".join(wrong)) if wrong else ("right after its remedy", why)


def laconic(*words):
    done = subprocess.run([LACONIC, *map(str, words)], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stderr + done.stdout


def convert(words):
    if os.path.exists("out.npz"):
        os.remove("out.npz")
    return laconic("data", "convert", *words, "--out", "out.npz")


def texts(arrays, key):
    if key in arrays:
        return [str(value) for value in arrays[key]]
    if key + "_data" in arrays:
        raw, at = arrays[key + "_data"].tobytes(), arrays[key + "_offsets"]
        return [raw[a:b].decode() for a, b in zip(at, at[1:])]
    return None


def result(words):
    """What lies in `out.npz`, by names of nodes."""
    with np.load("out.npz") as file:
        arrays = dict(file)
    nodes = texts(arrays, "ids") or [str(row) for row in range(int(arrays["num_nodes"][0]))]
    about = json.loads(arrays["about"].tobytes()) if "about" in arrays else {}
    weights, edges = arrays.get("edge_weight"), {}
    for at, (a, b) in enumerate(arrays["edge_index"].T):
        edges[nodes[a], nodes[b]] = None if weights is None else float(weights[at])
        if int(np.ravel(arrays.get("directed", [1]))[0]) == 0:
            edges[nodes[b], nodes[a]] = edges[nodes[a], nodes[b]]
    x, y, split = dense(arrays), arrays.get("labels"), None
    if y is not None and y.ndim == 1:
        names = about.get("classes") or [str(label) for label in range(int(y.max()) + 1)]
        y = [None if label < 0 else names[int(label)] for label in y]
    if "train_mask" in arrays:
        masks = {role: arrays[role + "_mask"].reshape(len(nodes), -1)[:, 0] for role in ("train", "val", "test")}
        split = [next((role for role in masks if masks[role][row]), None) for row in range(len(nodes))]
    kinds = None
    if "edge_type" in arrays:
        names = texts(arrays, "relation_names") or about.get("relations")
        kinds = {(nodes[a], nodes[b], names[int(t)]) for (a, b), t in zip(arrays["edge_index"].T, arrays["edge_type"])}
    by = lambda rows: None if rows is None else dict(zip(nodes, rows))
    return {"nodes": nodes, "edges": edges, "x": by(x), "y": by(y), "split": by(split), "kinds": kinds}


def dense(arrays):
    if "features_indptr" not in arrays:
        return arrays.get("features")
    shape, at = arrays["features_shape"], arrays["features_indptr"]
    x = np.zeros(tuple(shape))
    for row in range(shape[0]):
        x[row, arrays["features_indices"][at[row]:at[row + 1]]] = arrays["features_data"][at[row]:at[row + 1]]
    return x


def run(number, folder):
    """The verdict on a trial, what is to be said of it, and the number of its files."""
    tool, function = TRIALS[number]
    here = os.getcwd()
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    verdicts = []
    try:
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet):
            for case in function():
                verdict, why = case.judge()
                verdicts.append((ORDER.index(verdict), verdict, f"{' '.join(case.words)}: {why}" if why else ""))
    except Missing as missing:
        return "skipped", str(missing), 0
    finally:
        os.chdir(here)
    worst = max(verdicts)
    return worst[1], worst[2], len(verdicts)


def write(path, text):
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")
