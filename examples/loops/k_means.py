"""k-means: points in clusters, until no centre moves.

    python examples/loops/k_means.py

Each round gives every point to the centre next to it and moves every centre to the mean of its points: `argmin`, and
sums that scatter to the index of the centre. The loop ends when nothing moved any more.
"""

import numpy as np

from tcdsl import op


@op
def k_means(points: "real[N, D]", centres: "real[K, D]"):
    """The centres, to which of them each point belongs, and the number of rounds."""
    nearest: int64[N]
    nearest[n] = 0
    rounds = 0
    moved = 1.0
    while moved > 0:
        nearest[n] = argmin(sum(square(points[n, d] - centres[c, d]) for d in range(D)) for c in range(K))
        count: real[K]
        total: real[K, D]
        count[nearest[n]] += 1.0
        total[nearest[n], d] += points[n, d]
        means[c, d] = total[c, d] / count[c] if count[c] > 0 else centres[c, d]
        moved = max(abs(means[c, d] - centres[c, d]))
        centres = means
        rounds = rounds + 1
    return centres, nearest, rounds


def main(count=100):
    generator = np.random.default_rng(4)
    middles = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    points = np.concatenate([generator.normal(middle, 0.8, (count, 2)) for middle in middles])
    # Points far from each other to start with: the one farthest from those chosen, one after the other.
    start = [points[0]]
    for _ in range(len(middles) - 1):
        away = np.min([np.linalg.norm(points - centre, axis=1) for centre in start], axis=0)
        start.append(points[away.argmax()])
    centres, nearest, rounds = k_means(points, np.array(start))
    spread = float(np.mean((points - centres[nearest]) ** 2))
    print(f"{rounds} rounds; centres {', '.join(str(centre.round(2)) for centre in centres)}")
    return {"points": points, "start": np.array(start), "centres": centres, "nearest": nearest, "spread": spread}


if __name__ == "__main__":
    main()
