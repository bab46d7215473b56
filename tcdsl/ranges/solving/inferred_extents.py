"""Rule 2: the ranges of all index variables where the target's extents are to be inferred, in rounds.

Explicit ranges first. Then each variable that is the only unsolved one in some access takes the largest interval
that keeps those accesses in range for all values of the solved ones; what was solved is substituted at the end of
the round::

    O[n] += I[n + k] * K[k]        round 1: 0 <= k < K_0        round 2: 0 <= n < I_0 - K_0 + 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_algebra import SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Ends
from tcdsl.ranges.solving.for_all import for_all_ends, relevant_guard
from tcdsl.ranges.solving.regions import bounding_hint

__all__ = ["RoundSolver"]


@dataclass(slots=True)
class RoundSolver:
    """``RoundSolver(inference, variables, explicit, accesses).solve()`` gives the interval of every variable."""

    inference: Inference
    variables: Sequence[str]
    explicit: Mapping[str, Ends]
    accesses: Sequence[AxisAccess]
    #: Whether reads behind a bracket or in a branch bound a variable only as far as they are made.
    lazily: bool = True
    #: What to write where the range of a variable, ``{}``, cannot be inferred.
    advice: str = "write a range as a condition, `{} < n`, or declare the extents of the target"
    #: The conditions of the sketch, which may bound a variable by data.
    conditions: Sequence[Expr] = ()
    solved: dict[str, SizeInterval] = field(default_factory=dict)
    _lazily: bool = True
    # Accesses that may bound a variable, by their variables.
    _open: list[tuple[frozenset[str], AxisAccess]] = field(default_factory=list)

    def solve(self) -> dict[str, SizeInterval]:
        """All intervals; unsolved variables become a fault and are missing."""
        self._open = [
            (access.form.variables, access)
            for access in self.accesses
            if access.form is not None and access.extent is not None and access.form.variables
        ]
        self._lazily = self.lazily
        self._take_explicit()
        while len(self.solved) < len(self.variables):
            found: dict[str, SizeInterval] = {}
            for name in self.variables:
                if name not in self.solved:
                    interval = self._interval(name)
                    if interval is not None:
                        found[name] = interval
            if not found and self._lazily:
                # Brackets take no part in this rule: where nothing else bounds a variable, reads behind them do.
                self._lazily = False
                continue
            if not found:
                self._report_unbounded()
                break
            self._lazily = self.lazily
            self.solved.update(found)
            self._take_explicit()
        return self.solved

    def _take_explicit(self) -> None:
        # Ranges with both ends; those that depend on other variables once these are solved.
        progress = True
        while progress:
            progress = False
            for name, ends in self.explicit.items():
                if name in self.solved or not ends.lows or not ends.highs:
                    continue
                needed = frozenset().union(*(form.variables for form in (*ends.lows, *ends.highs)))
                if needed <= self.solved.keys():
                    self.solved[name] = SizeInterval(self._low(ends.lows), self._high(ends.highs))
                    progress = True

    def _low(self, forms: Sequence[Polynomial]) -> Polynomial:
        return self.inference.algebra.extreme(forms, largest=True)

    def _high(self, forms: Sequence[Polynomial]) -> Polynomial:
        return self.inference.algebra.extreme(forms, largest=False)

    def _interval(self, name: str) -> SizeInterval | None:
        stated = self.explicit.get(name, Ends())
        if stated.lows and stated.highs:
            return None  # waits for the variables in its explicit range
        fitting = [access for names, access in self._open if names - self.solved.keys() == {name}]
        if not fitting:
            return None
        ends, direct = self._ends(name, fitting)
        lows, highs = stated.lows or ends.lows, stated.highs or ends.highs
        if not lows or not highs:
            return None
        interval = SizeInterval(self._low(lows), self._high(highs))
        if not stated.lows and not stated.highs:
            for access in direct:
                access.settled = True
            if any(names != {name} for names, access in self._open if access in fitting):
                self._require_length(name, interval, fitting)
        return interval

    def _ends(self, name: str, fitting: Sequence[AxisAccess]) -> tuple[Ends, list[AxisAccess]]:
        """The ends that accesses give, and the accesses whose ends are exact."""
        algebra = self.inference.algebra
        ends = Ends()
        direct = [
            access
            for access in fitting
            if not (self._lazily and relevant_guard(access, name, self.solved, algebra))
            and self._direct(name, access, ends)
        ]
        if len(direct) == len(fitting):
            return ends, direct
        # Together they may bound what each of them leaves open for some sizes, so isl takes all that it can hold.
        affine = [access for access in fitting if access.form is not None and access.form.quasi_affine]
        ends = for_all_ends(algebra, name, affine, self.solved, self._lazily)
        direct = [access for access in direct if access not in affine and self._direct(name, access, ends)]
        return ends, direct

    def _direct(self, name: str, access: AxisAccess, ends: Ends) -> bool:
        """Add the ends that an access linear in ``name`` gives; False if it needs isl."""
        algebra = self.inference.algebra
        form, extent = access.bounds
        if not form.linear_in(name):
            return False
        factor = form.coefficient(name)
        sign = algebra.sign(factor)
        rest = form.without(name)
        least, most = (algebra.bound(rest, self.solved, largest) for largest in (False, True))
        if sign is None or least is None or most is None:
            return False
        # 0 <= factor * name + rest < extent
        below, above = least, extent - 1 - most
        if sign < 0:
            factor, below, above = -factor, above, below
        try:
            high = self._floor(above, factor, access)
            low = self._ceiling(-below, factor, access)
        except NotAffine:
            return False
        ends.highs.append(high)
        ends.lows.append(low)
        return True

    def _floor(self, form: Polynomial, factor: Polynomial, access: AxisAccess) -> Polynomial:
        algebra = self.inference.algebra
        if factor.value is not None:
            return algebra.quotient(form, factor)
        parts = form.split(factor)
        if parts is not None and not parts[1].terms:
            return parts[0]
        self._require_positive(factor, access)
        if algebra.nonnegative(form):
            return self._divided(form, factor)
        # Named sizes are never negative: form + factor is not, because the range has no negative length.
        fact = f"`{self.inference.text(access.index)}` would run over a negative number of values"
        self.inference.require_nonnegative(form + factor, fact, access.span)
        return self._divided(form + factor, factor) - 1

    def _ceiling(self, form: Polynomial, factor: Polynomial, access: AxisAccess) -> Polynomial:
        algebra = self.inference.algebra
        if factor.value is not None:
            return -algebra.quotient(-form, factor)
        parts = form.split(factor)
        if parts is not None and not parts[1].terms:
            return parts[0]
        self._require_positive(factor, access)
        if algebra.nonnegative(-form):
            return -self._divided(-form, factor)
        if algebra.nonnegative(form):
            return self._divided(form + factor - 1, factor)
        raise NotAffine(access.index)

    def _divided(self, form: Polynomial, factor: Polynomial) -> Polynomial:
        """``form // factor`` for a form that is not negative."""
        # The assertion that the factor is positive is checked after sizes are computed: no division by zero before.
        algebra = self.inference.algebra
        parts = form.split(factor)
        whole, rest = parts if parts is not None else (Polynomial({}), form)
        if not algebra.nonnegative(rest):
            whole, rest = Polynomial({}), form
        safe = apply("max", algebra.expr(factor), integer(1))
        return whole + algebra.extent(self.inference.scope.opaque_size(apply("floor_div", algebra.expr(rest), safe)))

    def _require_positive(self, factor: Polynomial, access: AxisAccess) -> None:
        fact = f"the stride {self.inference.text(factor)} in `{self.inference.text(access.index)}` must be positive"
        self.inference.require_nonnegative(factor - 1, fact, access.span)

    def _require_length(self, name: str, interval: SizeInterval, accesses: Sequence[AxisAccess]) -> None:
        # A window longer than what it slides over is a mistake; an empty input alone is not.
        length = self.inference.algebra.bound(interval.length, self.solved, True)
        if length is None:
            return
        access = accesses[0]
        fact = (
            f"the index `{name}` would take {self.inference.text(length)} values, a negative number, "
            f"for {', '.join(dict.fromkeys(access.place(self.inference) for access in accesses))} to be in range"
        )
        self.inference.require_nonnegative(length, fact, access.span)

    def _report_unbounded(self) -> None:
        unsolved = [name for name in self.variables if name not in self.solved]
        notes = [f"known: {self.inference.range_text(name, interval)}" for name, interval in self.solved.items()]
        notes += [
            f"{access.place(self.inference)} leaves {' and '.join(sorted(names - self.solved.keys()))} open"
            for names, access in self._open
            if names - self.solved.keys()
        ]
        listed = ", ".join(f"`{name}`" for name in unsolved)
        plural = "ranges of the indices" if len(unsolved) > 1 else "range of the index"
        self.inference.fault(
            f"the {plural} {listed} cannot be inferred",
            self.inference.sketch.span,
            *notes,
            hint=bounding_hint(unsolved[0], self.conditions, self.advice.format(unsolved[0])),
        )
