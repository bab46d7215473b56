"""Quotients and remainders of sizes in rounds of loops: divided only where a round runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import apply, integer, truth
from tcdsl.ir.expressions import Apply, Constant, Expr, size_names
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Assertion
from tcdsl.ir.sizes.known_sizes import never_negative
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.span import Span

__all__ = ["DividedSizes", "with_divisor"]


class DividedSizes:
    """What is asked of divisors in bodies of loops and arms of branches.

    A size is computed in any case. In a round ``N // M`` is ``N // max(M, 1)``, and that M is not 0 is asked of
    rounds, so that a loop without any asks nothing. Straight code divides, which is an error at the call.
    """

    def __init__(self) -> None:
        self._rounds = 0
        self._written: dict[Expr, Expr] = {}
        #: The place of the user's expression that is being executed.
        self.location: Callable[[], Span | None] = lambda: None

    @property
    def in_rounds(self) -> bool:
        """Whether what is staged is a round of a loop, or an arm of a branch."""
        return self._rounds > 0

    @contextmanager
    def in_a_round(self) -> Iterator[None]:
        """A block whose sizes are those of a round."""
        self._rounds += 1
        try:
            yield
        finally:
            self._rounds -= 1

    def safe(self, expr: Expr, known: Callable[[str], bool]) -> tuple[Expr, list[Assertion]]:
        """What a size is that is written ``expr``, and what has to be asked.

        ``known`` says of a size by its name whether it is never negative.
        """
        match expr:
            case Apply(primitive="floor_div" | "mod" as primitive, arguments=(left, right)) if self._rounds:
                if _is_never_zero(right):
                    return expr, []
                zero = apply("eq", right, integer(0))
                values = ", ".join(f"{name} = {{{name}}}" for name in sorted(size_names(right)))
                fact = f"the size {format_expr(expr)} divides by zero\n{values}"
                asked = [Assertion(apply("not_", zero), fact, self.location())]
                if isinstance(right, Constant):
                    return right, asked
                at_least = apply("max", right, integer(1))
                divisor = at_least if never_negative(right, known) else apply("where", zero, integer(1), right)
                made = apply(primitive, left, divisor)
                self._written[made] = expr
                return made, asked
            case _:
                return expr, []

    def as_written(self, source: Expr) -> Expr:
        """The source of a size, as the user has written it."""
        return self._written.get(source, source)


class _Builder(Protocol):
    @property
    def may_not_run(self) -> bool: ...

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None: ...


def with_divisor(builder: _Builder, primitive: str, values: Sequence[Value], span: Span | None) -> Sequence[Value]:
    """The operands of ``primitive``. In a round 1 stands for a divisor that is the number 0: no round may run then."""
    if primitive in ("floor_div", "mod") and builder.may_not_run:
        left, right = values
        if left.weak == right.weak == "int" and right.number == 0 and left.number is None:
            operator = PRIMITIVES[primitive].operator
            fact = f"`{operator}` by 0\ndivide by a number that is not 0"
            builder.require(truth(False), fact, span)
            return left, Value.of(1)
    return values


def _is_never_zero(divisor: Expr) -> bool:
    match divisor:
        case Constant(value=value):
            return bool(value)
        case Apply(primitive="max", arguments=arguments):
            return any(isinstance(each, Constant) and each.value > 0 for each in arguments)
        case _:
            return False
