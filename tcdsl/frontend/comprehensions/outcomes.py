"""What a definition makes of arrays of any sizes, so that those that call it need not infer its ranges again.

::

    def f(float(N) A) -> (B) { B(i) = A(i) + A(i + 1) }      B: N - 1, where N >= 2

The names of sizes stand for the extents of whatever it is called with. A call that can be right for no arrays, or for
empty ones alone, has no answer here: its statements say what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import all_of, apply, integer, size
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, map_children, size_names, substitute
from tcdsl.ir.program import Assertion, AxisExtent
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_facts import SizeFacts

__all__ = ["Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``outcome.of(arrays, labels, builder)`` gives the results of a call, without statements, and where they begin.

    ``parameters`` are the extents of the parameters, ``sizes`` what has been given a name. ``begins`` are the first
    cells of results where these are not at 0. ``tested`` says that data decides whether some accesses are made, or
    that sets cannot speak of them.
    """

    parameters: tuple[tuple[Expr, ...], ...]
    sizes: tuple[tuple[str, Expr], ...]
    assertions: tuple[Assertion, ...]
    results: tuple[SymbolicTensor, ...]
    begins: tuple[tuple[Expr, ...] | None, ...]
    tested: bool

    @staticmethod
    def found(
        builder: ProgramBuilder,
        parameters: Sequence[SymbolicTensor],
        results: Sequence[SymbolicTensor],
        begins: Mapping[str, tuple[Expr, ...]],
        tested: bool,
    ) -> Outcome:
        """What recording all statements for arrays of any sizes, and nothing else, has found."""
        sizes = map(builder.size, builder.size_names())
        return Outcome(
            tuple(each.extents for each in parameters),
            tuple((each.name, each.source) for each in sizes if not isinstance(each.source, AxisExtent)),
            _without_implied(builder),
            tuple(results),
            tuple(begins.get(each.name) for each in results),
            tested,
        )

    def of(
        self, arrays: Sequence[SymbolicTensor], labels: Sequence[str], builder: ProgramBuilder
    ) -> list[tuple[SymbolicTensor, tuple[Expr, ...] | None]] | None:
        """The results for ``arrays``, called ``labels``, and their first cells; None where the statements have to say
        it.
        """
        extents = [extent for array in arrays for extent in array.extents]
        if self.tested and not all(isinstance(extent, SizeValue) for extent in extents):
            return None  # the sets may know more of 3 and N + 1 than of N
        given = [extent for parameter in self.parameters for extent in parameter]
        restated = _Restated(dict(zip(given, extents, strict=True)), builder)
        try:
            for name, source in self.sizes:
                restated.sizes[size(name)] = restated(source)
            asked = [replace(each, condition=restated(each.condition)) for each in self.assertions]
            shapes = [tuple(map(restated, each.extents)) for each in self.results]
            begins = [None if each is None else tuple(map(restated, each)) for each in self.begins]
        except NotAffine:
            return None
        if not all(map(restated.is_possible, asked)):
            return None
        builder.learn((), (each for each in asked if not isinstance(each.condition, Constant)))
        made = (
            builder.placeholder(label, each.element_type, shape)
            for label, each, shape in zip(labels, self.results, shapes, strict=True)
        )
        return list(zip(made, begins, strict=True))


class _Restated:
    """Expressions on the sizes of a definition in those of one that calls it."""

    def __init__(self, sizes: dict[Expr, Expr], builder: ProgramBuilder) -> None:
        self.sizes = sizes
        self.builder = builder
        self.algebra = SizeAlgebra(builder)

    def __call__(self, expr: Expr) -> Expr:
        if expr.dtype == "int64":
            return self.algebra.expr(self.algebra.form(substitute(expr, self.sizes)))
        if isinstance(expr, Apply):
            return apply(expr.primitive, *map(self, expr.arguments))
        return map_children(expr, self)

    def is_possible(self, assertion: Assertion) -> bool:
        """Whether an assertion, which is known from here on, may hold where no array is empty."""
        condition = assertion.condition
        if isinstance(condition, Constant):
            return bool(condition.value)
        cells = (apply("ge", size(each), integer(1)) for each in sorted(_axes(condition, self.builder)))
        try:
            if self.algebra.impossible(all_of((condition, *cells))):
                return False
        except NotAffine:
            pass  # the call will tell
        if assertion.assumed:
            self.algebra.assume(condition)
        return True


def _axes(expr: Expr, builder: ProgramBuilder) -> set[str]:
    # The extents of arrays that an expression is made of, those behind names included.
    found: set[str] = set()
    for name in size_names(expr):
        source = builder.size(name).source
        found |= {name} if isinstance(source, AxisExtent) else _axes(source, builder)
    return found


def _without_implied(builder: ProgramBuilder) -> tuple[Assertion, ...]:
    # N >= 2 goes without saying behind N >= 3: what is called in chains would assert more with each definition.
    if len(builder.assertions) < 2:
        return builder.assertions
    natural = [apply("ge", size(name), integer(0)) for name in builder.size_names() if builder.never_negative(name)]
    every, assumed = SizeFacts(natural), SizeFacts(natural)
    kept: list[Assertion] = []
    for each in reversed(builder.assertions):
        if not _follows(each.condition, assumed if each.assumed else every):
            kept.append(each)
            every.add(each.condition)
            if each.assumed:
                assumed.add(each.condition)
    return tuple(reversed(kept))


def _follows(condition: Expr, facts: SizeFacts) -> bool:
    try:
        return facts.never(apply("not_", condition))
    except NotAffine:
        return False
