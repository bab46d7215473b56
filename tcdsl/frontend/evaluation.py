"""From a value's syntax tree to typed scalars: one `Evaluation` per tensor statement.

`Evaluation.evaluate` gives a Python object for every node: a `Value` for what differs from point to point, and
whatever Python gives for the rest (configuration, modules, functions, whole tensors), so that conditions on
configuration are decided while staging. Reductions come out open: which index variables each one binds is decided
when the whole statement is known (`tcdsl.frontend.binding`).

A fault is recorded and evaluation goes on with `FAULTY`, so that one statement reports all of its faults together.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError, TcdslError, raise_diagnostics
from tcdsl.frontend import accesses, applications, products
from tcdsl.frontend.environment import UNBOUND, Environment
from tcdsl.frontend.faults import FAULTY, Faulty, shape_note
from tcdsl.frontend.names import GlobalNumber, IndexName, Position, index_meaning, value_meaning
from tcdsl.frontend.points import PointValue, scalar_of
from tcdsl.frontend.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.values import Value, apply_primitive, as_truth
from tcdsl.ir.build import integer, truth
from tcdsl.ir.expressions import Expr, IndexValue
from tcdsl.ir.span import Span

__all__ = ["Evaluation"]


BINARY: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_div", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("bit_and", operator.and_),
    ast.BitOr: ("bit_or", operator.or_),
    ast.BitXor: ("bit_xor", operator.xor),
    ast.LShift: ("shift_left", operator.lshift),
    ast.RShift: ("shift_right", operator.rshift),
    ast.MatMult: ("", operator.matmul),
}
_UNARY: Mapping[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("id", operator.pos),
    ast.Not: ("not_", operator.not_),
    ast.Invert: ("bit_not", operator.invert),
}
_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
}
_PYTHON_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class Evaluation:
    """Evaluates the parts of one statement.

    ``variables`` are the statement's index variables. ``definitions`` collects the local definitions that the values
    mention, ``faults`` what is wrong.
    """

    def __init__(self, environment: Environment, variables: tuple[str, ...]) -> None:
        self.environment = environment
        self.variables = variables
        self.definitions: dict[str, Value] = {}
        self.faults: list[Diagnostic] = []
        self.unwritten: str | None = None
        self._scopes: list[dict[str, object]] = []
        self._undefined: set[str] = set()

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
        known, undefined = len(self.faults), set(self._undefined)
        given = self.evaluate(node)
        faulty = len(self.faults) > known
        del self.faults[known:]
        self._undefined = undefined
        return FAULTY if faulty else given

    def finish(self) -> None:
        """Raise what was recorded, all together."""
        raise_diagnostics(self.faults)

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
        given = self._unwrapped(given)
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
        self.fault(DtypeError, f"a {type(given).__name__} is not a number", node, hint)
        return None

    def _whole(self, tensor: SymbolicTensor, node: ast.AST) -> None:
        self.fault(
            ShapeError,
            f"`{tensor.label}` has rank {tensor.rank} and stands here without an index",
            node,
            f"index all of its axes, as in `{tensor.label}[{', '.join('ijklmnopqrst'[: tensor.rank])}]`",
            (shape_note(tensor),),
        )

    def value(self, node: ast.expr, position: Position = Position.VALUE) -> Value | None:
        """The scalar that ``node`` is; ``None`` after a fault."""
        return self.scalar(self.evaluate(node, position), node)

    # -- nodes -----------------------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr, position: Position = Position.VALUE) -> object:
        """What ``node`` is: a `Value`, a Python object, or `FAULTY`."""
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name):
                return self._unwrapped(self._name(name, node, position))
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return accesses.subscript(self, node, position)
            case ast.BinOp():
                return products.product(self, node, position)
            case ast.UnaryOp():
                return self._unary(node, position)
            case ast.BoolOp():
                return self._logical(node, position)
            case ast.Compare():
                return self._compare(node, position)
            case ast.IfExp():
                return self._conditional(node, position)
            case ast.Call():
                return self._unwrapped(applications.call(self, node, position))
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                found = [self.evaluate(element, position) for element in elements]
                return tuple(found) if isinstance(node, ast.Tuple) else found
            case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                return self.fault(
                    DslSyntaxError,
                    "a generator that no reduction takes",
                    node,
                    "write `sum(... for ...)`, or max, min, prod, mean, any, all, argmax, argmin",
                )
            case ast.Slice() | ast.Starred():
                return self.fault(
                    DslSyntaxError,
                    "a slice in a tensor statement",
                    node,
                    "write an index variable and a condition on it",
                )
        what = type(node).__name__
        return self.fault(DslSyntaxError, f"Python's {what} has no meaning in a tensor statement", node)

    def _unwrapped(self, given: object) -> object:
        if isinstance(given, PointValue):
            given = given.within(self._visible())
            self.definitions.update(given.definitions)
            return given.value
        return given

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

    def _name(self, name: str, node: ast.Name, position: Position) -> object:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        if position is Position.VALUE:
            if name in self.variables:
                return Value(IndexValue(name, self.span(node)), "int", "int64")
            if name == self.unwritten:
                meaning: object = self.environment.own(name)
            else:
                meaning = value_meaning(name, self.environment)
        else:
            meaning = index_meaning(name, self.environment)
        if isinstance(meaning, IndexName):
            return Value(IndexValue(name, self.span(node)), "int", "int64")
        if isinstance(meaning, GlobalNumber) or meaning is UNBOUND:
            return self._without_value(name, node, meaning)
        return meaning

    def _without_value(self, name: str, node: ast.Name, meaning: object) -> Faulty:
        if name in self._undefined:
            return FAULTY
        self._undefined.add(name)
        if isinstance(meaning, GlobalNumber):
            return self.fault(
                DslSyntaxError,
                f"`{name}` is a number of the module, which an index does not see",
                node,
                f"pass it as a parameter (`*, {name}`), or bind it in the function: `{name} = ...`",
            )
        if name == self.unwritten:
            return self.fault(
                DslSyntaxError,
                f"`{name}` is read by the statement that creates it",
                node,
                f"write it first, or pass an outer `{name}` as a parameter",
            )
        hint = f"an index variable of that name would stand in a subscript, as in `A[{name}]`"
        return self.fault(DslSyntaxError, f"`{name}` is not defined", node, hint if len(name) == 1 else "")

    def _attribute(self, node: ast.Attribute) -> object:
        base = self.evaluate(node.value)
        if isinstance(base, Faulty):
            return FAULTY
        if isinstance(base, Value):
            return self.fault(DslSyntaxError, f"a scalar at a point has no attribute `{node.attr}`", node)
        try:
            return getattr(base, node.attr)
        except AttributeError as error:
            return self.fault(DslSyntaxError, str(error), node)
        except TcdslError as error:
            self.faults.extend(error.diagnostics)
            return FAULTY

    # -- operators -------------------------------------------------------------------------------------------

    def binary(self, kind: type[ast.operator], left: object, right: object, node: ast.expr) -> object:
        """``left <operator> right``: Python's result on ordinary objects and whole tensors, else a `Value`."""
        if isinstance(left, Faulty) or isinstance(right, Faulty):
            return FAULTY
        primitive, native = BINARY[kind]
        sides = (left, right)
        points = any(isinstance(side, Value | PointValue) for side in sides)
        whole = any(self.is_array(side) and len(side.shape) > 0 for side in sides)  # type: ignore[attr-defined]
        if not any(map(self.is_symbolic, sides)) or (whole and not points):
            return self.native(lambda: native(left, right), node)
        if not primitive:
            return self.fault(
                DtypeError, "`@` multiplies whole arrays, not scalars", node, "write `*`, or sum over an index"
            )
        values = [self.scalar(side, node) for side in sides]
        return self.apply(primitive, values, node)

    def native(self, action: Callable[[], Any], node: ast.AST) -> object:
        """Python's own result; what it raises becomes a fault at ``node``."""
        try:
            return self._unwrapped(action())
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
        return self.attempt(lambda: apply_primitive(primitive, known, self.span(node)), node)

    def _unary(self, node: ast.UnaryOp, position: Position) -> object:
        if isinstance(node.op, ast.USub):
            return products.product(self, node, position)
        operand = self.evaluate(node.operand, position)
        if isinstance(operand, Faulty):
            return FAULTY
        primitive, native = _UNARY[type(node.op)]
        if not self.is_symbolic(operand) or (self.is_array(operand) and operand.shape):  # type: ignore[attr-defined]
            return self.native(lambda: native(operand), node)
        value = self.scalar(operand, node.operand)
        return value if primitive == "id" and value is not None else self.apply(primitive, [value], node)

    def negated(self, operand: object, node: ast.expr) -> object:
        """``-operand``."""
        if isinstance(operand, Faulty):
            return FAULTY
        if not self.is_symbolic(operand) or (self.is_array(operand) and operand.shape):  # type: ignore[attr-defined]
            return self.native(lambda: operator.neg(operand), node)  # type: ignore[arg-type]
        return self.apply("neg", [self.scalar(operand, node)], node)

    def _logical(self, node: ast.BoolOp, position: Position) -> object:
        # What configuration decides is decided here, and what stands behind it is then not even evaluated.
        conjunction = isinstance(node.op, ast.And)
        found: Value | None = None
        faulty = False
        for part in node.values:
            given = self.evaluate(part, position)
            if not self.is_symbolic(given):
                if bool(given) != conjunction:
                    result: object = given if found is None else Value.of(not conjunction)
                    return (
                        FAULTY
                        if faulty
                        else result
                        if found is None
                        else self._joined(conjunction, found, result, node)
                    )
                if part is node.values[-1] and found is None and not faulty:
                    return given
                continue
            value = self.scalar(given, part)
            if value is None:
                faulty = True
            elif found is None:
                found = as_truth(value, self.span(part))
            else:
                joined = self._joined(conjunction, found, value, node)
                faulty |= isinstance(joined, Faulty)
                found = joined if isinstance(joined, Value) else found
        return FAULTY if faulty or found is None else found

    def _joined(self, conjunction: bool, left: Value, right: object, node: ast.expr) -> object:
        return self.apply("and_" if conjunction else "or_", [left, self.scalar(right, node)], node)

    def _compare(self, node: ast.Compare, position: Position) -> object:
        given = [self.evaluate(operand, position) for operand in (node.left, *node.comparators)]
        found: object = None
        for kind, left, right in zip(node.ops, given, given[1:], strict=False):
            one = self._comparison(type(kind), left, right, node)
            if isinstance(one, Faulty):
                return FAULTY
            if found is None:
                found = one
            elif isinstance(found, Value) or isinstance(one, Value):
                found = self.apply("and_", [self.scalar(found, node), self.scalar(one, node)], node)
            else:
                found = found and one
        return found

    def _comparison(self, kind: type[ast.cmpop], left: object, right: object, node: ast.Compare) -> object:
        if isinstance(left, Faulty) or isinstance(right, Faulty):
            return FAULTY
        if kind in _PYTHON_COMPARISONS:
            if kind in (ast.In, ast.NotIn) and (self.is_symbolic(left) or self.is_symbolic(right)):
                return self.fault(
                    DslSyntaxError, "`in` on a value that is different at every point", node, "compare with =="
                )
            return self.native(lambda: _PYTHON_COMPARISONS[kind](left, right), node)
        primitive, native = _COMPARISONS[kind]
        if not self.is_symbolic(left) and not self.is_symbolic(right):
            return self.native(lambda: native(left, right), node)
        return self.apply(primitive, [self.scalar(left, node.left), self.scalar(right, node)], node)

    def _conditional(self, node: ast.IfExp, position: Position) -> object:
        test = self.evaluate(node.test, position)
        if isinstance(test, Faulty):
            self.evaluate(node.body, position)
            self.evaluate(node.orelse, position)
            return FAULTY
        if not self.is_symbolic(test):
            return self.evaluate(node.body if test else node.orelse, position)
        condition = self.scalar(test, node.test)
        body, other = self.value(node.body, position), self.value(node.orelse, position)
        return self.apply("where", [condition, body, other], node)

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
