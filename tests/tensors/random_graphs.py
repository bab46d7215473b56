"""Random graphs of tensors, and what they are in NumPy: each step is a function of tensors and one of arrays with rows.

The second ones know three rows and nothing else of the library: each row is aligned at the right by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tcdsl as tc

__all__ = ["Graph", "Rowed", "random_graph"]

Ranks = tuple[int, int, int]
LETTERS = "abcdefgh"
LARGEST_RANK, LARGEST_SIZE = 6, 300


@dataclass(frozen=True)
class Rowed:
    """An array and the numbers of its batch, output and input axes."""

    array: np.ndarray
    ranks: Ranks

    @property
    def rows(self) -> list[int]:
        """The row of each axis: 0, 1 or 2."""
        return [row for row in range(3) for _ in range(self.ranks[row])]


@dataclass(frozen=True)
class Step:
    """``ours(*tensors)`` and ``numpys(*rowed)`` of the values at ``sources``."""

    text: str
    sources: tuple[int, ...]
    ours: Callable[..., Any]
    numpys: Callable[..., Rowed]


@dataclass(frozen=True)
class Graph:
    """Leaves, and steps on what is there already; the last step's result is the graph's."""

    leaves: tuple[Rowed, ...]
    steps: tuple[Step, ...]

    def tensors(self) -> list[tc.Tensor]:
        """The leaves as tensors with gradients."""
        return [tc.tensor(each.array, batch=each.ranks[0], input=each.ranks[2], grad=True) for each in self.leaves]

    def ours(self, leaves: Sequence[Any]) -> Any:
        """The result as a tensor."""
        values = list(leaves)
        for step in self.steps:
            values.append(step.ours(*(values[k] for k in step.sources)))
        return values[-1]

    def numpys(self, arrays: Sequence[np.ndarray]) -> Rowed:
        """The result by NumPy, with other numbers in the leaves."""
        values = [Rowed(array, leaf.ranks) for array, leaf in zip(arrays, self.leaves, strict=True)]
        for step in self.steps:
            values.append(step.numpys(*(values[k] for k in step.sources)))
        return values[-1]

    def __str__(self) -> str:
        leaves = (f"{k}: {each.array.shape} in {each.ranks}" for k, each in enumerate(self.leaves))
        steps = (f"{k}: {each.text} of {each.sources}" for k, each in enumerate(self.steps, len(self.leaves)))
        return "\n".join((*leaves, *steps))


def aligned(operands: Sequence[Rowed]) -> tuple[list[np.ndarray], Ranks]:
    """The arrays with axes of size 1 where others have axes, and the numbers of axes of all of them."""
    most = [max(each.ranks[row] for each in operands) for row in range(3)]
    made = []
    for each in operands:
        sizes: list[int] = []
        start = 0
        for row, rank in enumerate(each.ranks):
            sizes += [1] * (most[row] - rank) + list(each.array.shape[start : start + rank])
            start += rank
        made.append(each.array.reshape(sizes))
    return made, (most[0], most[1], most[2])


def pointwise(function: Callable[..., np.ndarray], *operands: Rowed) -> Rowed:
    """A function of cells."""
    arrays, ranks = aligned(operands)
    return Rowed(np.asarray(function(*arrays)), ranks)


def composed(left: Rowed, right: Rowed) -> Rowed:
    """The input axes of ``left`` summed over with the output axes of ``right``."""
    batch = max(left.ranks[0], right.ranks[0])
    outer, middle, inner = left.ranks[1], left.ranks[2], right.ranks[2]
    (a_batch, a_rest), (b_batch, b_rest) = (
        (each.array.shape[: each.ranks[0]], each.array.shape[each.ranks[0] :]) for each in (left, right)
    )
    a = left.array.reshape((1,) * (batch - len(a_batch)) + a_batch + a_rest + (1,) * inner)
    b = right.array.reshape((1,) * (batch - len(b_batch)) + b_batch + (1,) * outer + b_rest)
    return Rowed((a * b).sum(tuple(range(batch + outer, batch + outer + middle))), (batch, outer, inner))


UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "tanh": np.tanh,
    "root": lambda x: np.sqrt(x * x + 0.1),
    "relu": lambda x: np.maximum(x, 0.0),
    "negative": lambda x: -x,
    "square": lambda x: x * x,
    "cube": lambda x: x**3,
    "abs": abs,
    "log": lambda x: np.log(x * x + 0.5),
    "scaled": lambda x: 1.5 * x - 1,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y * y + 1.0),
    "max": np.maximum,
    "min": np.minimum,
    "where": lambda x, y: np.where(x < y, 2 * x, y),
}


class _Builder:
    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        first = self._leaf([int(generator.integers(0, 3)) for _ in range(3)])
        self.leaves = [first, *(self._like(first) for _ in range(2))]
        self.values = list(self.leaves)
        self.steps: list[Step] = []

    def _leaf(self, ranks: Sequence[int], sizes: Sequence[int] | None = None) -> Rowed:
        if sizes is None:
            sizes = [int(self.generator.choice(5, p=[0.04, 0.36, 0.3, 0.18, 0.12])) for _ in range(sum(ranks))]
        return Rowed(self.generator.uniform(0.3, 1.5, tuple(sizes)), (ranks[0], ranks[1], ranks[2]))

    def _like(self, first: Rowed) -> Rowed:
        if self.generator.random() < 0.4:
            return self._leaf([int(self.generator.integers(0, 3)) for _ in range(3)])
        return self._leaf(first.ranks, [size if self.generator.random() < 0.8 else 1 for size in first.array.shape])

    def step(self) -> None:
        """One more step, if what is drawn has a meaning."""
        kinds = (self.unary, self.binary, self.composed, self.reduced, self.view, self.transposed, self.stacked)
        kind = [*kinds, self.einsum, self.diagonal, self.gathered][int(self.generator.integers(10))]
        sources = tuple(int(self.generator.integers(len(self.values))) for _ in range(2))
        made = kind(*(self.values[k] for k in sources))
        if made is None:
            return
        arity, text, ours, numpys = made
        try:
            result = numpys(*(self.values[k] for k in sources[:arity]))
        except ValueError:
            return  # does not broadcast
        if result.array.ndim <= LARGEST_RANK and result.array.size <= LARGEST_SIZE:
            self.steps.append(Step(text, sources[:arity], ours, numpys))
            self.values.append(result)

    def unary(self, x: Rowed, _: Rowed) -> Any:
        name = str(self.generator.choice(list(UNARY)))
        return 1, name, UNARY[name], lambda a: pointwise(UNARY[name], a)

    def binary(self, x: Rowed, y: Rowed) -> Any:
        name = str(self.generator.choice(list(BINARY)))
        return 2, name, BINARY[name], lambda a, b: pointwise(BINARY[name], a, b)

    def composed(self, x: Rowed, y: Rowed) -> Any:
        inner = x.array.shape[x.ranks[0] + x.ranks[1] :]
        if not inner or inner != y.array.shape[y.ranks[0] : y.ranks[0] + y.ranks[1]]:
            return None
        return 2, "@", lambda a, b: a @ b, composed

    def reduced(self, x: Rowed, _: Rowed) -> Any:
        if not x.array.ndim:
            return None
        rank, keep = x.array.ndim, bool(self.generator.integers(2))
        axes = tuple(map(int, self.generator.permutation(rank)[: self.generator.integers(1, rank + 1)]))
        names = ["sum"] if 0 in x.array.shape else ["sum", "mean", "max", "min", "prod"]
        name = str(self.generator.choice(names))
        ranks = tuple(
            count - (0 if keep else sum(x.rows[axis] == row for axis in axes)) for row, count in enumerate(x.ranks)
        )

        def ours(a: Any) -> Any:
            return getattr(a, name)(axis=axes, keepdims=keep)

        return 1, f"{name} over {axes}, {keep}", ours, lambda a: Rowed(np.asarray(ours(a.array)), ranks)

    def view(self, x: Rowed, _: Rowed) -> Any:
        key: list[Any] = []
        ranks = list(x.ranks)
        for axis in range(int(self.generator.integers(0, x.array.ndim + 1))):
            size, draw = x.array.shape[axis], int(self.generator.integers(5))
            if draw == 0 and size:
                key.append(int(self.generator.integers(-size, size)))
                ranks[x.rows[axis]] -= 1
            else:
                start = int(self.generator.integers(0, size + 1))
                key.append([slice(None), slice(start, None), slice(None, start), slice(None, None, 2)][draw - 1])
        whole = tuple(key)
        return 1, f"[{whole}]", lambda a: a[whole], lambda a: Rowed(a.array[whole], (ranks[0], ranks[1], ranks[2]))

    def transposed(self, x: Rowed, _: Rowed) -> Any:
        batch, outer, inner = x.ranks
        if not batch and not inner:
            return 1, "T", lambda a: a.T, lambda a: Rowed(a.array.T, a.ranks)
        order = [*range(batch), *range(batch + outer, batch + outer + inner), *range(batch, batch + outer)]
        return 1, "T", lambda a: a.T, lambda a: Rowed(a.array.transpose(order), (batch, inner, outer))

    def stacked(self, x: Rowed, y: Rowed) -> Any:
        row = int(self.generator.integers(3))
        literal: Any = [lambda a, b: tc.batch([a, b]), lambda a, b: [a, b], lambda a, b: (a, b)][row]

        def numpys(a: Rowed, b: Rowed) -> Rowed:
            arrays, ranks = aligned((a, b))
            counts = [count + (row == place) for place, count in enumerate(ranks)]
            both = np.stack(np.broadcast_arrays(*arrays), sum(ranks[:row]))
            return Rowed(both, (counts[0], counts[1], counts[2]))

        return 2, f"stacked in row {row}", lambda a, b: tc.tensor(literal(a, b)), numpys

    def einsum(self, x: Rowed, _: Rowed) -> Any:
        names = LETTERS[: x.array.ndim]
        kept = [name for name in names if self.generator.random() < 0.7]
        self.generator.shuffle(kept)
        cuts = sorted(map(int, self.generator.integers(0, len(kept) + 1, 2)))
        return self._by_spec(x, names, (kept[: cuts[0]], kept[cuts[0] : cuts[1]], kept[cuts[1] :]))

    def diagonal(self, x: Rowed, _: Rowed) -> Any:
        pairs = [(k, m) for m in range(x.array.ndim) for k in range(m) if x.array.shape[k] == x.array.shape[m]]
        if not pairs:
            return None
        first, second = pairs[int(self.generator.integers(len(pairs)))]
        names = list(LETTERS[: x.array.ndim])
        names[second] = names[first]
        return self._by_spec(x, "".join(names), ([], list(dict.fromkeys(names)), []))

    def _by_spec(self, x: Rowed, names: str, kept: tuple[list[str], list[str], list[str]]) -> Any:
        batch, outer = x.ranks[0], x.ranks[0] + x.ranks[1]
        shapes = ((names[:batch], names[batch:outer], names[outer:]), tuple(map("".join, kept)))
        spec = "=>".join(f"{row[0]}|{row[2]}->{row[1]}" for row in shapes)
        numpys = f"{names}->{''.join(shapes[1])}"
        ranks = (len(kept[0]), len(kept[1]), len(kept[2]))
        return 1, spec, lambda a: tc.einsum(spec, a), lambda a: Rowed(np.asarray(np.einsum(numpys, a.array)), ranks)

    def gathered(self, x: Rowed, _: Rowed) -> Any:
        if not x.array.ndim or not x.array.shape[0]:
            return None
        chosen = self.generator.integers(0, x.array.shape[0], int(self.generator.integers(0, 4)))
        return 1, f"[{chosen}]", lambda a: a[chosen], lambda a: Rowed(a.array[chosen], a.ranks)


def random_graph(seed: int) -> Graph:
    """A graph of three leaves and up to six steps, each of some of what is there."""
    generator = np.random.default_rng(seed)
    builder = _Builder(generator)
    for _ in range(int(generator.integers(3, 9))):
        builder.step()
    return Graph(tuple(builder.leaves), tuple(builder.steps))
