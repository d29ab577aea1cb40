"""Saves a NetworkX graph for Laconic: `save(graph, "graph.npz", features=["age"], label="party", split="role")`.

`split` names an attribute that is train, val (or valid, validation, dev) or test, or several, one for each of several
splits. Prints what it leaves out. An edge without a weight among others that have one weighs 1, as in NetworkX itself."""
import numpy as np

WORDS = {"train": "train", "training": "train", "test": "test", "testing": "test"}
WORDS |= dict.fromkeys(("val", "valid", "validation", "dev"), "val")


def save(graph, path, features=(), label=None, split=(), weight="weight"):
    row = {node: number for number, node in enumerate(graph)}
    edges = np.array([(row[a], row[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    arrays = {"edge_index": edges.T, "directed": [graph.is_directed()], "ids": [str(node) for node in row]}
    if len(set(arrays["ids"])) < len(row):
        raise ValueError("two nodes are called the same, such as 1 and '1'")
    weights = [one for _, _, one in graph.edges(data=weight)]
    bare = sum(one is None for one in weights)
    if 0 < bare < len(weights):
        print(f"{bare} of {len(weights)} edges have no {weight!r}, and weigh 1")
    if bare < len(weights):
        arrays["edge_weight"] = np.array([1 if one is None else one for one in weights], dtype=np.float64)
    splits = [split] if isinstance(split, str) else list(split)
    if features:
        arrays["features"] = [[graph.nodes[node][name] for name in features] for node in row]
        arrays["feature_names"] = list(features)
    if label:
        names = sorted({str(graph.nodes[node][label]) for node in row if label in graph.nodes[node]})
        arrays["labels"] = [names.index(str(graph.nodes[n][label])) if label in graph.nodes[n] else -1 for n in row]
        arrays["class_names"] = names
    words = [[str(graph.nodes[node].get(name, "")).lower() for name in splits] for node in row]
    for role in ("train", "val", "test") if splits else ():
        arrays[role + "_mask"] = [[WORDS.get(word) == role for word in of] for of in words]
    if unknown := {word for of in words for word in of if word not in WORDS} - {""}:
        print("in no part of the split: nodes that have", ", ".join(sorted(unknown)))
    known = {name for _, attributes in graph.nodes(data=True) for name in attributes} - {*features, label, *splits}
    known |= {name for *_, attributes in graph.edges(data=True) for name in attributes} - {weight}
    if known:
        print("not saved:", ", ".join(sorted(map(str, known))))
    np.savez(path, num_nodes=[len(row)], **{name: np.asarray(array) for name, array in arrays.items()})
