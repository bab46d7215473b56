"""A hidden Markov model: how likely a sequence is, which states were passed, and how probable each of them was.

    python examples/loops/hidden_markov.py

A casino changes, unseen, between a fair die and a loaded one. The forward algorithm and Viterbi's are one loop each:
the first sums over the state before, the second takes the best. The gradient of the log-likelihood by the logarithms of
the emissions is what the backward algorithm computes: the probability of each state at each time.
"""

import numpy as np

import tcdsl as tc
from tcdsl import op

FACES = 6


@op
def log_likelihood(emitted: "real[T, S]", first: "real[S]", step: "real[S, S]"):
    """Of a sequence; `emitted[t, s]` is the logarithm of the probability of what is seen at t in state s."""
    forward[s] = first[s] + emitted[0, s]
    for t in range(1, T):
        top = max(forward[s])
        forward[s] = log(sum(exp(forward[r] - top + step[r, s]))) + top + emitted[t, s]
    top = max(forward[s])
    total[()] = log(sum(exp(forward[s] - top))) + top
    return total


@op
def viterbi(emitted: "real[T, S]", first: "real[S]", step: "real[S, S]"):
    """The states that are most probable together."""
    best: real[T, S]
    before: int64[T, S]
    best[0, s] = first[s] + emitted[0, s]
    for t in range(1, T):
        best[t, s] = max(best[t - 1, r] + step[r, s]) + emitted[t, s]
        before[t, s] = argmax(best[t - 1, r] + step[r, s])
    states: int64[T]
    states[T - 1] = argmax(best[T - 1, s])
    for t in reversed(range(1, T)):
        states[t - 1] = before[t, states[t]]
    return states


posterior = tc.grad(log_likelihood)  # the probability of each state at each time


def throw(count, first, step, faces, generator):
    """The hidden states, and the faces that are seen."""
    states = [generator.choice(2, p=first)]
    for _ in range(count - 1):
        states.append(generator.choice(2, p=step[states[-1]]))
    return np.array(states), np.array([generator.choice(FACES, p=faces[state]) for state in states])


def main(count=300):
    first, step = np.array([0.5, 0.5]), np.array([[0.95, 0.05], [0.1, 0.9]])
    faces = np.array([np.full(6, 1 / 6), [0.1] * 5 + [0.5]])
    states, seen = throw(count, first, step, faces, np.random.default_rng(1))
    model = np.log(faces.T)[seen], np.log(first), np.log(step)
    right = {
        "viterbi": float((viterbi(*model) == states).mean()),
        "posterior": float((posterior(*model).argmax(axis=1) == states).mean()),
    }
    print(f"log-likelihood of {count} throws: {log_likelihood(*model):.2f}")
    print(f"states told right: {right['viterbi']:.1%} on the best path, {right['posterior']:.1%} one by one")
    return {"model": model, "right": right}


if __name__ == "__main__":
    main()
