"""Floyd-Warshall: the shortest way between each two towns, and which roads it takes.

    python examples/loops/shortest_paths.py

Round `k` allows detours over town `k`. The derivative of a distance by the length of a road is 1 if the way takes that
road and 0 if not, so the gradient of one distance is the way itself, without a table of predecessors.
"""

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def distances(roads: "real[N, N]"):
    for k in range(N):
        roads[i, j] <<= roads[i, k] + roads[k, j], i != k, j != k
    return roads


def way(roads, start, end):
    """The towns on the shortest way, in order."""
    taken = tc.grad(lambda lengths: distances(lengths)[start, end])(roads)
    towns = [start]
    while towns[-1] != end:
        towns.append(int(taken[towns[-1]].argmax()))
    return towns


def random_roads(towns, generator):
    """Lengths of roads in both directions; about a third of the towns are joined, others infinitely far apart."""
    lengths = generator.uniform(1, 10, (towns, towns))
    roads = np.where(generator.random((towns, towns)) < 0.3, lengths, np.inf)
    np.fill_diagonal(roads, 0)
    return roads


def main(towns=12):
    roads = random_roads(towns, np.random.default_rng(5))
    found = distances(roads)
    start, end = np.unravel_index(np.where(np.isfinite(found), found, 0).argmax(), found.shape)
    towns = way(roads, int(start), int(end))
    print(f"the longest distance is {found[start, end]:.2f}, by way of {' - '.join(map(str, towns))}")
    return {"roads": roads, "distances": found, "way": towns}


if __name__ == "__main__":
    main()
