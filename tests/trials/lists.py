"""Edge lists and tables of graph tools and of other programs (trials 64-75, 89-103)."""
import os
import igraph
import networkit
import networkx as nx
import numpy as np
import pandas as pd
from exports import lines
from sample import EDGES, IDS, LABEL, N, SPLIT, X, truth
from trial import Case, Truth, both, trial, write

RING = [(i, (i + 1) % 6) for i in range(6)] + [(0, 3)]


def people(**columns):
    """`edges.csv` and `nodes.csv` of the sample, with these columns beside the ids."""
    write("edges.csv", lines(["src", "dst", "weight"], EDGES))
    pd.DataFrame({"id": IDS, **columns}).to_csv("nodes.csv", index=False)


@trial(64, "SNAP with # comments; a KONECT list as .txt; network-repository .edges")
def comments():
    write("snap.txt", "# Undirected graph\n# FromNodeId\tToNodeId\n" + lines(None, RING, "\t"))
    yield Case("snap.txt", truth=Truth(RING))
    write("konect.txt", "% sym unweighted\n" + lines(None, ((a + 1, b + 1) for a, b in RING), " "))
    yield Case("konect.txt", truth=Truth(both([(a + 1, b + 1) for a, b in RING])))
    for name, separator in (("soc.edges", " "), ("web.edges", ",")):
        write(name, "% a comment\n" + lines(None, ((a, b, 0.5 + a) for a, b in RING), separator))
        yield Case(name, truth=Truth([(a, b, 0.5 + a) for a, b in RING]))


@trial(65, "KONECT out.NAME: sym, asym with weights and times, bip")
def konect():
    rows = [(a + 1, b + 1) for a, b in RING]
    write("out.plain", "% sym unweighted\n% 7 6 6\n" + lines(None, rows, " "))
    yield Case("out.plain", truth=Truth(both(rows)))
    write("out.weights", "% asym weighted\n" + lines(None, ((a, b, a + 0.5, 1082040961 + a) for a, b in rows), "\t"))
    yield Case("out.weights", truth=Truth([(a, b, a + 0.5) for a, b in rows]))
    write("out.films", "% bip unweighted\n" + lines(None, rows, " "))
    yield Case("out.films", truth=Truth([(f"left/{a}", f"right/{b}") for a, b in rows]))


def graph(weights=False, directed=False):
    made = nx.DiGraph() if directed else nx.Graph()
    for at, (a, b) in enumerate(RING):
        made.add_edge(a, b, **({"weight": at + 0.5} if weights else {}))
    return made


WEIGHED = [(a, b, at + 0.5) for at, (a, b) in enumerate(RING)]


@trial(69, "NetworkX write_edgelist with data")
def edgelist():
    nx.write_edgelist(graph(True, True), "edges.txt")
    yield Case("edges.txt", truth=Truth(WEIGHED))
    nx.write_edgelist(graph(False, True), "bare.txt")  # each line ends with {}
    yield Case("bare.txt", truth=Truth(RING))


@trial(70, "NetworkX weighted, without data, commas; to_pandas_edgelist().to_csv()")
def weighted():
    nx.write_weighted_edgelist(graph(True, True), "weighted.txt")
    yield Case("weighted.txt", truth=Truth(WEIGHED))
    nx.write_edgelist(graph(False, True), "plain.txt", data=False)
    yield Case("plain.txt", truth=Truth(RING))
    nx.write_weighted_edgelist(graph(True, True), "commas.csv", delimiter=",")
    yield Case("commas.csv", truth=Truth(WEIGHED))
    nx.to_pandas_edgelist(graph(True, True)).to_csv("pandas.csv")
    yield Case("pandas.csv", truth=Truth(WEIGHED))
    nx.to_pandas_edgelist(graph(True, True)).to_csv("bare.csv", index=False)
    yield Case("bare.csv", truth=Truth(WEIGHED))


@trial(71, "NetworkX adjacency list, as .txt and .adjlist")
def adjlist():
    nx.write_adjlist(graph(directed=True), "graph.adjlist")
    os.system("cp graph.adjlist graph.txt")
    for name in ("graph.adjlist", "graph.txt"):
        yield Case(name, truth=Truth(RING), remedy=["read_adjlist", "write_edgelist"],
                   follow=lambda name=name: to_edgelist(nx.read_adjlist(name, create_using=nx.DiGraph)))


def to_edgelist(made):
    nx.write_edgelist(made, "edges.txt")
    return ["edges.txt"]


@trial(72, "igraph: edge list, and ncol called .txt and .ncol")
def igraph_lists():
    made = igraph.Graph(RING, directed=True)
    made.write_edgelist("edges.txt")
    yield Case("edges.txt", truth=Truth(RING))
    made.vs["name"], made.es["weight"] = [f"v{i}" for i in range(6)], [w for *_, w in WEIGHED]
    right = Truth([(f"v{a}", f"v{b}", w) for a, b, w in WEIGHED])
    made.write_ncol("ncol.txt")
    yield Case("ncol.txt", truth=right)
    made.write_ncol("graph.ncol")
    yield Case("graph.ncol", truth=right, remedy=[".txt"],
               follow=lambda: [os.rename("graph.ncol", "renamed.txt") or "renamed.txt"])


@trial(73, "igraph lgl, as .txt and .lgl")
def lgl():
    made = igraph.Graph(RING)
    made.vs["name"], made.es["weight"] = [f"v{i}" for i in range(6)], [w for *_, w in WEIGHED]

    def follow():
        made.write_ncol("ncol.txt")
        return ["ncol.txt", "--symmetrise"]
    right = Truth(both([(f"v{a}", f"v{b}", w) for a, b, w in WEIGHED]))
    for name in ("lgl.txt", "graph.lgl"):
        made.write_lgl(name)
        yield Case(name, truth=right, remedy=["write_ncol"], follow=follow)


def metis(edges, n, name, weighted=False):
    made = networkit.Graph(n, weighted=weighted)
    for a, b, *w in edges:
        made.addEdge(a, b, *w)
    networkit.graphio.METISGraphWriter().write(made, name)


@trial(74, "NetworKit METIS, plain and weighted; METIS 011, 10, 1, 11 by hand, comments, isolated nodes")
def metis_graphs():
    metis(RING, 7, "plain.graph")
    yield Case("plain.graph", truth=Truth(both(RING), range(7)))
    metis([(a, b, a + 1.0) for a, b in RING], 6, "weighted.graph", weighted=True)
    yield Case("weighted.graph", truth=Truth(both([(a, b, a + 1.0) for a, b in RING])))
    around = {i: [(b, w) for a, b, w in both(WEIGHED) if a == i] for i in range(6)}
    for code, name in (("011", "a"), ("10", "b"), ("1", "c"), ("11", "d")):
        rows = ["% a comment", f"7 7 {code}"]
        for i in range(6):
            row = [str(i + 2)] if "1" in code[-2:-1] else []
            for b, w in around[i]:
                row += [str(b + 1), str(int(w * 2))] if code[-1] == "1" else [str(b + 1)]
            rows.append(" ".join(row))
        write(f"{name}.graph", "\n".join(rows) + ("\n3" if "1" in code[-2:-1] else "\n"))
        edges = both([(a, b, int(w * 2)) for a, b, w in WEIGHED] if code[-1] == "1" else RING)
        yield Case(f"{name}.graph", truth=Truth(edges, range(7)))


@trial(75, "NetworKit METIS with a self-loop")
def metis_loop():
    metis([*RING, (2, 2)], 6, "loop.graph")
    yield Case("loop.graph", truth=Truth(both(RING)), says=["itself"])


@trial(76, "NetworKit's SNAP format and its edge lists")
def networkit_lists():
    made = networkit.Graph(6)
    for a, b in RING:
        made.addEdge(a, b)
    for name, kind in (("zero.txt", networkit.Format.EdgeListTabZero), ("one.txt", networkit.Format.EdgeListSpaceOne)):
        networkit.writeGraph(made, name, kind)
        shift = int(name == "one.txt")
        yield Case(name, "--symmetrise", truth=Truth(both([(a + shift, b + shift) for a, b in RING])))
    networkit.writeGraph(made, "snap.txt", networkit.Format.SNAP)

    def follow():
        networkit.writeGraph(made, "list.txt", networkit.Format.EdgeListTabZero)
        return ["list.txt", "--symmetrise"]
    yield Case("snap.txt", truth=Truth(both(RING)), remedy=["EdgeListTabZero"], follow=follow)


@trial(89, "Gephi's tables of nodes and edges")
def gephi():
    write("edges.csv", lines(["Source", "Target", "Type", "Id", "Label", "Weight"],
                             ((a, b, "Directed", at, "", w) for at, (a, b, w) in enumerate(EDGES))))
    names = [f"Person {i}" for i in range(N)]
    pd.DataFrame({"Id": IDS, "Label": names, "timeset": [""] * N, "age": X[:, 0]}).to_csv("nodes.csv", index=False)
    yield Case("edges.csv", truth=truth(x=X[:, :1], y=None, split=None), says=["'Label'"])


@trial(90, "R write.csv")
def r_csv():
    rows = [(f'"{at + 1}"', f'"{a}"', f'"{b}"', w) for at, (a, b, w) in enumerate(EDGES)]
    write("edges.csv", lines(['""', '"from"', '"to"', '"weight"'], rows))
    rows = [(f'"{at + 1}"', f'"{IDS[at]}"', X[at, 0], f'"{LABEL[at]}"', f'"{SPLIT[at]}"') for at in range(N)]
    write("nodes.csv", lines(['""', '"id"', '"x"', '"class"', '"split"'], rows))
    yield Case("edges.csv", truth=truth(x=X[:, :1]))


@trial(91, "R write.table: names of rows without a name above them")
def r_table():
    rows = [(f'"{at + 1}"', f'"{a}"', f'"{b}"', w) for at, (a, b, w) in enumerate(EDGES)]
    write("edges.txt", lines(['"from"', '"to"', '"weight"'], rows, " "))
    yield Case("edges.txt", truth=Truth(EDGES, IDS))
    write("edges.tsv", lines(['"from"', '"to"', '"weight"'], rows, "\t"))
    rows = [(f'"{IDS[at]}"', X[at, 0], f'"{LABEL[at]}"', f'"{SPLIT[at]}"') for at in range(N)]
    write("nodes.txt", lines(['"x"', '"class"', '"split"'], rows, " "))
    yield Case("edges.tsv", "--nodes", "nodes.txt", truth=truth(x=X[:, :1]))


@trial(92, "an adjacency matrix as CSV, with and without names, and as text")
def adjacency():
    matrix = nx.to_numpy_array(graph(True, True))

    def follow():
        at = np.argwhere(matrix)
        pd.DataFrame({"source": at[:, 0], "target": at[:, 1], "weight": matrix[tuple(at.T)]}
                     ).to_csv("list.csv", index=False)
        return ["list.csv"]
    np.savetxt("plain.csv", matrix, delimiter=",", fmt="%g")
    np.savetxt("plain.txt", matrix, fmt="%g")
    pd.DataFrame(matrix).to_csv("named.csv")
    pd.DataFrame(matrix, list("abcdef"), list("abcdef")).to_csv("letters.csv")
    for name in ("plain.csv", "plain.txt", "named.csv", "letters.csv"):
        yield Case(name, truth=Truth(WEIGHED), remedy=["matrix"], follow=follow)


TRIPLES = [(a, 50 + (a + b) % 2, b) for a, b in RING]


@trial(93, "triples as numbers")
def triples():
    write("triples.tsv", lines(None, TRIPLES, "\t"))
    yield Case("triples.tsv", truth=Truth(RING), remedy=["--source", "column 1", "--target", "column 3"])
    flags = ("--source", "column 1", "--relation", "column 2", "--target", "column 3")
    kinds = {(str(a), str(b), str(r)) for a, r, b in TRIPLES}
    yield Case("triples.tsv", *flags, "--typed", truth=Truth(RING, kinds=kinds))


@trial(94, "triples as texts, with and without names")
def named_triples():
    rows = [(f"/m/0{a}", f"/film/{'director' if r == 50 else 'actor'}", f"/m/0{b}") for a, r, b in TRIPLES]
    edges, kinds = [(a, b) for a, _, b in rows], {(a, b, r) for a, r, b in rows}
    write("named.tsv", lines(["head", "relation", "tail"], rows, "\t"))
    yield Case("named.tsv", truth=Truth(edges))
    yield Case("named.tsv", "--typed", truth=Truth(edges, kinds=kinds))
    write("bare.txt", lines(None, rows, "\t"))
    yield Case("bare.txt", truth=Truth(edges), remedy=["--source", "column 1", "--target", "column 3"])
    for name in ("train", "valid", "test"):
        write(f"kg/{name}.txt", lines(None, rows[:3] if name == "train" else rows[3:5] if name == "valid" else rows[5:],
                                      "\t"))
    yield Case("kg", "--typed", truth=Truth(edges, kinds=kinds))


@trial(95, "vertical bars (LDBC, TigerGraph), two colons (MovieLens)")
def separators():
    rows = [(933 + a, 4139 + b, "2010-03-13T07:37:21.718+0000") for a, b in RING]
    write("knows.csv", lines(["Person.id", "Person.id", "creationDate"], rows, "|"))
    yield Case("knows.csv", truth=Truth([row[:2] for row in rows]))
    rows = [(1 + i % 5, 101 + (i * 3) % 7, 1 + i % 5, 964980000 + i) for i in range(30)]
    write("ratings.dat", lines(None, rows, "::"))
    os.system("cp ratings.dat ratings.txt")
    yield Case("ratings.txt", truth=Truth([row[:3] for row in rows]))
    yield Case("ratings.dat", truth=Truth([row[:3] for row in rows]))


def column(texts, values=None, remedy=(), follow=None, says=(), **more):
    """A column of these texts beside the ids, and what becomes of it; the others are 20 rows of the sample."""
    people(amount=texts, label=LABEL, split=SPLIT)
    x = values if values is None or np.ndim(values[0]) else [[value] for value in values]
    return Case("edges.csv", truth=truth(x=False if x is None else x), remedy=remedy, follow=follow, says=says, **more)


@trial(96, "amounts such as 1,234")
def thousands():
    values = [1234 + i * 1000 for i in range(N)]

    def follow():
        column([str(value) for value in values])
        return ["edges.csv"]
    yield column([f"{value:,}" for value in values], values, remedy=["thousands"], follow=follow)


@trial(97, "amounts 1,234.50 and 1.234,50, 12%, - for missing")
def amounts():
    values = [1234.5 + i for i in range(N)]
    english = [f"{value:,.2f}" for value in values]
    yield column(english, values)
    yield column([text.translate(str.maketrans(",.", ".,")) for text in english], values)
    yield column([f"{i}%" for i in range(N)], [i / 100 for i in range(N)])
    texts = ["-" if i == 4 else str(i) for i in range(N)]
    yield column(texts, [[0 if i == 4 else i, i == 4] for i in range(N)], remedy=["--missing", "zero"])


@trial(98, "a class called None, the country NA")
def none():
    words = ["None" if i % 3 == 0 else "fraud" for i in range(N)]
    people(label=words, split=SPLIT)
    y = [None if word == "None" else word for word in words]
    yield Case("edges.csv", truth=truth(x=False, y=y, split=SPLIT), says=["None"])
    land = ["NA" if i % 4 == 0 else "DE" if i % 4 == 1 else "FR" for i in range(N)]
    people(land=land, label=LABEL, split=SPLIT)
    yield Case("edges.csv", truth=truth(x=[[word == "DE", word == "FR"] for word in land]), says=["'NA'"])


@trial(99, "the country NA as the id of a node")
def na_ids():
    edges = [("DE", "NA"), ("NA", "US"), ("US", "DE")]
    write("edges.csv", lines(["source", "target"], edges))
    yield Case("edges.csv", truth=Truth(edges))


@trial(100, "words for the split: train/valid/test, TRAIN/VALIDATION/TEST, dev, 0/1/2")
def words():
    for change in ({"val": "valid"}, {"val": "VALIDATION", "train": "TRAIN", "test": "TEST"}):
        people(label=LABEL, split=[change.get(role, role) for role in SPLIT])
        yield Case("edges.csv", truth=truth(x=False))
    for change in ({"val": "dev"}, {"train": "0", "val": "1", "test": "2"}):
        people(label=LABEL, split=[change.get(role, role) for role in SPLIT])

        def follow():
            people(label=LABEL, split=SPLIT)
            return ["edges.csv"]
        yield Case("edges.csv", truth=truth(x=False), remedy=["train", "val", "test"], follow=follow)


@trial(101, "labels 0.0 and 1.0 with gaps")
def float_labels():
    y = [None if i == 5 else float(i % 2) for i in range(N)]
    people(label=y)
    yield Case("edges.csv", truth=truth(x=False, y=[None if v is None else int(v) for v in y], split=None))


@trial(102, "an infinite feature")
def infinite():
    people(x=[np.inf if i == 3 else i for i in range(N)], label=LABEL, split=SPLIT)  # data check has the error
    yield Case("edges.csv", truth=truth(x=False), remedy=["--ignore", "x"])


@trial(103, "two features of one name; targets of a regression as labels")
def doubled():
    write("edges.csv", lines(["src", "dst", "weight"], EDGES))
    write("nodes.csv", lines(["id", "x", "x", "label"], ((IDS[i], i, i * 2, LABEL[i]) for i in range(N))))
    yield Case("edges.csv", truth=truth(x=False, split=None), remedy=["--ignore", "x"])
    people(label=[i + 0.37 for i in range(N)])
    yield Case("edges.csv", truth=truth(x=False, y=None, split=None), remedy=["--ignore", "label"])
