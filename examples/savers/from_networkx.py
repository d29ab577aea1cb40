"""Saves a NetworkX graph for Laconic: `save(graph, "graph.npz", features=["age"], label="party", split="role")`."""
import numpy as np


def save(graph, path, features=(), label=None, split=None):
    row = {node: number for number, node in enumerate(graph)}
    edges = np.array([(row[a], row[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    arrays = {"edge_index": edges.T, "directed": [graph.is_directed()], "ids": [str(node) for node in row]}
    if all(weight is not None for _, _, weight in graph.edges(data="weight")):
        arrays["edge_weight"] = [weight for _, _, weight in graph.edges(data="weight")]
    if features:
        arrays["features"] = [[graph.nodes[node][name] for name in features] for node in row]
        arrays["feature_names"] = list(features)
    if label:
        names = sorted({str(graph.nodes[node][label]) for node in row if label in graph.nodes[node]})
        arrays["labels"] = [names.index(str(graph.nodes[n][label])) if label in graph.nodes[n] else -1 for n in row]
        arrays["class_names"] = names
    for role in ("train", "val", "test") if split else ():
        arrays[role + "_mask"] = [graph.nodes[node].get(split) == role for node in row]
    np.savez(path, num_nodes=[len(row)], **{name: np.asarray(array) for name, array in arrays.items()})
