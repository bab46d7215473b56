"""An LSTM that learns to spell: letters of invented names, one after the other, with Adam.

    python examples/loops/lstm.py

The network reads a name letter by letter and keeps a memory, so it sees all letters before the one that it predicts.
One loop over the letters serves names of every length; the gradient is the same loop backwards. After Hochreiter and
Schmidhuber, "Long short-term memory" (1997).
"""

import argparse
from pathlib import Path

import numpy as np
from rich.progress import track

import tcdsl as tc
from tcdsl import cd, op

NAMES = Path(__file__).parents[1] / "names.txt"
GATES = 4  # what is let in, kept, let out, and what is new


@op
def lstm_cell(letter: "int64[B]", h: "real[B, H]", c: "real[B, H]", embedding, W, U, b):
    """The next output and memory; `W` and `U` are gate, from, to."""
    gate[g, n, k] = b[g, k] + sum(W[g, d, k] * embedding[letter[n], d]) + sum(U[g, j, k] * h[n, j])
    c[n, k] = sigmoid(gate[1, n, k]) * c[n, k] + sigmoid(gate[0, n, k]) * tanh(gate[3, n, k])
    h[n, k] = sigmoid(gate[2, n, k]) * tanh(c[n, k])
    return h, c


@op
def lstm(embedding, W, U, b, V, a, letters: "int64[T, B]"):
    """Scores of the letters that follow, at each time."""
    h: real[B, U.shape[1]]
    c: real[B, U.shape[1]]
    scores: real[T, B, V.shape[1]]
    h[n, k] = 0.0
    c[n, k] = 0.0
    for t in range(T):
        h, c = lstm_cell(letters[t], h, c, embedding, W, U, b)
        scores[t, n, s] = a[s] + sum(V[k, s] * h[n, k])
    return scores


@op
def mean_loss(embedding, W, U, b, V, a, letters, following: "int64[T, B]", known: "real[T, B]"):
    """The mean cross entropy of the letters that follow; `known` is 0 behind the end of a name."""
    scores = lstm(embedding, W, U, b, V, a, letters)
    top[t, n] >>= scores[t, n, s]
    log_total[t, n] = log(sum(exp(scores[t, n, s] - top[t, n]))) + top[t, n]
    loss[()] = sum(known[t, n] * (log_total[t, n] - scores[t, n, following[t, n]])) / sum(known[t, n])
    return loss


@cd
def adam(p, mean, square, slope, step, rate):
    mean[...] = 0.9 * mean + 0.1 * slope
    square[...] = 0.99 * square + 0.01 * slope * slope
    p -= rate * (mean / (1 - 0.9**step)) / (sqrt(square / (1 - 0.99**step)) + 1e-8)


gradients = tc.value_and_grad(mean_loss, argnums=tuple(range(6)))


def spelled(names):
    """The names as numbers of letters, a column for each, `.` before and after it; and the alphabet."""
    alphabet = "." + "".join(sorted(set("".join(names))))
    number = {letter: k for k, letter in enumerate(alphabet)}
    letters = np.zeros((2 + max(map(len, names)), len(names)), int)
    for column, name in enumerate(names):
        letters[1 : 1 + len(name), column] = [number[letter] for letter in name]
    return letters, alphabet


def start(letters, size, generator):
    """Parameters to begin with: embedding, W, U and b of the gates, V and a of the scores."""

    def matrix(*shape):
        return generator.normal(0, shape[-2] ** -0.5, shape)

    b = np.zeros((GATES, size))
    b[1] = 1.0  # keep what is remembered
    return [
        matrix(letters, 8),
        matrix(GATES, 8, size),
        matrix(GATES, size, size),
        b,
        matrix(size, letters),
        np.zeros(letters),
    ]


def train(parameters, letters, steps, batch, generator, learning_rate=0.01):
    """Train in place, on some names in each step; returns the losses."""
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in parameters]
    known = np.cumsum(letters[1:] == 0, axis=0) <= 1  # up to the `.` behind a name
    losses = []
    for step in track(range(1, steps + 1), description="training"):
        chosen = generator.choice(letters.shape[1], batch, replace=False)
        given, following = letters[:-1, chosen], letters[1:, chosen]
        loss, slopes = gradients(*parameters, given, following, known[:, chosen].astype(float))
        rate = learning_rate * (1 - (step - 1) / steps)
        for p, (mean, square), slope in zip(parameters, moments, slopes, strict=True):
            adam(p, mean, square, slope, float(step), rate)
        losses.append(float(loss))
    return losses


def sample(parameters, alphabet, count, generator):
    """Invented names, all at once: each letter is drawn by what those before it say."""
    letters = np.zeros((1, count), int)
    while len(letters) < 20 and (len(letters) == 1 or letters[-1].any()):
        scores = lstm(*parameters, letters)[-1]
        noise = generator.gumbel(size=scores.shape)  # the largest is then drawn with the probability that it has
        following = (scores + noise).argmax(axis=1)
        following[(letters[1:] == 0).any(axis=0)] = 0  # names that have ended
        letters = np.vstack([letters, following])
    return ["".join(alphabet[letter] for letter in column[1:] if letter) for column in letters.T]


def main(steps=400, size=48, count=10, names=NAMES):
    letters, alphabet = spelled(Path(names).read_text().split())
    generator = np.random.default_rng(1)
    parameters = start(len(alphabet), size, generator)
    losses = train(parameters, letters, steps, 100, generator)
    print(f"loss of the first step {losses[0]:.3f}, of the last 50 {np.mean(losses[-50:]):.3f}")
    samples = sample(parameters, alphabet, count, generator)
    print("names from it:", ", ".join(samples[:10]))
    return {"losses": losses, "samples": samples}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--size", type=int, default=48, help="how many numbers the memory holds")
    parser.add_argument("--count", type=int, default=10, help="how many names to invent")
    parser.add_argument("--names", default=NAMES, help="a text file of words")
    main(**vars(parser.parse_args()))
