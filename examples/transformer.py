"""A transformer block, and a small one that learns to write numbers backwards.

    python examples/transformer.py

Attention is index notation: the condition `s <= t` is its causal mask, becomes a bound of loops, and halves the work.
What has parameters is written as layers on tensors: `w @ x` composes, whatever batch axes `x` has.

`block` is the layer; `block_of_arrays` is the same function of plain arrays, for `tc.grad` and the like. Both are what
`torch.nn.TransformerEncoderLayer(norm_first=True, activation="gelu")` computes under a causal mask.
"""

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def attend(qkv):
    """Queries, keys and values `[n, t, 3, h, e]` to `[n, t, h, e]`: position `t` sees the positions `s <= t`."""
    scale = 1 / sqrt(qkv.shape[4])
    S[n, t, h, s] += scale * qkv[n, t, 0, h, e] * qkv[n, s, 1, h, e], s <= t
    top[n, t, h] = max(S[n, t, h, s] for s in range(qkv.shape[1]) if s <= t)
    A[n, t, h, s] = exp(S[n, t, h, s] - top[n, t, h]), s <= t
    mass[n, t, h] += A[n, t, h, s]
    O[n, t, h, e] += A[n, t, h, s] / mass[n, t, h] * qkv[n, s, 2, h, e], s <= t
    return O


@op
def standardized(x, *, epsilon=1e-5):
    """Mean 0 and variance 1 for each position."""
    centred[n, t, d] = x[n, t, d] - mean(x[n, t, c])
    y[n, t, d] = centred[n, t, d] / sqrt(mean(square(centred[n, t, c])) + epsilon)
    return y


# -- layers on tensors: batch and positions are batch axes, features are an output axis --------------------------------


@op
def layer_norm(x, *, label):
    size = x.shape[-1]
    return param("scale", o=size, init=1.0) * standardized(x) + param("shift", o=size, init=0.0)


@op
def attention(x, *, heads):
    size = x.shape[-1]
    three = (3, heads, size // heads)
    return "w_o"[size] @ attend(param("w_qkv", o=three) @ x + param("b_qkv", o=three)) + "b_o"[size]


@op
def feed_forward(x, *, width):
    return "w_2"[x.shape[-1]] @ gelu("w_1"[width] @ x + "b_1"[width]) + "b_2"[x.shape[-1]]


@op
def block(x, *, heads, width):
    x = x + attention(layer_norm(x, label="norm_1"), heads=heads)
    return x + feed_forward(layer_norm(x, label="norm_2"), width=width)


# -- the same on arrays ------------------------------------------------------------------------------------------------


@op
def block_of_arrays(x, w_qkv, b_qkv, w_o, b_o, w_1, b_1, w_2, b_2, scale_1, shift_1, scale_2, shift_2):
    y = scale_1 * standardized(x) + shift_1
    qkv[n, t, p, h, e] += w_qkv[p, h, e, d] * y[n, t, d]
    heads = attend(qkv + b_qkv)
    mixed[n, t, d] += w_o[d, h, e] * heads[n, t, h, e]
    x = x + mixed + b_o

    y = scale_2 * standardized(x) + shift_2
    hidden[n, t, k] += w_1[k, d] * y[n, t, d]
    active = gelu(hidden + b_1)
    output[n, t, d] += w_2[d, k] * active[n, t, k]
    return x + output + b_2


# -- a model that reads digits and writes them backwards ---------------------------------------------------------------


@op
def language_model(tokens, *, symbols, size, heads, depth):
    """The scores of every symbol as the next one, at each position."""
    positions = tokens.shape[1]
    table, places = param("table", o=(symbols, size)), param("places", o=(positions, size))
    x[n, t, d] = table[tokens[n, t], d] + places[t, d]
    for _ in range(depth):
        x = block(x, heads=heads, width=4 * size)
    return "w" @ layer_norm(x, label="last") + "b"[symbols]


@op
def cross_entropy(scores, answers):
    """The mean over the answers, which are the symbols that follow the last positions."""
    first = scores.shape[1] - answers.shape[1]
    top[n, t] = max(scores[n, t, c])
    mass[n, t] = sum(exp(scores[n, t, c] - top[n, t]))
    loss[()] = mean(log(mass[n, t + first]) + top[n, t + first] - scores[n, t + first, answers[n, t]])
    return loss


def reversals(generator, count, length, symbols):
    """Sequences that go on backwards, but for their last symbol, and what follows at the last positions."""
    given = generator.integers(0, symbols, (count, length))
    whole = np.concatenate([given, given[:, ::-1]], axis=1)
    return whole[:, :-1], whole[:, length:]


def main(steps=400, length=5, symbols=10, batch=32, learning_rate=3e-3):
    from rich.progress import track  # the functions above do without

    generator = np.random.default_rng(0)
    tokens, answers = (tc.tensor(array, batch=2) for array in reversals(generator, batch, length, symbols))
    model = language_model(symbols=symbols, size=32, heads=4, depth=1)
    scores = model(tokens)
    loss = cross_entropy(scores, answers)
    step = tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=learning_rate))

    losses = []
    for _ in track(range(steps), "learning"):
        tokens.value, answers.value = reversals(generator, batch, length, symbols)
        step.run()
        losses.append(loss.item())
    tokens.value, answers.value = reversals(generator, batch, length, symbols)
    written = np.argmax(scores.value[:, -length:], axis=-1)
    right = float(np.mean(written == answers.value))
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.4f}; {right:.1%} of the symbols of new sequences are right")
    print(f"{tokens.value[0, :length]} backwards is {written[0]}")
    return {"losses": losses, "right": right, "model": model}


if __name__ == "__main__":
    main()
