"""Random programs with every accumulator, access form and primitive, whose second derivatives exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.parser import parse_program
from tests.autodiff.random_programs import BOUNDARIES, Case, Writer

__all__ = ["wild_case"]

ROWS = [row for row in PRIMITIVES.values() if row.kind in ("real", "number", "any") and row.derivatives is not None]
# Integer powers, remainders and floors are written where their arguments are known.
ONE = [row for row in ROWS if row.arity == 1]
SEVERAL = [row for row in ROWS if row.arity > 1 and row.name not in ("floor_div", "mod", "pow", "div", "atan2")]
ACCUMULATORS = ("=", "+=", "+=", "-=", "*=", "*=", "/=", "**=", ">>=", "<<=", "?/=", "?^=")


@dataclass
class WildWriter(Writer):
    """Statements with more forms; all values stay in the domain of what is applied to them."""

    def index(self, variables: list[str], needs: list[str]) -> str:
        if not variables or self.rng.random() < 0.5:
            return super().index(variables, needs)
        i, j = self.pick(*variables), self.pick(*variables)
        data = self.rng.random()
        if data < 0.12:
            return self.pick(f"ids[ids[{i}]]", f"{self.pick(*BOUNDARIES)}(ids[{i}] + {j} - 1)", f"ids[{i}]")
        forms = (f"2*{i} + 1", f"{i} % 2", f"({i} + {j}) // 2", f"2*{i} - {j}", f"2*{i} + 3*{j} - 2", f"N - {i} - {j}")
        index = self.pick(*forms, f"{i}", f"{i} - 2*{j}")
        if data < 0.25:
            return f"{self.pick(*BOUNDARIES)}({index})"
        needs.append(f"0 <= {index} < N")
        return index

    def value(self, variables: list[str], needs: list[str], depth: int) -> str:
        if depth == 0 or self.rng.random() < 0.5:
            return super().value(variables, needs, depth)
        kind = self.rng.random()
        inner = self.value(variables, needs, depth - 1)
        if kind < 0.5:
            row = ONE[self.rng.integers(len(ONE))]
            return f"{row.name}({self.inside(inner, row.interval)})"
        other = self.value(variables, needs, depth - 1)
        if kind < 0.6:
            return f"{inner} / ({other} * {other} + 0.7)"
        if kind < 0.7:
            return self.pick(f"(0.3 + square({inner})) ** {other}", f"({inner}) ** 2.0", f"({inner}) ** 3.0")
        if kind < 0.75:
            return f"atan2({inner}, 1.5 + sin({other}))"
        row = SEVERAL[self.rng.integers(len(SEVERAL))]
        third = self.value(variables, needs, depth - 1) if row.arity == 3 else ""
        return f"{row.name}({', '.join(part for part in (inner, other, third) if part)})"

    def inside(self, value: str, interval: tuple[float, float]) -> str:
        low, high = interval
        if (low, high) == (-2.0, 2.0):
            return value
        return f"{low} + {high - low} * (0.1 + 0.8 * sigmoid({value}))"

    def statement(self, number: int) -> None:
        rank = int(self.rng.integers(0, 3))
        accumulate = self.pick(*ACCUMULATORS)
        count = rank if accumulate == "=" else int(self.rng.integers(rank, 4))
        variables = ["i", "j", "k"][:count]
        needs = [f"0 <= {name} < N" for name in variables]
        value = self.value(variables, needs, int(self.rng.integers(1, 3)))
        name, target = f"t{number}", variables[:rank]
        if rank and self.rng.random() < 0.4:
            target = self.moved(target, accumulate, needs)
        if accumulate == "*=" and variables and self.rng.random() < 0.5:
            value = f"({value}) * float64({self.pick(*variables)} - 1)"
        if accumulate in ("/=", "**=", "?/=", "?^="):
            value = f"0.3 + 0.6 * sigmoid({value})"
        start = self.start(rank, accumulate)
        condition = self.condition(variables)
        oob = self.pick("", "", " with oob skip", " with oob clamp") if "ids[" in "".join(target) else ""
        domain = " and ".join(dict.fromkeys(needs))
        cell = ", ".join(target) or "()"
        line = f"{name}[{cell}] {accumulate} {value}{start} for [{', '.join(variables)}]: {domain}{condition}{oob}"
        self.statements.append(line)
        self.tensors.append(f"{name}: float64" + (f"[{', '.join(['N'] * rank)}]" if rank else ""))
        self.ranks[name] = rank

    def moved(self, target: list[str], accumulate: str, needs: list[str]) -> list[str]:
        place = int(self.rng.integers(len(target)))
        name, other = target[place], target[-1 - place]
        forms = [f"N - 1 - {name}", f"2*{name}", f"{name} + 1"]
        if accumulate != "=":
            forms += [f"{name} // 2", f"{name} % 2", f"{name} + {other}", f"2*{name} - {other}"]
        if accumulate not in ("=", "?/=", "?^="):
            forms.append(f"ids[{name}]")
        index = self.pick(*forms)
        if not index.startswith("ids"):
            needs.append(f"0 <= {index} < N")
        return [*target[:place], index, *target[place + 1 :]]

    def start(self, rank: int, accumulate: str) -> str:
        earlier = [other for other, of in self.ranks.items() if of == rank and other not in ("x", "A", "s")]
        if accumulate != "**=" and earlier and self.rng.random() < 0.4:
            return f" from {self.pick(*earlier)}"
        if accumulate in (">>=", "<<=", "**=") or self.rng.random() < 0.15:
            return " from fill(0.25 + square(s[()]))"
        return ""

    def condition(self, variables: list[str]) -> str:
        if not variables or self.rng.random() > 0.2:
            return ""
        i = self.pick(*variables)
        return self.pick(f" if ids[{i}] > 0", f" if x[{i}] > 0.5", f" if ids[{i}] != {i} or x[{i}] < 0.9")


def wild_case(seed: int) -> Case:
    """The program of a seed, with extents from 1 to 4."""
    rng = np.random.default_rng((7, seed))
    writer = WildWriter(rng)
    count = int(rng.integers(1, 3))
    for number in range(count):
        writer.statement(number)
    inputs = ["x: float64[N]", "A: float64[N, N]", "s: float64", "ids: int64[N]"]
    outputs = ", ".join({f"t{count - 1}": None, f"t{int(rng.integers(count))}": None})
    lines = ["program random", *(f"input {line}" for line in inputs), 'assert N >= 1, "N is {N}"']
    lines += [*(f"tensor {line}" for line in writer.tensors), "", *writer.statements, "", f"return {outputs}"]
    n = int(rng.integers(1, 5))
    arrays = [rng.uniform(0.2, 1.3, n), rng.uniform(-1, 1, (n, n)), rng.uniform(0.5, 1.5, ()), rng.integers(0, n, n)]
    return Case(parse_program("\n".join(lines) + "\n"), arrays, ["x", "A", "s"])
