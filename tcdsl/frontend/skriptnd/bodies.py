"""A graph as what a decorated function has for a body: something that runs on symbolic arrays.

Packs of inputs and variables are parameters one by one: `GraphBody.parameters` are their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic, StandIns
from tcdsl.frontend.skriptnd.composition import Composer, Library
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.forms import Variable, ended_packs, open_extents
from tcdsl.frontend.skriptnd.graph_inputs import GraphInputs, InputExtent, graph_attributes
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Operator
from tcdsl.frontend.skriptnd.values import Pack, TensorValue, flat
from tcdsl.frontend.source.other_languages import captured, defined_by_text, function_of_text
from tcdsl.frontend.staging.session import BroadcastGuard, Session, session_of
from tcdsl.frontend.surroundings.reachable import Surroundings
from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicTensor
from tcdsl.frontend.words.declared_stores import cell_of, cell_variables, recorded_store
from tcdsl.frontend.words.shared_parts import sharing
from tcdsl.ir.build import apply, cast, index, integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Constant, Expr, SizeValue
from tcdsl.span import Span

__all__ = ["ArrayBody", "GraphBody", "OperatorBody"]

_KINDS = {"real": ("float32", "float64"), "int": ("int32", "int64"), "bool": ("bool",)}


class ArrayBody:
    """What graphs and single operators have in common: arrays become tensors, one parameter each."""

    size_names: Mapping[str, Sequence[str | None]] = MappingProxyType({})

    def __init__(
        self,
        operator: Operator,
        find: Library,
        lengths: Mapping[str, int],
        text: str,
        others: Sequence[str] = (),
        left_out: Sequence[str] = (),
    ) -> None:
        labels: list[str] = []
        for each in operator.inputs:
            if each.name not in left_out:
                count = lengths.get(each.name)
                labels.extend([each.name] if count is None else [f"{each.name}{k + 1}" for k in range(count)])
        self.operator = operator
        self.find = find
        self.lengths = dict(lengths)
        self.left_out = frozenset(left_out)
        self.parameters = _distinct([*labels, *others])
        self.source = text
        #: What stands for the decorated function, and for its source.
        self.function = function_of_text(operator.name, self.parameters)
        filename = "" if operator.span is None else operator.span.filename
        self.definition = defined_by_text(operator.name, filename, operator.span, self.parameters, text)
        self.surroundings = Surroundings(self.function, self.definition.definition, frozenset())

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Record what the body computes in the current session."""
        raise NotImplementedError

    def tensors(self, session: Session, arguments: Sequence[Any]) -> list[SymbolicTensor]:
        """The arguments as tensors of the program."""
        return [self._tensor(session, *pair) for pair in zip(self.parameters, arguments, strict=True)]

    def _tensor(self, session: Session, label: str, given: Any) -> SymbolicTensor:
        given = captured(session, np.asarray(given) if isinstance(given, bool | int | float) else given, label)
        if isinstance(given, SymbolicNumber):
            given = _of_number(session, given, label)
        if not isinstance(given, SymbolicTensor):
            raise DtypeError.at(f"`{label}` is a {type(given).__name__}, not an array", self.operator.name_span)
        return given

    def arithmetic(self, session: Session, arrays: Sequence[SymbolicTensor], kinds: Sequence[str]) -> Arithmetic:
        """The types of reals and integers for arrays of these kinds."""
        found = {(kind, each.element_type) for each, kind in zip(arrays, kinds, strict=True)}
        real = "float64" if ("real", "float64") in found else "float32"
        return Arithmetic(real, "int64" if ("int", "int64") in found else "int32", _SizesOfCall(session=session))

    def require_equal(
        self, session: Session, extent: Expr, wanted: Expr, what: str, axis: int, span: Span | None
    ) -> None:
        """State what the extent of an axis is."""
        fact = f"axis {axis} of {what} has the extent {_number(extent)}, not {_number(wanted)}"
        session.builder.require_equal(extent, wanted, fact, span)

    def results(
        self,
        session: Session,
        composer: Composer,
        outputs: Sequence[Any],
        marks: Sequence[Sequence[bool]],
        others: Iterable[TensorValue] = (),
    ) -> Any:
        """The outputs, one after the other, the lengths of packs that data says, other tensors, and marked extents."""
        lengths = [composer.recorded(each.length, "count") for each in ended_packs(outputs)]
        found = [*composer.symbols([*outputs, *lengths, *others])]
        for value, axes in zip(flat(outputs), marks, strict=False):
            numbers = [
                integer(extent) if isinstance(extent, int) else extent.expr for extent in compress(value.shape, axes)
            ]
            found.extend(recorded_store(session, "count", each.dtype, (), each) for each in numbers)
        return found[0] if len(found) == 1 else tuple(found)


class OperatorBody(ArrayBody):
    """An operator for arrays of any shapes; ``left_out`` are the inputs that are not given."""

    def __init__(
        self,
        operator: Operator,
        module: str,
        find: Library,
        types: Mapping[str, str],
        attributes: Mapping[str, Any],
        lengths: Mapping[str, int],
        left_out: Sequence[str],
    ) -> None:
        super().__init__(operator, find, lengths, operator.name, left_out=left_out)
        self.module = module
        self.types = dict(types)
        self.attributes = dict(attributes)

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Record the operator."""
        session = session_of("an operator")
        arrays = self.tensors(session, arguments)
        kinds = [_kind(each) for each in arrays]
        arithmetic = self.arithmetic(session, arrays, kinds)
        flat = iter(zip(arrays, kinds, strict=True))

        def tensor(name: str) -> TensorValue:
            array, kind = next(flat)
            return _typed(session, arithmetic, array, name, kind, Pack.of(map(arithmetic.exact, array.extents)))

        given: list[Any] = []
        for each in self.operator.inputs:
            count = self.lengths.get(each.name)
            if each.name in self.left_out:
                given.append(None)
            else:
                given.append(tensor(each.name) if count is None else Pack.of(tensor(each.name) for _ in range(count)))
        composer = Composer(arithmetic, session, self.find, _no_variables)
        types = [self.types[each.name] for each in self.operator.generics if each.name in self.types]
        name = f"{self.module}.{self.operator.name}"
        with sharing():
            outputs = composer.operator(self.operator, self.module, types, self.attributes, given, "", None, name)
        return self.results(session, composer, outputs, open_extents(self.operator))


def _kind(tensor: SymbolicTensor) -> str:
    return "bool" if tensor.element_type == "bool" else "real" if is_floating(tensor.element_type) else "int"


def _no_variables(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
    raise ConfigurationError.at(f"the variable `{label}` has no value", span, "call the operator in a graph")


class GraphBody(ArrayBody):
    """``GraphBody(operator, find, attributes, lengths, variables, text)`` for a decorated function.

    ``run(None, *arrays)`` records the graph in the current session: the tensors of the outputs, one after the other,
    with ``updates`` what variables hold afterwards, and the extents that ``marks`` names. With ``quantized`` it does
    what `@quantize` says.
    """

    def __init__(
        self,
        operator: Operator,
        find: Library,
        attributes: Mapping[str, Any],
        lengths: Mapping[str, int],
        variables: Sequence[Variable],
        text: str,
        updates: bool = False,
        quantized: bool = False,
        left_out: Sequence[str] = (),
        marks: Sequence[Sequence[bool]] = (),
    ) -> None:
        super().__init__(operator, find, lengths, text, [each.label.replace(".", "_") for each in variables], left_out)
        self.marks = marks
        self.attributes = dict(attributes)
        self.variables = tuple(variables)
        self.updates = updates
        self.quantized = quantized

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Record the graph."""
        session = session_of("a graph")
        arrays = self.tensors(session, arguments)
        arithmetic = self.arithmetic(session, arrays, self._kinds())
        count = len(arrays) - len(self.variables)
        tensors = dict(zip((each.label for each in self.variables), arrays[count:], strict=True))

        def variable(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
            tensor = tensors.get(label)
            if tensor is None:
                raise ConfigurationError.at(f"the variable `{label}` has no value", span)
            if tensor.rank != len(shape):
                fact = f"the variable `{label}` has shape {tuple(shape)}, and its array has rank {tensor.rank}"
                raise ShapeError.at(fact, span)
            for axis, (extent, wanted) in enumerate(zip(tensor.extents, shape, strict=True)):
                self.require_equal(session, extent, integer(wanted), f"the variable `{label}`", axis, span)
            return _typed(session, arithmetic, tensor, label, kind, shape)

        composition = Composer(arithmetic, session, self.find, variable, quantized=self.quantized)
        evaluator = ExpressionEvaluator(arithmetic, Scope())
        values = graph_attributes(self.operator, evaluator, self.attributes)
        given = self._inputs(session, arithmetic, evaluator, arrays[:count])
        with sharing():
            outputs = composition.operator(self.operator, "main", (), values, given, "", None)
        updates = composition.updates.values() if self.updates else ()
        return self.results(session, composition, outputs, self.marks, updates)

    def _kinds(self) -> list[str]:
        found: list[str] = []
        for each in self.operator.inputs:
            found.extend([each.type.name] * (each.name not in self.left_out and self.lengths.get(each.name, 1)))
        return [*found, *(each.type for each in self.variables)]

    def _inputs(
        self, session: Session, arithmetic: Arithmetic, evaluator: ExpressionEvaluator, arrays: Sequence[SymbolicTensor]
    ) -> list[Any]:
        sizes: dict[str, Any] = {}
        flat = iter(arrays)

        def given(declaration: Declaration, axes: Sequence[InputExtent] | None, item: int) -> TensorValue:
            return self._input(session, arithmetic, axes, declaration, next(flat), sizes)

        return GraphInputs(self.operator, evaluator, self.lengths, self.left_out).tensors(given, sizes)

    def _input(
        self,
        session: Session,
        arithmetic: Arithmetic,
        axes: Sequence[InputExtent] | None,
        declaration: Declaration,
        tensor: SymbolicTensor,
        sizes: dict[str, Any],
    ) -> TensorValue:
        what = f"the input `{declaration.name}` of `{self.operator.name}`"
        if axes is not None and len(axes) != tensor.rank:
            fact = f"{what} has rank {len(axes)}, and is given an array of rank {tensor.rank}"
            raise ShapeError.at(fact, declaration.span)
        shape: list[Any] = []
        for axis, extent in enumerate(tensor.extents):
            wanted = axes[axis] if axes is not None else InputExtent(None, "", None)
            value = arithmetic.exact(extent)
            known = wanted.extent
            if known is None and wanted.name:
                known = sizes.setdefault(wanted.name, value)
            if known is not None and known != value:
                self.require_equal(session, extent, arithmetic.size(known), what, axis, declaration.span)
                value = known
            if wanted.bound is not None:
                fact = f"axis {axis} of {what} has the extent {_number(extent)}, and {wanted.bound} is the most"
                session.builder.require(apply("le", extent, integer(wanted.bound)), fact, declaration.span)
            shape.append(value)
        return _typed(session, arithmetic, tensor, declaration.name, declaration.type.name, Pack.of(shape))


def _number(extent: Expr) -> str:
    # Its value at the call, in braces if it is a size.
    if isinstance(extent, Constant):
        return str(extent.value)
    return f"{{{extent.name}}}" if isinstance(extent, SizeValue) else "what the text says"


@dataclass(slots=True)
class _SizesOfCall(StandIns):
    """How sizes of a call compare; that they do is kept, and the program serves the calls in which they do."""

    session: Session = field(kw_only=True)

    def value(self, size: Expr) -> int:
        """What a size is in this call."""
        found = self.session.evaluate(size)
        self._keep(size, integer(found), "same")
        return found

    def decide(self, operator: str, left: Expr, right: Expr) -> bool:
        """Whether ``left operator right`` holds."""
        if operator == "!=":
            return not self.decide("==", left, right)
        if operator in (">", ">="):
            left, right, operator = right, left, {">": "<", ">=": "<="}[operator]
        first, second = self.session.evaluate(left), self.session.evaluate(right)
        if operator == "==" and first == second:
            self._keep(left, right, "same")
        elif first < second or (first == second and operator == "<="):
            self._keep(left if operator == "<=" else apply("add", left, integer(1)), right, "most")
        else:
            self._keep(right if operator == "<" else apply("add", right, integer(1)), left, "most")
        return {"==": first == second, "<": first < second, "<=": first <= second}[operator]

    def _keep(self, left: Expr, right: Expr, relation: str) -> None:
        self.session.guards[BroadcastGuard(left, right, relation)] = None


def _typed(
    session: Session, arithmetic: Arithmetic, tensor: SymbolicTensor, name: str, kind: str, shape: Pack
) -> TensorValue:
    """An array as a tensor of the graph, in the type that its kind has in this call."""
    allowed = _KINDS.get(kind, ())
    if tensor.element_type not in allowed:
        hint = f"convert it: `{name}.astype(np.{allowed[0]})`" if allowed else ""
        raise DtypeError.at(f"`{name}` is {kind}, and is given an array of {tensor.element_type}", None, hint)
    dtype = arithmetic.dtype(kind)
    if tensor.element_type != dtype:
        tensor = _copied(session, tensor, name, dtype)
    return TensorValue(name, kind, shape, tensor)


def _copied(session: Session, tensor: SymbolicTensor, name: str, dtype: str) -> SymbolicTensor:
    cell = cell_of(tensor, [*map(index, cell_variables(tensor.rank))], tensor.element_type)
    return recorded_store(session, name, dtype, tensor.extents, cast(cell, dtype))


def _of_number(session: Session, given: SymbolicNumber, label: str) -> SymbolicTensor:
    dtype = {"bool": "bool", "int": "int32", "float": "float32"}[given.weak_kind]
    return recorded_store(session, label, dtype, (), cast(given.expr, dtype))


def _distinct(labels: Sequence[str]) -> tuple[str, ...]:
    # Names of parameters of Python's.
    made: list[str] = []
    for name in labels:
        while name in made or not name.isidentifier():
            name = f"{name}_" if name.isidentifier() else f"_{name}"
        made.append(name)
    return tuple(made)
