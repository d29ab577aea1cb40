"""What graph databases and data warehouses export as tables, and lists of edges that are passed on (trials 44-63).

Neo4j's files are as its manual and APOC's have them; KuzuDB and LadybugDB write their own here."""
import gzip
import os
import subprocess
import sys
import pandas as pd
from trial import Case, Truth, trial, write

ACTS = [("keanu", "Neo", "tt0133093"), ("laurence", "Morpheus", "tt0133093"), ("carrie", "Trinity", "tt0133093"),
        ("keanu", "Neo", "tt0234215"), ("laurence", "Morpheus", "tt0234215")]
PLAYS = [(actor, film) for actor, _, film in ACTS]
CALLS = [(f"49151{i % 7:03}", f"49151{(i * 3 + 1) % 7:03}", i * 3 + 1) for i in range(20)]
TALKS = [(a, b) for a, b, _ in CALLS]


def lines(head, rows, separator=","):
    return "\n".join(separator.join(map(str, row)) for row in ([head] if head else []) + list(rows))


@trial(44, "Neo4j: :START_ID(P),:END_ID(P),:TYPE")
def neo4j():
    rows = ((a, b, "PAID") for a, b in PLAYS)
    write("edges.csv", lines([":START_ID(P)", ":END_ID(P)", ":TYPE"], rows))
    yield Case("edges.csv", truth=Truth(PLAYS))


@trial(45, "Neo4j's manual: :START_ID,role,:END_ID,:TYPE")
def neo4j_manual():
    write("roles.csv", lines([":START_ID", "role", ":END_ID", ":TYPE"], ((*act, "ACTED_IN") for act in ACTS)))
    yield Case("roles.csv", truth=Truth(PLAYS), says=[":START_ID"])
    yield Case("roles.csv", "--header", "yes", truth=Truth(PLAYS))


@trial(46, "Neo4j: a header of nodes, id:ID(P), arrays 0.5;1.0")
def neo4j_nodes():
    write("edges.csv", lines([":START_ID(P)", ":END_ID(P)", ":TYPE"], ((a, b, "X") for a, b in PLAYS)))
    ids = sorted({end for pair in PLAYS for end in pair})
    x = {node: [at * 0.5, at + 0.25] for at, node in enumerate(ids)}
    rows = ((node, f"{x[node][0]};{x[node][1]}", "Thing") for node in ids)
    write("nodes.csv", lines(["id:ID(P)", "emb:float[]", ":LABEL"], rows))
    yield Case("edges.csv", truth=Truth(PLAYS, x=x, y={node: "Thing" for node in ids}))


@trial(47, "Neo4j: apoc.export.csv.all, nodes and relationships in one file")
def apoc():
    ids = sorted({end for pair in PLAYS for end in pair})
    number = {node: str(at) for at, node in enumerate(ids)}
    rows = [(number[node], ":Thing", node, "", "", "", "") for node in ids]
    rows += [("", "", "", role, number[a], number[b], "ACTED_IN") for a, role, b in ACTS]
    write("all.csv", lines(["_id", "_labels", "name", "role", "_start", "_end", "_type"], rows))
    edges = [(number[a], number[b]) for a, b in PLAYS]
    yield Case("all.csv", truth=Truth(edges, number.values()), says=["_labels"])


def embedded(name):
    """What a small bank in this database exports; in a process of its own, since both register one type."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bank.py")
    subprocess.run([sys.executable, program, name], check=True)
    return [(f"a{i}", f"a{(i * 2 + 1) % 6}", i + 0.25) for i in range(6)]


@trial(48, "KuzuDB and LadybugDB: a.id,b.id with and without names")
def kuzu_csv():
    for name in ("kuzu", "ladybug"):
        rows = embedded(name)
        ends = Truth([row[:2] for row in rows])
        yield Case(f"{name}_ends.csv", truth=ends)
        yield Case(f"{name}_bare.csv", truth=ends, remedy=["--header", "no"])


@trial(49, "KuzuDB and LadybugDB: a.id, r.amount, b.id in Parquet and CSV")
def kuzu_parquet():
    for name in ("kuzu", "ladybug"):
        rows = embedded(name)
        for ending in ("parquet", "csv"):
            yield Case(f"{name}_pays.{ending}", "--weight", "r.amount", truth=Truth(rows))
            yield Case(f"{name}_pays.{ending}", truth=Truth([row[:2] for row in rows]), says=["r.amount"])


@trial(50, "call records: call_id,caller,callee,start,duration")
def calls():
    rows = ((100 + at, f"+{a}", f"+{b}", f"2026-11-01 10:{at:02}:00", s) for at, (a, b, s) in enumerate(CALLS))
    write("cdr.csv", lines(["call_id", "caller", "callee", "start", "duration"], rows))
    right = [(f"+{a}", f"+{b}") for a, b in TALKS]
    yield Case("cdr.csv", truth=Truth(right), says=["caller", "callee"])
    weighed = [(*pair, s) for pair, (_, _, s) in zip(right, CALLS)]
    yield Case("cdr.csv", "--weight", "duration", truth=Truth(weighed))
    rows = ((100 + at, a, b) for at, (a, b) in enumerate(right))
    write("other.csv", lines(["call_id", "party_one", "party_two"], rows))
    yield Case("other.csv", truth=Truth(right), remedy=["--source", "party_one", "--target", "party_two"])


@trial(51, "PaySim's columns")
def paysim():
    rows = [(1 + i // 5, "PAYMENT" if i % 2 else "TRANSFER", i * 10.5, f"C{i}", 100.0, 50.0, f"M{i % 3}", 0.0, 0.0,
             int(i == 3), 0) for i in range(20)]
    head = "step type amount nameOrig oldbalanceOrg newbalanceOrig nameDest oldbalanceDest newbalanceDest isFraud flag"
    write("paysim.csv", lines(head.split(), rows))
    yield Case("paysim.csv", truth=Truth([(row[3], row[6]) for row in rows]), says=["nameOrig", "nameDest"])


@trial(52, "IBM AML's columns, two of them called Account")
def aml():
    account = lambda i: f"80{i % 6:02}"
    rows = [(f"2022/09/01 00:{i:02}", f"0{i % 4}", account(i), f"0{i % 3}", account(i + 1), 10.5 * i, "Euro")
            for i in range(20)]
    head = ["Timestamp", "From Bank", "Account", "To Bank", "Account", "Amount Paid", "Payment Currency"]
    write("trans.csv", lines(head, rows))
    yield Case("trans.csv", "--source", "Account", "--target", "Account.2", truth=Truth([(r[2], r[4]) for r in rows]))
    yield Case("trans.csv", truth=Truth([(r[2], r[4]) for r in rows]), remedy=["--source", "Account", "--target",
                                                                            "Account.2"])


@trial(53, "BioGRID tab3")
def biogrid():
    head = ["#BioGRID Interaction ID", "Entrez Gene Interactor A", "Entrez Gene Interactor B",
            "Official Symbol Interactor A", "Official Symbol Interactor B", "Score"]
    rows = [(103, 6416, 2318, "MAP2K4", "FLNC", "-"), (117, 84665, 88, "MYPN", "ACTN2", "-"),
            (183, 90, 2339, "ACVR1", "FNTA", "0.5")]
    write("biogrid.txt", lines(head, rows, "\t"))
    yield Case("biogrid.txt", truth=Truth([(row[1], row[2]) for row in rows]),
               remedy=["--source", "Entrez Gene Interactor A", "--target", "Entrez Gene Interactor B"])


@trial(54, "STRING protein.links")
def string():
    rows = [(f"9606.ENSP{i:05}", f"9606.ENSP{(i * 3 + 1) % 9:05}", 150 + i * 50) for i in range(9)]
    write("links.txt", lines(["protein1", "protein2", "combined_score"], rows, " "))
    yield Case("links.txt", "--weight", "combined_score", truth=Truth(rows))
    yield Case("links.txt", truth=Truth([row[:2] for row in rows]), says=["--weight combined_score"])


@trial(55, "Elliptic: classes 1, 2 and unknown")
def elliptic():
    edges = [(f"23{i}", f"23{(i * 3 + 1) % 12}") for i in range(12)]
    write("edges.csv", lines(["txId1", "txId2"], edges))
    words = ["unknown" if i % 3 else str(1 + i % 2) for i in range(12)]
    write("classes.csv", lines(["txId", "class"], ((f"23{i}", words[i]) for i in range(12))))
    y = {f"23{i}": words[i] for i in range(12)}
    yield Case("edges.csv", "--nodes", "classes.csv", "--id", "txId", truth=Truth(edges, y, y=y), says=["unknown"])


@trial(56, "Elliptic: features without names")
def elliptic_features():
    edges = [(f"23{i}", f"23{(i * 3 + 1) % 12}") for i in range(12)]
    write("edges.csv", lines(["txId1", "txId2"], edges))
    rows = [(f"23{i}", 1 + i % 3, i * 0.5, -i * 0.25) for i in range(12)]
    write("features.csv", lines(None, rows))
    x = {row[0]: row[1:] for row in rows}
    yield Case("edges.csv", "--nodes", "features.csv", truth=Truth(edges, x, x=x), remedy=["--id", "column 1"])


@trial(57, "phone numbers with +, ICCIDs of 20 digits, ids such as 1e5")
def far_ids():
    ids = [f"+49151{i:04}" for i in range(4)] + [f"8949017200000000{i:04}" for i in range(4)] + ["1e5", "100000"]
    edges = list(zip(ids, ids[1:] + ids[:1]))
    write("edges.csv", lines(["source", "target"], edges))
    yield Case("edges.csv", truth=Truth(edges))


def near(calls, people, words):
    """Ids that differ in how they are written alone: refused, with a hint, and right once they are written alike."""
    write("edges.csv", lines(["source", "target"], calls))
    ids = sorted({end for pair in people for end in pair})
    write("nodes.csv", lines(["id", "label"], ((node, at % 2) for at, node in enumerate(ids))))

    def follow():
        write("edges.csv", lines(["source", "target"], people))
        return ["edges.csv"]
    y = {node: at % 2 for at, node in enumerate(ids)}
    return Case("edges.csv", truth=Truth(people, ids, y=y), remedy=words, follow=follow)


@trial(58, "phone numbers with + in calls, without in the table of nodes, and the other way round")
def plus():
    with_plus = [(f"+{a}", f"+{b}") for a, b in TALKS]
    yield near(with_plus, TALKS, ["'+'", "another spelling"])
    yield near(TALKS, with_plus, ["'+'", "another spelling"])


@trial(59, "pandas' whole numbers that became floats, 1.0, in CSV")
def floats():
    edges = pd.DataFrame({"source": [1, 2, 3, None], "target": [2, 3, 1, 1]})
    edges.to_csv("edges.csv", index=False)
    write("nodes.csv", lines(["id", "label"], ((i, i % 2) for i in range(1, 4))))
    y = {i: i % 2 for i in range(1, 4)}
    right = Truth([(1, 2), (2, 3), (3, 1)], y, y=y)
    yield Case("edges.csv", truth=right, remedy=["--unknown", "drop"])
    edges.dropna().to_csv("edges.csv", index=False)
    yield Case("edges.csv", truth=right)
    yield near([("a1", "7.0"), ("7.0", "8.0")], [("a1", "7"), ("7", "8")], ["'.0'", "another spelling"])


@trial(60, "MovieLens ratings.csv")
def films():
    rows = [(1 + i % 5, 1 + (i * 3) % 7, 1 + i % 5, 964980000 + i) for i in range(30)]
    write("ratings.csv", lines(["userId", "movieId", "rating", "timestamp"], rows))
    edges = [(f"userId/{u}", f"movieId/{m}") for u, m, *_ in rows]
    x = {end: [end.startswith("user"), end.startswith("movie")] for edge in edges for end in edge}
    yield Case("ratings.csv", truth=Truth(edges, x=x), says=["userId", "movieId"])  # kinds of nodes are features
    weighed = [(f"userId/{u}", f"movieId/{m}", r) for u, m, r, _ in rows]
    yield Case("ratings.csv", "--weight", "rating", "--bipartite", truth=Truth(weighed, x=x))


@trial(61, "rows that are self-loops or repeated")
def repeated():
    rows = [(1, 1, 5), (1, 2, 1), (1, 2, 1), (2, 1, 3), (2, 2, 1), (2, 3, 1)]
    write("edges.csv", lines(["source", "target", "weight"], rows))
    says = ["2 of 6 rows are edges from a node to itself", "listed again"]
    yield Case("edges.csv", truth=Truth(rows), says=says)
    yield Case("edges.csv", "--weight", "count", truth=Truth([(a, b, 1) for a, b, _ in rows]))
    first = [rows[1], *rows[3:]]
    yield Case("edges.csv", "--duplicates", "first", truth=Truth(first))
    yield Case("edges.csv", "--self-loops", "keep", truth=Truth(rows, loops=True))
    yield Case("edges.csv", "--duplicates", "error", truth=Truth(first), remedy=["--duplicates", '"first"'],
               follow=lambda: ["edges.csv", "--duplicates", "first"])


@trial(62, "SNAP CollegeMsg: from to unixtime")
def times():
    rows = [(1 + i % 9, 1 + (i * 3) % 9, 1082040961 + i * 977) for i in range(40)]
    write("CollegeMsg.txt", lines(None, rows, " "))
    edges = dict.fromkeys(row[:2] for row in rows)
    yield Case("CollegeMsg.txt", truth=Truth(list(edges)), says=["times"])
    milli = [(a, b, t * 1000) for a, b, t in rows]
    write("milli.txt", lines(None, milli, "\t"))
    yield Case("milli.txt", truth=Truth(list(edges)), says=["times"])


@trial(63, "SNAP soc-sign-bitcoin-otc: signed weights, then times")
def signed():
    rows = [(1 + i % 9, 1 + (i * 2 + 3) % 9, (i * 7) % 21 - 10, 1289241911.72836 + i) for i in range(9)]
    with gzip.open("otc.csv.gz", "wt") as file:
        file.write(lines(None, rows) + "\n")
    yield Case("otc.csv.gz", truth=Truth([row[:3] for row in rows]), says=["negative"])
