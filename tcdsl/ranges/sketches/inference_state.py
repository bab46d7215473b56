"""The state of one run of range inference: what is known about sizes, what must hold at the call, and the faults
found.
"""

from __future__ import annotations

from tcdsl.errors import Diagnostic, ShapeError, TcdslError, raise_diagnostics, without_values
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Constant, Expr, Read, SizeValue, size_names, walk
from tcdsl.ir.program import Assertion
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.size_algebra import SizeAlgebra, SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["Inference", "sketch_sizes"]


class Inference:
    """Collects assertions and faults while the ranges of one sketch are inferred."""

    def __init__(self, sketch: Sketch, scope: ProgramScope) -> None:
        self.sketch = sketch
        self.scope = scope
        self.algebra = SizeAlgebra(scope, sketch_sizes(sketch, scope))
        self.assertions: list[Assertion] = []
        self._faults: list[Diagnostic] = []

    def trial(self) -> Inference:
        """The same knowledge, for what may turn out wrong: its faults and assertions are its own."""
        made = Inference(self.sketch, self.scope)
        made.algebra.know_like(self.algebra)
        return made

    def label(self, tensor: str) -> str:
        """What the user calls a tensor."""
        if tensor == self.sketch.target.tensor:
            return self.sketch.label or tensor
        return self.scope.tensor(tensor).label or tensor

    def fault(
        self, fact: str, span: Span | None, *notes: str, hint: str = "", kind: type[TcdslError] = ShapeError
    ) -> None:
        """Note a fault; `raise_faults` raises what has been noted."""
        self._faults.append(Diagnostic(kind, fact, span or self.sketch.span, notes, hint))

    def raise_faults(self) -> None:
        """Raise one error for all faults noted so far, if there are any."""
        raise_diagnostics(self._faults)

    def require(self, condition: Expr, message: str, span: Span | None, assumed: bool = True) -> None:
        """State that ``condition``, on sizes, holds at the call; what is ``assumed`` is known from here on."""
        if isinstance(condition, Constant) and (condition.value or not self.scope.may_not_run):
            if not condition.value:
                fact, hint = without_values(message)
                self.fault(fact, span, hint=hint)
            return
        assumed = assumed and not isinstance(condition, Constant)
        assertion = Assertion(condition, message, span or self.sketch.span, assumed)
        if assertion not in self.assertions:
            self.assertions.append(assertion)
            if assumed:
                self.algebra.assume(condition)

    def require_nonnegative(self, form: Polynomial, message: str, span: Span | None) -> bool:
        """State that a form of sizes is not negative, unless that is known; a fault if it is known to be false."""
        if self.algebra.nonnegative(form):
            return True
        if self.algebra.negative(form):
            self.fault(message, span)
            return False
        self.require(apply("ge", self.algebra.expr(form), integer(0)), f"{message}: {self.values(form)}", span)
        return True

    # -- text for messages -----------------------------------------------------------------------------------------

    def text(self, form: Polynomial | Expr) -> str:
        """How the language writes a form."""
        from tcdsl.ir.text.expression_printer import format_expr

        return format_expr(self.algebra.expr(form) if isinstance(form, Polynomial) else form)

    def values(self, *forms: Polynomial) -> str:
        """The sizes in ``forms`` with their values at the call in braces: ``N = {N}, K = {K}``."""
        names = sorted(frozenset().union(*(size_names(self.algebra.expr(form)) for form in forms)))
        return ", ".join(f"{name} = {{{name}}}" for name in names)

    def number(self, form: Polynomial) -> str:
        """The value of ``form`` at the call: ``{N}``, or a number if it is one."""
        expr = self.algebra.expr(form)
        if isinstance(expr, Constant):
            return str(expr.value)
        if not isinstance(expr, SizeValue):
            expr = self.scope.opaque_size(expr)
        return f"{{{expr.name}}}" if isinstance(expr, SizeValue) else self.text(expr)

    def range_text(self, variable: str, interval: SizeInterval) -> str:
        """``0 <= i < N``."""
        return f"{self.text(interval.low)} <= {variable} < {self.text(interval.high + 1)}"


def sketch_sizes(sketch: Sketch, scope: ProgramScope) -> frozenset[str]:
    """The names of the sizes in a sketch and in the shapes of the tensors that it reads."""
    found: set[str] = set()
    extents = (extent for extent in sketch.extents if extent is not None)
    ends = (end for given in sketch.ranges for end in (given.low, given.high))
    for expr in (*sketch.target.indices, *extents, *ends, sketch.value, *sketch.conditions, *sketch.filters):
        for node in walk(expr):
            if isinstance(node, SizeValue):
                found.add(node.name)
            elif isinstance(node, Read):
                found.update(name for extent in scope.tensor(node.tensor).shape for name in size_names(extent))
    return frozenset(found)
