"""Random functions of whole arrays with loops and branches, which Python runs on NumPy's arrays as they stand."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["random_function"]


@dataclass
class _Writer:
    """Writes the lines of a function of ``x``, ``y``, two arrays of one length, ``s``, ``r`` and an integer ``n``."""

    pick: random.Random
    smooth: bool
    lines: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    counters: int = 0

    def array(self, depth: int = 2) -> str:
        rows: list[Callable[[], str]] = [lambda: self.pick.choice("xy")]
        if depth:
            rows += [
                lambda: f"({self.array(depth - 1)} + {self.array(depth - 1)})",
                lambda: f"{self.scalar(depth - 1)} * {self.array(depth - 1)}",
                lambda: f"np.tanh({self.array(depth - 1)})",
            ]
        return self.pick.choice(rows)()

    def scalar(self, depth: int = 2) -> str:
        rows: list[Callable[[], str]] = [lambda: self.pick.choice("sr"), lambda: f"{self.pick.randint(1, 9) / 10}"]
        rows += [lambda: f"{self.pick.choice('xy')}[{self.integer()} % 3]"] * 2
        rows += [lambda number=number: f"x[{self.position(number)}]" for number in self.numbers]
        rows += [lambda number=number: f"0.1 * {number}" for number in self.numbers]
        if depth:
            rows += [
                lambda: f"({self.scalar(depth - 1)} - {self.scalar(depth - 1)})",
                lambda: f"np.tanh({self.scalar(depth - 1)} * {self.scalar(depth - 1)})",
                lambda: f"0.1 * {self.array(depth - 1)}.sum()",
            ]
        return self.pick.choice(rows)()

    def integer(self) -> str:
        return self.pick.choice(["k", "n", *self.numbers, f"({self.pick.choice(['k', *self.numbers])} + 1)"])

    def position(self, number: str) -> str:
        """A position of ``x`` that is made of the number of a round, one from 0 to 4."""
        back = f"(x.shape[0] + {self.pick.randint(-5, 1)} - {number})"
        rows = [f"{number} % x.shape[0]", f"({number} + 1) // 2", f"{back} % x.shape[0]", f"({number} - 1) % 4"]
        return self.pick.choice([*rows, f"({number} + n) // 3", f"({number} + 4) // x.shape[0]"])

    def condition(self) -> str:
        rows = [f"{self.integer()} % 2 == 0", f"{self.integer()} > {self.pick.randint(0, 3)}"]
        if not self.smooth:
            rows += [f"{self.scalar(1)} > {self.scalar(1)}", f"{self.scalar(1)} < 0.5 and not {self.scalar(1)} > 0.9"]
        return self.pick.choice(rows)

    def body(self, indent: str, depth: int, looping: bool) -> None:
        for _ in range(self.pick.randint(1, 3)):
            self.statement(indent, depth, looping)

    def statement(self, indent: str, depth: int, looping: bool) -> None:
        kinds = ["array", "array", "scalar", "integer", "swap"]
        if depth:
            kinds += ["for", "for", "if", "if"] + ([] if self.smooth else ["while"])
            kinds += ["jump"] if looping else []
            kinds += ["return"] if indent != "    " else []
            kinds += [] if self.smooth else ["assert", "raise", "choice"]
        kind = self.pick.choice(kinds)
        match kind:
            case "array":
                self.lines.append(f"{indent}{self.pick.choice('xy')} = np.tanh({self.array()})")
            case "scalar":
                self.lines.append(f"{indent}{self.pick.choice('sr')} = np.tanh({self.scalar()})")
            case "integer":
                self.lines.append(f"{indent}k = ({self.integer()} + {self.integer()}) % 5")
            case "swap":
                self.lines.append(f"{indent}{self.pick.choice(['x, y = y, x', 's, r = r, s', 'x, y = x + y, x'])}")
            case "for":
                number = "tuv"[len(self.numbers)]
                ends = ["range(x.shape[0])", "range(n)", f"range(1, x.shape[0], {self.pick.randint(1, 2)})"]
                ends += [f"range(x.shape[0], -1, {self.pick.randint(-3, -1)})", "range(n - 1, -1, -1)"]
                ends += [f"range({outer})" for outer in self.numbers]
                ends += [f"range({outer}, x.shape[0], 2)" for outer in self.numbers]
                self.lines.append(f"{indent}for {number} in {self.pick.choice(ends)}:")
                self.numbers.append(number)
                self.body(indent + "    ", depth - 1, True)
                self.numbers.pop()
            case "while":
                self.counters += 1
                counter = f"w{self.counters}"
                self.lines.append(f"{indent}{counter} = 0")
                self.lines.append(f"{indent}while {counter} < n and {self.condition()}:")
                self.lines.append(f"{indent}    {counter} = {counter} + 1")
                self.body(indent + "    ", depth - 1, True)
            case "if":
                self.lines.append(f"{indent}if {self.condition()}:")
                self.body(indent + "    ", depth - 1, False)
                if self.pick.random() < 0.6:
                    self.lines.append(f"{indent}else:")
                    self.body(indent + "    ", depth - 1, False)
            case "jump":
                self.lines.append(f"{indent}if {self.condition()}:")
                self.body(indent + "    ", 0, False)
                self.lines.append(f"{indent}    {self.pick.choice(['break', 'continue'])}")
            case "assert":
                self.lines.append(f'{indent}assert {self.condition()} or k != {self.pick.randint(0, 4)}, "refused"')
            case "raise":
                self.lines.append(f"{indent}if k == {self.pick.randint(2, 4)} and {self.condition()}:")
                self.lines.append(f'{indent}    raise ValueError("refused")')
            case "choice":
                self.lines.append(f"{indent}s = {self.scalar()} if {self.condition()} else {self.scalar()}")
                self.lines.append(f"{indent}x = x + (y if {self.condition()} else np.tanh(x))")
            case "return":
                self.lines.append(f"{indent}if {self.condition()}:")
                self.body(indent + "    ", 0, False)
                self.lines.append(f"{indent}    return y, x + 0.5, s, {self.scalar()}, k")


def random_function(seed: int, smooth: bool = False) -> str:
    """The source of ``f(x, y, s, r, n)``, which returns the arrays and the scalars.

    A ``smooth`` one branches on integers alone, and its loops end when the call says.
    """
    writer = _Writer(random.Random(seed), smooth)
    writer.lines = ["def f(x, y, s, r, n):", "    k = 0"]
    writer.statement("    ", 2, False)
    while not any(word in line for line in writer.lines for word in ("for ", "while ")):
        writer.statement("    ", 2, False)
    writer.lines.append("    return x, y, s, r, k")
    return "\n".join(writer.lines) + "\n"
