"""A language model that sees one letter: which letter follows which, in names.

    python examples/bigram.py

The table is found in two ways that must agree. Counting is a scatter: the letters are the indices of what is added to.
Training starts from a table of zeros and follows the gradient of the mean surprise, -log of the probability given to
the letter that came; that gradient is a scatter again, which tcdsl derives.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.progress import track

import tcdsl as tc
from tcdsl import cd, op

NAMES = Path(__file__).with_name("names.txt")


def pairs_of(names):
    """Numbers of the letters that stand beside each other, and the alphabet; `.` stands before and after a name."""
    alphabet = "." + "".join(sorted(set("".join(names))))
    number = {letter: k for k, letter in enumerate(alphabet)}
    text = [np.array([number[letter] for letter in f".{name}."]) for name in names]
    first = np.concatenate([word[:-1] for word in text])
    second = np.concatenate([word[1:] for word in text])
    return first, second, alphabet


@op
def count_pairs(first, second, *, letters):
    count: real[letters, letters]
    count[first[n], second[n]] += 1.0
    return count


@op
def normalized(count):
    p[a, b] = count[a, b] / sum(count[a, c])
    return p


@op
def softmax(table):
    top[a] >>= table[a, b]
    e[a, b] = exp(table[a, b] - top[a])
    p[a, b] = e[a, b] / sum(e[a, c])
    return p


@op
def surprise(p, first, second):
    average[()] = mean(-log(p[first[n], second[n]]))
    return average


@op
def loss(table, first, second):
    return surprise(softmax(table), first, second)


@cd
def descend(table, gradient, *, learning_rate):
    table -= learning_rate * gradient


def train(first, second, letters, steps, learning_rate=100.0):
    """A trained table of the logarithms of probabilities."""
    table = np.zeros((letters, letters))
    gradient = tc.grad(loss)
    for _ in track(range(steps), description="training"):
        descend(table, gradient(table, first, second), learning_rate=learning_rate)
    return table


def sample(p, alphabet, generator, count):
    """Invented names: each letter is drawn with the probabilities that the letter before it gives."""
    names = []
    for _ in range(count):
        name, letter = "", 0
        while not name or letter:
            letter = generator.choice(len(alphabet), p=p[letter])
            name += alphabet[letter]
        names.append(name[:-1])
    return names


def main(steps=500, count=10, names=NAMES):
    first, second, alphabet = pairs_of(Path(names).read_text().split())
    print(f"{len(first)} pairs of letters, an alphabet of {len(alphabet)}")
    counted = normalized(count_pairs(first, second, letters=len(alphabet)))
    trained = softmax(train(first, second, len(alphabet), steps))
    losses = float(surprise(counted, first, second)), float(surprise(trained, first, second))
    print(f"loss of the counted table {losses[0]:.4f}, of the trained one {losses[1]:.4f}")
    print(f"their probabilities differ by at most {np.abs(counted - trained).max():.3f}")
    samples = sample(counted, alphabet, np.random.default_rng(1), count)
    print("names from it:", ", ".join(samples[:10]))
    return {"counted": counted, "trained": trained, "losses": losses, "samples": samples, "alphabet": alphabet}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--count", type=int, default=10, help="how many names to invent")
    parser.add_argument("--names", default=NAMES, help="a text file of words")
    main(**vars(parser.parse_args()))
