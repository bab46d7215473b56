"""What the parts of a statement's evaluation share: conversions, faults, and the scopes of generators.

Accesses, operators, calls and reductions contain expressions again. Their files evaluate those with an `Evaluator`;
`tcdsl.frontend.statements.statement_evaluation` is the one that knows the files.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError, TcdslError, raise_diagnostics
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import (
    Position,
    index_names,
)
from tcdsl.frontend.points.definitions import Definition, bounded
from tcdsl.frontend.points.point_scalars import PointValue, point_of, scalar_of
from tcdsl.frontend.staging.faults import FAULTY, Faulty, shape_note
from tcdsl.frontend.staging.given_arrays import instead_of
from tcdsl.frontend.symbols.divided_sizes import with_divisor
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import integer, truth
from tcdsl.ir.expressions import Expr
from tcdsl.span import Span

__all__ = ["Evaluator"]


class Evaluator:
    """Evaluates the parts of one statement; faults are recorded, not raised.

    ``variables`` are the statement's index variables. ``definitions`` collects the local definitions that the values
    mention, ``faults`` what is wrong.
    """

    def __init__(self, environment: FunctionScope, variables: tuple[str, ...]) -> None:
        self.environment = environment
        self.variables = variables
        self.definitions: dict[str, Definition] = {}
        self.faults: list[Diagnostic] = []
        #: Where run-time integers may stand, by the identity of the nodes; true for ends of ranges.
        self.terms: dict[int, bool] = {}
        self.unwritten: str | None = None
        self._scopes: list[dict[str, object]] = []
        self.undefined: set[str] = set()
        #: Index variables that stand for other points than those of the statement; and such that do so where its own
        #: text has them too.
        self.letters: frozenset[str] = frozenset()
        self.shared: frozenset[str] = frozenset()
        #: Whether a condition decides if what is evaluated is asked for.
        self.guarded = False

    # -- faults ----------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span | None:
        """The place of ``node``."""
        return self.environment.span(node)

    def fault(
        self, kind: type[TcdslError], fact: str, node: ast.AST, hint: str = "", notes: tuple[str, ...] = ()
    ) -> Faulty:
        """Record a fault at ``node``."""
        self.faults.append(Diagnostic(kind, fact, self.span(node), notes, hint))
        return FAULTY

    def attempt(self, action: Callable[[], Any], node: ast.AST) -> Any:
        """The result of ``action``, its `TcdslError`s recorded as faults at ``node`` where they have no place."""
        try:
            return action()
        except TcdslError as error:
            self.faults.extend(error.diagnostics or (Diagnostic(type(error), error.message, self.span(node)),))
            return FAULTY

    def quietly(self, node: ast.expr) -> object:
        """What ``node`` is, or `FAULTY`, without a record of its faults."""
        known, undefined = len(self.faults), set(self.undefined)
        given = self.evaluate(node)
        faulty = len(self.faults) > known
        del self.faults[known:]
        self.undefined = undefined
        return FAULTY if faulty else given

    def finish(self) -> None:
        """Raise what was recorded, all together."""
        raise_diagnostics(self.faults)

    def within(self, environment: FunctionScope, node: ast.expr) -> Evaluator:
        """The same for an expression of a function that the statement calls, which has names of its own."""
        made = type(self)(environment, index_names((), node, (), environment))
        made.guarded = self.guarded or bool(self.depth)
        return made

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Within this, what is evaluated is asked for where a condition holds."""
        outer, self.guarded = self.guarded, True
        try:
            yield
        finally:
            self.guarded = outer

    # -- scopes of generators --------------------------------------------------------------------------------

    @contextmanager
    def scope(self, names: dict[str, object]) -> Iterator[None]:
        """Within this, ``names`` mean these objects: what a generator's ``for`` binds."""
        self._scopes.append(names)
        try:
            yield
        finally:
            self._scopes.pop()

    @property
    def depth(self) -> int:
        """How many generators are around; their variables are named by it, so that equal sums come out equal."""
        return len(self._scopes)

    @property
    def index_variables(self) -> frozenset[str]:
        """The names that are index variables here."""
        return frozenset(self.variables).union(*self._scopes)

    # -- conversions -----------------------------------------------------------------------------------------

    def is_symbolic(self, given: object) -> bool:
        """Whether ``given`` is more than ordinary Python: a scalar at a point, a size, a tensor."""
        if isinstance(given, Value | PointValue | SymbolicSize | SymbolicNumber | SymbolicArray | Faulty):
            return True
        return self.is_array(given)

    def is_array(self, given: object) -> bool:
        """Whether ``given`` is a tensor or an array, of any rank."""
        return isinstance(given, SymbolicArray) or (hasattr(given, "__array__") and bool(getattr(given, "shape", None)))

    def tensor_of(self, given: object, node: ast.AST) -> SymbolicTensor | None:
        """The tensor that ``given`` is, or ``None``."""
        if not self.is_array(given):
            return None
        return self.environment.tensor_of(given, _label(node), self.span(node))

    def scalar(self, given: object, node: ast.AST) -> Value | None:
        """``given`` as a value at a point; ``None`` after a fault."""
        if isinstance(given, Faulty):
            return None
        given = self.unwrapped(given)
        value: Value | None = self.attempt(lambda: scalar_of(given, self.span(node)), node)
        if value is not None:
            return None if isinstance(value, Faulty) else value
        tensor = self.attempt(lambda: self.tensor_of(given, node), node)
        if isinstance(tensor, Faulty):
            return None
        if tensor is not None:
            self._whole(tensor, node)
            return None
        hint = "tensor statements compute with numbers, sizes, index variables and cells of arrays"
        hint = instead_of(given, "") or hint
        self.fault(DtypeError, f"a {type(given).__name__} is not a number", node, hint)
        return None

    def _whole(self, tensor: SymbolicTensor, node: ast.AST) -> None:
        name, letters = tensor.label, ", ".join("ijklmnopqrst"[: tensor.rank])
        fact = f"`{name}` has rank {tensor.rank} and stands here without an index"
        notes: tuple[str, ...] = (shape_note(tensor),)
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        arrays = [part.id for part in names if self.is_array(self.quietly(part))]
        if arrays and name not in arrays:
            # What whole arrays are computed into: `x[i] * (x > 0)`.
            name, fact, notes = arrays[0], f"an array of rank {tensor.rank} stands here without an index", ()
        self.fault(ShapeError, fact, node, f"index all of its axes, as in `{name}[{letters}]`", notes)

    def value(self, node: ast.expr, position: Position = Position.VALUE) -> Value | None:
        """The scalar that ``node`` is; ``None`` after a fault."""
        return self.scalar(self.evaluate(node, position), node)

    # -- nodes -----------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr, position: Position = Position.VALUE) -> object:
        """What ``node`` is: a `Value`, a Python object, or `FAULTY`."""
        given = self.given(node, position)
        if position is Position.INDEX and isinstance(given, np.integer):
            return int(given)  # index arithmetic is Python's
        if position is not Position.VALUE and isinstance(given, SymbolicNumber) and given.weak_kind == "int":
            # Indices, ranges and conditions are solved when the function is staged: the number becomes a constant,
            # unless it is a term of an index or of a bound.
            bound = self.terms.get(id(node))
            size = None if bound is None else self.environment.session.integers.size(given.expr, bound)
            if size is not None:
                return Value(size, "int", "int64")
            if not given.parameters:  # what the program computes is data
                return Value(given.expr, None, given.expr.dtype)
            return self.native(lambda: operator.index(given), node)
        return given

    def given(self, node: ast.expr, position: Position) -> object:
        """The same, with run-time numbers as they are."""
        raise NotImplementedError

    def unwrapped(self, given: object) -> object:
        """``given`` as a value, if it is a scalar at a point."""
        point = point_of(given)
        if point is None:
            return given
        self.meet(point)
        point = point.within(self._visible())
        self.definitions.update(point.definitions)
        return point.value

    def meet(self, point: PointValue) -> None:
        """A function that has this statement is called for each point, if ``point`` comes of what it is given."""
        point.keep_apart(self.letters.union(self.shared & self.index_variables if self.shared else ()))

    def _visible(self) -> dict[str, Expr]:
        # What the names of the generators around stand for: a local definition that mentions them means those.
        found: dict[str, Expr] = {}
        for names in self._scopes:
            for name, meaning in names.items():
                if isinstance(meaning, Value):
                    found[name] = meaning.expr
                elif isinstance(meaning, int) and not isinstance(meaning, bool):
                    found[name] = integer(meaning)
        return found

    def native(self, action: Callable[[], Any], node: ast.AST) -> object:
        """Python's own result; what it raises becomes a fault at ``node``."""
        try:
            return self.unwrapped(action())
        except TcdslError as error:
            self.faults.extend(error.diagnostics or (Diagnostic(type(error), error.message, self.span(node)),))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.fault(DslSyntaxError, f"{type(error).__name__}: {error}", node)
        return FAULTY

    def apply(self, primitive: str, values: list[Value | None], node: ast.AST) -> object:
        """A primitive on values; `FAULTY` if one of them is."""
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return FAULTY
        span, builder = self.span(node), self.environment.session.builder
        operands = with_divisor(builder, primitive, known, span)
        return self.bounded(self.attempt(lambda: apply_primitive(primitive, operands, span), node), node)

    def bounded(self, given: Value | Faulty, node: ast.AST) -> Value | Faulty:
        """What was computed, under a name if it is large."""
        if isinstance(given, Value):
            given, definitions = bounded(given, self.definitions, self.span(node))
            self.definitions.update(definitions)
        return given

    def condition(self, node: ast.expr) -> Value | None:
        """A condition that follows a value or stands in a generator: a truth value, or ``None`` after a fault."""
        given = self.evaluate(node, Position.CONDITION)
        if isinstance(given, bool):
            return Value(truth(given), None, "bool")
        value = self.scalar(given, node)
        if value is not None and value.logical != "bool":
            text = ast.unparse(node)
            self.fault(DtypeError, f"a condition of type {value.logical}", node, f"compare it, as in `{text} != 0`")
            return None
        return value


def _label(node: ast.AST) -> str:
    # A name for an array that an expression gives: `layers[0].weight` is called layers_0_weight.
    words = re.sub(r"\W+", "_", ast.unparse(node)).strip("_")
    return words if words[:1].isalpha() else f"array_{words}"
