"""Random programs: chains of statements with every form of access, accumulator, start and guard."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program

__all__ = ["BOUNDARIES", "Case", "Writer", "random_case"]

BOUNDARIES = ("clamp", "wrap", "reflect", "symmetric")
# Without kinks, and gentle enough for differences of second derivatives.
FUNCTIONS = ("sin", "cos", "tanh", "sigmoid", "atan", "softplus")


@dataclass
class Case:
    """A program and arrays for it."""

    program: Program
    inputs: list[np.ndarray]
    wrt: list[str]


@dataclass
class Writer:
    rng: np.random.Generator
    ranks: dict[str, int] = field(default_factory=lambda: {"x": 1, "A": 2, "s": 0})
    statements: list[str] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)

    def pick(self, *options: str) -> str:
        return options[self.rng.integers(len(options))]

    def index(self, variables: list[str], needs: list[str]) -> str:
        """An index into an axis of extent N; in-range conditions are added to ``needs``."""
        if not variables:
            needs.append("N > 1")
            return self.pick("0", "1", "N - 1")
        i, j = self.pick(*variables), self.pick(*variables)
        index = self.pick(
            i, i, i, f"{i} - 1", f"{i} + 1", f"N - 1 - {i}", f"2*{i}", f"{i} // 2", f"{i} + {j}", f"{i} - {j}"
        )
        if self.rng.random() < 0.15:
            return f"{self.pick(*BOUNDARIES)}({index})"
        if self.rng.random() < 0.1:
            return f"ids[{i}]"
        needs.append(f"0 <= {index} < N")
        return index

    def read(self, variables: list[str], needs: list[str]) -> str:
        name = self.pick(*self.ranks)
        indices = ", ".join(self.index(variables, needs) for _ in range(self.ranks[name]))
        return f"{name}[{indices}]" if indices else f"{name}[()]"

    def value(self, variables: list[str], needs: list[str], depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.15:
            return self.read(variables, needs) if self.rng.random() < 0.85 else f"{self.rng.uniform(0.5, 1.5):.2f}"
        kind = self.rng.random()
        inner = [self.value(variables, needs, depth - 1) for _ in range(2)]
        if kind < 0.25:
            return f"{self.pick(*FUNCTIONS)}({inner[0]})"
        if kind < 0.8 or not variables:
            return f"({inner[0]} {self.pick('+', '-', '*')} {inner[1]})"
        return self.guarded(variables, inner)

    def guarded(self, variables: list[str], inner: list[str]) -> str:
        i = self.pick(*variables)
        kind = self.rng.random()
        if kind < 0.4:
            return f"where({i} > 0, x[{i} - 1] * {inner[0]}, {inner[1]})"
        if kind < 0.7:
            return f"where(ids[{i}] > 0, {inner[0]}, x[ids[{i}]])"
        return f"get(x[{i} + 1], {inner[0]})"

    def statement(self, number: int) -> None:
        rank = int(self.rng.integers(0, 3))
        variables = ["i", "j", "k"][: max(rank, int(self.rng.integers(rank, 4)))]
        needs = [f"0 <= {name} < N" for name in variables]
        value = self.value(variables, needs, int(self.rng.integers(1, 4)))
        name = f"t{number}"
        accumulate = self.pick("+=", "+=", "+=", "-=", "*=", ">>=", "<<=")
        target = list(variables[:rank])
        if rank and self.rng.random() < 0.3:
            target[0] = self.pick(f"{target[0]} // 2", f"N - 1 - {target[0]}", "ids[i]")
        elif len(variables) == rank and self.rng.random() < 0.5:
            accumulate = "="
        start = ""
        earlier = [other for other, of in self.ranks.items() if of == rank and other not in ("x", "A", "s")]
        if earlier and self.rng.random() < 0.4:
            start = f" from {self.pick(*earlier)}"
        elif self.rng.random() < 0.15:
            start = " from fill(s[()] * 0.5)"
        elif accumulate in (">>=", "<<="):
            start = " from fill(0.25 * s[()])"
        domain = " and ".join(dict.fromkeys(needs))
        condition = f" if ids[{variables[-1]}] > 0" if variables and self.rng.random() < 0.15 else ""
        cell = ", ".join(target) or "()"
        line = f"{name}[{cell}] {accumulate} {value}{start} for [{', '.join(variables)}]: {domain}{condition}"
        self.statements.append(line)
        self.tensors.append(f"{name}: float64" + (f"[{', '.join(['N'] * rank)}]" if rank else ""))
        self.ranks[name] = rank


def random_case(seed: int) -> Case:
    """The program of a seed, with extents from 1 to 4."""
    rng = np.random.default_rng(seed)
    writer = Writer(rng)
    count = int(rng.integers(1, 5))
    for number in range(count):
        writer.statement(number)
    inputs = ["x: float64[N]", "A: float64[N, N]", "s: float64", "ids: int64[N]"]
    outputs = ", ".join({f"t{count - 1}": None, f"t{int(rng.integers(count))}": None})
    lines = ["program random", *(f"input {line}" for line in inputs), 'assert N >= 1, "N is {N}"']
    lines += [*(f"tensor {line}" for line in writer.tensors), "", *writer.statements, "", f"return {outputs}"]
    n = int(rng.integers(1, 5))
    # Cells that are far from each other, so that a maximum does not change hands within a difference's step.
    apart = rng.permutation(np.linspace(0.3, 1.2, n)) + rng.uniform(-0.02, 0.02, n)
    arrays = [apart, rng.uniform(-1, 1, (n, n)), rng.uniform(0.5, 1.5, ()), rng.integers(0, n, n)]
    return Case(parse_program("\n".join(lines) + "\n"), arrays, ["x", "A", "s"])
