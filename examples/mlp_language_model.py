"""A language model that sees the last few letters: embedding, hidden layer, softmax, trained with Adam.

    python examples/mlp_language_model.py

The names obey a rule that one letter cannot show (see `invent_names.py`), so this model becomes better than the table
of pairs in `bigram.py`, and nearly all names that it invents obey the rule. After Bengio et al., "A neural
probabilistic language model" (2003).
"""

import argparse
from pathlib import Path

import numpy as np
from rich.progress import track

import tcdsl as tc
from tcdsl import op

NAMES = Path(__file__).with_name("names.txt")
CONTEXT = 4
BATCH = 100


def contexts_of(names):
    """Every letter with the `CONTEXT` letters before it, as numbers, and the alphabet; `.` fills up and ends."""
    alphabet = "." + "".join(sorted(set("".join(names))))
    number = {letter: k for k, letter in enumerate(alphabet)}
    contexts, letters = [], []
    for name in names:
        seen = [0] * CONTEXT
        for letter in f"{name}.":
            contexts.append(seen)
            letters.append(number[letter])
            seen = [*seen[1:], number[letter]]
    return np.array(contexts), np.array(letters), alphabet


@op
def language_model(context, *, letters, embedding_dim, hid_dim):
    table = param("embedding", o=(letters, embedding_dim))
    embedded = table[context]  # a gather: contexts | position -> position, embedding
    hidden = tanh("w1" @ embedded + "b1"[hid_dim])
    return "w2" @ hidden + "b2"[letters]


@op
def cross_entropy(scores, letter):
    top[n] >>= scores[n, a]
    log_total[n] = log(sum(exp(scores[n, a] - top[n]))) + top[n]
    loss[()] = mean(log_total[n] - scores[n, letter[n]])
    return loss


def train(model, contexts, letters, epochs, learning_rate, generator):
    """Train in place, on minibatches of shuffled rows; returns the mean loss of every epoch."""
    batches = len(letters) // BATCH
    batch_n = tc.static_index("batch_n", batches)
    data = tc.tensor(contexts, batch=1, label="contexts"), tc.tensor(letters, batch=1, label="letters")
    rows = tc.tensor(np.zeros((batches, BATCH), int), batch=2, label="rows")
    chosen = rows[batch_n]
    loss = cross_entropy(model(data[0][chosen]), data[1][chosen])
    step = tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=learning_rate))

    losses = []
    for epoch in track(range(epochs), description="training"):
        rows.value = generator.permutation(len(letters))[: batches * BATCH].reshape(batches, BATCH)
        total = 0.0
        for n in range(batches):
            step.run(batch_n=n, learning_rate=learning_rate * (1 - epoch / epochs))
            total += loss.item()
        losses.append(total / batches)
    return losses


def sample(model, alphabet, generator, count):
    """Invented names: each letter is drawn with the probabilities that the letters before it give."""
    context = tc.tensor(np.zeros((1, CONTEXT), int), batch=1, label="context")
    scores = model(context)
    names = []
    for _ in range(count):
        name, letter, seen = "", None, [0] * CONTEXT
        while letter != 0 or not name:
            context.value = np.array([seen])
            p = np.exp(scores.value[0])
            letter = generator.choice(len(alphabet), p=p / p.sum())
            seen = [*seen[1:], letter]
            name += alphabet[letter] if letter else ""
        names.append(name)
    return names


def main(epochs=20, count=10, names=NAMES):
    contexts, letters, alphabet = contexts_of(Path(names).read_text().split())
    tc.seed(1)
    generator = np.random.default_rng(1)
    model = language_model(letters=len(alphabet), embedding_dim=8, hid_dim=64)
    losses = train(model, contexts, letters, epochs, learning_rate=0.01, generator=generator)
    print(f"loss of the first epoch {losses[0]:.4f}, of the last {losses[-1]:.4f}")
    samples = sample(model, alphabet, generator, count)
    print("names from it:", ", ".join(samples[:10]))
    return {"losses": losses, "samples": samples}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--count", type=int, default=10, help="how many names to invent")
    parser.add_argument("--names", default=NAMES, help="a text file of words")
    main(**vars(parser.parse_args()))
