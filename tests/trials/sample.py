"""The graph that most trials write: 20 people, 38 payments with weights, four features, two classes, a split."""
import numpy as np
from trial import Truth

N = 20
IDS = [f"u{i}" for i in range(N)]
PAIRS = dict.fromkeys((i, (i * step + shift) % N) for step, shift in ((7, 3), (1, 1)) for i in range(N))
EDGES = [(IDS[a], IDS[b], (at % 16 + 1) * 0.25) for at, (a, b) in enumerate(pair for pair in PAIRS if len({*pair}) == 2)]
SRC, DST, WEIGHT = (list(column) for column in zip(*EDGES))
BARE = [(a, b) for a, b, _ in EDGES]
X = ((np.arange(N)[:, None] * 37 + np.arange(4) * 11) % 129 / 8 - 8).astype(np.float32)
LABEL = ["ok" if i % 3 else "bad" for i in range(N)]
SPLIT = ["train" if i < 12 else "val" if i < 16 else "test" for i in range(N)]


def of(values, ids=IDS):
    return dict(zip(ids, values))


def truth(edges=EDGES, ids=IDS, x=None, y=LABEL, split=SPLIT, **more):
    """The truth of these people; features are the four of `X` unless they are said, and none with `x=False`."""
    x = X if x is None else x
    return Truth(edges, ids, x=None if x is False else of(x, ids), y=y and of(y, ids), split=split and of(split, ids),
                 **more)
