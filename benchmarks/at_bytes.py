"""What a comparison's methods had reached at shares of the bytes that its first method sent in all.

python benchmarks/at_bytes.py COMPARISON [SHARE …]

Reads the folder that `laconic compare` wrote; prints for each method the mean over seeds of the test figure at the best validation
round so far. Needs nothing but Python.
"""

import json
import pathlib
import sys


def curve(run, metric):
    """Bytes sent and the test figure of the best validation round so far, round by round."""
    best, test, points = float("-inf"), None, []
    for line in (run / "metrics.jsonl").read_text().splitlines():
        report = json.loads(line)
        if "bytes" in report and "val" in report:
            if report["val"][metric] > best:
                best, test = report["val"][metric], report["test"][metric]
            points.append((report["bytes"], test))
    return points


def main():
    folder = pathlib.Path(sys.argv[1])
    shares = [float(share) for share in sys.argv[2:]] or [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0]
    comparison = json.loads((folder / "compare.json").read_text())
    whole = comparison["methods"][0]["bytes"]
    print("method", *(f"{share:.0%}" for share in shares), sep="\t")
    for method in comparison["methods"]:
        curves = [curve(folder / run["folder"], comparison["metric"]) for run in method["runs"]]
        reached = []
        for share in shares:
            last = [max(points)[1] for points in ([p for p in c if p[0] <= share * whole] for c in curves) if points]
            reached.append(f"{100 * sum(last) / len(last):.1f}" if curves and len(last) == len(curves) else "-")
        print(method["name"], *reached, sep="\t")


main()
