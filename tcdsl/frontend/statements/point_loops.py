"""Decorated functions with loops and branches that run, called in a statement: a loop over the points of the statement.

::

    out[n] = 2 * root(x[n])            for n in range(N):
                                           found[n] = root(x[n])
                                       out[n] = 2 * found[n]

Where the value of a statement comes to a loop or a branch that only the call decides, evaluation stops
(`tcdsl.frontend.symbols.point_calls`). The points are those of a statement that reads what the call is given, under the
conditions of the statement on its index variables. Then the call stands for what the loop has found. Which variables
these are says the whole statement: in ``t[()] += w[n] * root(sum(A[n, k]))`` the sum is over k alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.points.definitions import Definition, all_definitions, index_names, outside_names
from tcdsl.frontend.points.point_scalars import PointValue, combine_points, leaves_of, points_in, scalar_of
from tcdsl.frontend.running_loops.bodies import labels_of
from tcdsl.frontend.running_loops.loop_recorder import LoopRecorder
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.running_loops.round_counts import Iterated, loop
from tcdsl.frontend.staging.subprograms import Part
from tcdsl.frontend.staging.target_states import Declared, Existing, Fresh
from tcdsl.frontend.statements.recorded_values import record_bare, record_value
from tcdsl.frontend.symbols.opaque_sizes import named_sizes
from tcdsl.frontend.symbols.point_calls import AtEachPoint, PointCall, PointCalls
from tcdsl.frontend.symbols.retired_values import OF_A_ROUND
from tcdsl.frontend.symbols.symbols import SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, stored_dtype
from tcdsl.ir.build import apply, constant
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Constant, Expr, IndexValue, Local, Read, Reduction, children, walk

__all__ = ["StatementParts", "with_point_calls"]

_RECORDER = LoopRecorder()


@dataclass(frozen=True, slots=True)
class StatementParts:
    """What stands in a statement: ``exprs`` are its indices and its value.

    ``ends`` are the extents of the target for the variables that stand alone on an axis of one that there is.
    """

    exprs: tuple[Expr, ...] = ()
    conditions: tuple[Value, ...] = ()
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    ends: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def all(self) -> tuple[Expr, ...]:
        """Indices, value and conditions."""
        return (*self.exprs, *(each.expr for each in self.conditions))


def with_point_calls(
    environment: FunctionScope,
    evaluate: Callable[[], Any],
    parts: Callable[[], StatementParts] = StatementParts,
) -> Any:
    """``evaluate()``, again after each call in it that a loop over points has to make.

    ``parts`` evaluates the statement around the calls, in the same order.
    """
    session, calls = environment.session, PointCalls()
    while True:
        calls.met = 0
        try:
            with session.within(point_calls=calls, at_points=False):
                return evaluate()
        except AtEachPoint as found:
            call = found.call
            if call is None:
                raise
        with session.within(point_calls=None, at_points=False, letters=frozenset()):
            call, around = _Surroundings.of(call, calls, parts, environment)
            calls.results[call.place] = _PointLoop(environment, call, around).results()


@dataclass(frozen=True, slots=True)
class _Surroundings:
    # The index variables that the statement and the reductions around a call bind, the conditions of the statement, and
    # the ends of those that stand on its target.
    names: Set[str]
    conditions: Sequence[PointValue]
    ends: Mapping[str, Expr] = field(default_factory=dict)

    @staticmethod
    def of(
        call: PointCall, calls: PointCalls, parts: Callable[[], StatementParts], environment: FunctionScope
    ) -> tuple[PointCall, _Surroundings]:
        """Those of ``call``; or of one that conditions wait for, which comes first, under those that do not wait."""
        met: dict[int, PointCall] = {}
        found, marks = _with_marks(calls, parts, environment, met, {})
        known = all_definitions(found.definitions)
        names = _names_around(found.all, known, marks.get(call.place))
        if names is None:
            # What calls give is taken apart: `pair(x[n])[0]`.
            nothing = _Surroundings(frozenset(), ())
            examples = {place: _PointLoop(environment, each, nothing).example() for place, each in met.items()}
            found, marks = _with_marks(calls, parts, environment, met, examples)
            known = all_definitions(found.definitions)
            names = _names_around(found.all, known, marks.get(call.place))
        if names is None:
            names = {name for expr in found.all for name in outside_names(expr, known)}
        asked = {each: _locals_in(each.expr, known) for each in found.conditions}
        waited = [place for place, mark in marks.items() if any(mark in each for each in asked.values())]
        if waited and call.place not in waited:
            return _Surroundings.of(met[waited[0]], calls, parts, environment)
        told = [each for each, mentioned in asked.items() if mentioned.isdisjoint(marks.values())]
        return call, _Surroundings(names, [PointValue(each, found.definitions) for each in told], found.ends)


def _with_marks(
    calls: PointCalls,
    parts: Callable[[], StatementParts],
    environment: FunctionScope,
    met: dict[int, PointCall],
    examples: Mapping[int, Any],
) -> tuple[StatementParts, dict[int, Expr]]:
    """The statement with something that stands for what calls without results give, and that for each of them.

    ``met`` collects these calls, ``examples`` are such of what they give.
    """
    marks: dict[int, Expr] = {}

    def stand_in(each: PointCall) -> Any:
        met[each.place] = each
        point = _anything(points_in((each.positional, each.keywords)))
        marked = PointValue.mark("call", point.value, point.definitions, each.span)
        marks[each.place] = marked.value.expr
        given: Any = examples.get(each.place)
        return type(given)(marked for _ in given) if type(given) in (tuple, list) else marked

    with environment.session.within(point_calls=PointCalls(stand_in, results=calls.results), at_points=False):
        return parts(), marks


def _locals_in(expr: Expr, known: Mapping[str, Definition]) -> set[Expr]:
    # The definitions that an expression mentions, those in definitions and reductions too.
    found: set[Expr] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Local) and node not in found:
            found.add(node)
            stack.extend([known[node.name].value.expr] if node.name in known else [])
        stack.extend((*node.conditions, node.value) if isinstance(node, Reduction) else children(node))
    return found


def _names_around(exprs: Sequence[Expr], known: Mapping[str, Definition], mark: Expr | None) -> set[str] | None:
    # The variables of all levels around `mark`, from the outside in.
    names, there = {name for expr in exprs for name in outside_names(expr, known)}, False
    stack = list(exprs)
    while stack:
        match stack.pop():
            case Local(name=name) as local if name in known:
                there |= local == mark
                stack.append(known[name].value.expr)
            case Reduction() as inner:
                within = _names_around((*inner.conditions, inner.value), known, mark)
                if within is not None:
                    return names | within
            case node:
                stack.extend(children(node))
    return names if there else None


def _names_of_reads(points: Sequence[PointValue]) -> set[str]:
    # The variables that stand in indices, those in definitions too.
    found: set[str] = set()
    for each in points:
        known = all_definitions(each.definitions)
        mentioned = [local.name for local in _locals_in(each.value.expr, known) if isinstance(local, Local)]
        values = [each.value.expr, *(known[name].value.expr for name in mentioned if name in known)]
        for part in (part for expr in values for part in walk(expr) if isinstance(part, Read)):
            found.update(outside_names(part, known))
    return found


def _anything(points: Sequence[PointValue]) -> PointValue:
    # True wherever what a call is given is in range.
    found: Any = True
    for each in points:
        both = combine_points("or_", (combine_points("eq", (each, each)), combine_points("ne", (each, each))))
        found = both if found is True else combine_points("and_", (found, both))
    assert isinstance(found, PointValue)
    return found


class _PointLoop:
    # The loop over the points of one call.

    def __init__(self, environment: FunctionScope, call: PointCall, around: _Surroundings) -> None:
        self._environment = environment
        self._session = environment.session
        self._call = call
        self._label = getattr(call.function, "__name__", "found")
        self._points = points_in((call.positional, call.keywords))
        mentioned = [name for each in self._points for name in index_names(each.value.expr, each.definitions)]
        outside = {name for each in self._points for name in outside_names(each.value.expr, each.definitions)}
        bound = outside | around.names
        #: The index variables that the call is given. Those of reductions in what it is given are theirs.
        self._names = tuple(dict.fromkeys(name for name in mentioned if name in bound))
        self._conditions = [
            each for each in around.conditions if bound.intersection(each.index_names()) <= {*self._names}
        ]
        read = _names_of_reads(self._points)
        #: The ends of those that nothing reads with: ``y[i] = f(x, i)`` has the points of the ``y`` that there is.
        self._ends = {name: around.ends[name] for name in self._names if name in around.ends and name not in read}
        self._levels = [LoopStatement((name,), ("found",)) for name in self._names]
        self._arms = LoopStatement((), ("found",), arms=True)

    def results(self) -> Any:
        """What the call gives at each point."""
        if not self._names:
            given = self._call_at({})
            return self._rebuilt(given, [PointValue(each, {}, self._call.span) for each in self._scalars(given)])
        axes = [IndexValue(name) for name in self._names]
        below = [Value(apply("lt", IndexValue(name), end), None, "bool") for name, end in self._ends.items()]
        asked = [*self._conditions, *(PointValue(each, {}, self._call.span) for each in below)]
        covered = record_value(self._environment, Fresh("points"), axes, _anything(self._points), asked)
        extents = [self._ends.get(name, extent) for name, extent in zip(self._names, covered.extents, strict=True)]
        given, dtypes = self._trial(covered.extents)
        found = tuple(
            record_value(
                self._environment,
                Declared(tuple(extents), dtype, self._label),
                axes,
                PointValue(Value(constant(0, compute_dtype(dtype)), None, dtype), {}, self._call.span),
            )
            for dtype in dtypes
        )
        found = self._rounds(covered, (), found)
        cells = [PointValue(each.cell(axes, self._call.span), {}, self._call.span) for each in found]
        return self._rebuilt(given, cells)

    def example(self) -> Any:
        """Something like what the call gives; a number if that cannot be told."""
        try:
            return self._trial()[0]
        except TcdslError:
            return 0

    def _trial(self, extents: Sequence[Expr] = ()) -> tuple[Any, list[str]]:
        # What the call gives, and of which types.
        builder = self._session.builder
        learned, part = builder.learned(), Part(builder)
        try:
            with part.recording(), builder.divided.in_a_round(), self._session.checking_anew():
                numbers = {name: builder.counter(name, name).shape[0] for name in self._names}
                for number, extent in zip(numbers.values(), extents, strict=False):
                    builder.require(apply("lt", number, extent), "")
                given = self._call_at(numbers)
                return given, [stored_dtype(each) for each in self._scalars(given)]
        finally:
            builder.forget_since(learned)
            builder.retire(labels_of(part.recorded), OF_A_ROUND)

    def _rounds(self, covered: SymbolicTensor, numbers: tuple[Expr, ...], found: Any) -> Any:
        level = len(numbers)
        if level == len(self._names):
            return self._stored(covered, numbers, found)
        statement = self._levels[level]
        for number in _RECORDER.rounds(statement, Iterated(loop, (covered.shape[level],), {})):
            if _RECORDER.runs(statement):
                (found,) = _RECORDER.carried(statement)
            found = self._rounds(covered, (*numbers, number.expr), found)
        if _RECORDER.has_run(statement):
            _, found = _RECORDER.after(statement)
        return found

    def _stored(self, covered: SymbolicTensor, numbers: Sequence[Expr], found: Any) -> Any:
        if not self._conditions:
            return self._one_round(numbers, found)
        asked = PointValue(covered.cell(numbers), {}, self._call.span)
        statement = self._arms
        for arm in _RECORDER.arms(statement, partial(record_bare, self._environment, asked, "covered")):
            if _RECORDER.runs(statement):
                (found,) = _RECORDER.carried(statement)
            if arm:
                found = self._one_round(numbers, found)
        if _RECORDER.has_run(statement):
            (found,) = _RECORDER.after(statement)
        return found

    def _one_round(self, numbers: Sequence[Expr], found: tuple[SymbolicTensor, ...]) -> tuple[SymbolicTensor, ...]:
        values = self._scalars(self._call_at(dict(zip(self._names, numbers, strict=True))))
        return tuple(
            record_value(self._environment, Existing(each.held()), numbers, PointValue(value, {}, self._call.span))
            for each, value in zip(found, values, strict=True)
        )

    def _call_at(self, numbers: Mapping[str, Expr]) -> Any:
        def given(each: Any) -> Any:
            if type(each) in (tuple, list):
                return type(each)(map(given, each))
            return self._scalar_at(each.within(numbers)) if isinstance(each, PointValue) else each

        keywords = {name: given(each) for name, each in self._call.keywords.items()}
        return self._call.function(*map(given, self._call.positional), **keywords)

    def _scalar_at(self, point: PointValue) -> Any:
        # A number of index variables alone is as weak as a size.
        value, builder = point.value, self._session.builder
        if value.weak == "int" and not any(isinstance(part, Read | Local) for part in walk(value.expr)):
            if isinstance(value.expr, Constant):
                return value.expr.value
            return SymbolicSize(builder, named_sizes(value.expr, builder.opaque_size))
        return record_bare(self._environment, point, "given")

    def _scalars(self, given: Any) -> list[Value]:
        found = [scalar_of(each) for each in leaves_of(given)]
        scalars = [each for each in found if each is not None]
        if len(scalars) < len(found):
            raise DslSyntaxError.at(
                f"`{self._label}` gives a tensor, where a statement needs a number at each point",
                self._call.span,
                f"let it return numbers, or call it in a loop: `found = {self._label}(...)`, and `y[n, k] = found[k]`",
            )
        return scalars

    def _rebuilt(self, given: Any, cells: list[PointValue]) -> Any:
        if type(given) in (tuple, list):
            count = iter(cells)
            return type(given)(next(count) for _ in given)
        return cells[0]
