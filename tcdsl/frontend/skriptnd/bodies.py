"""A graph as what a decorated function has for a body: something that runs on symbolic arrays.

Packs of inputs and variables are parameters one by one: `GraphBody.parameters` are their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic, StandIns
from tcdsl.frontend.skriptnd.composition import Composer, Library
from tcdsl.frontend.skriptnd.forms import GraphInputs, InputExtent, Variable, graph_attributes, open_extents
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Operator
from tcdsl.frontend.skriptnd.values import Pack, TensorValue, flat
from tcdsl.frontend.source.other_languages import captured, defined_by_text, function_of_text
from tcdsl.frontend.staging.active_session import ACTIVE_SESSION
from tcdsl.frontend.surroundings.reachable import Surroundings
from tcdsl.frontend.words.declared_stores import cell_of, cell_variables, recorded_store
from tcdsl.frontend.words.shared_parts import sharing
from tcdsl.ir.build import apply, cast, index, integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Constant, Expr, SizeValue
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.span import Span

if TYPE_CHECKING:
    # Calls that an earlier process has made know their function without what stages it.
    from tcdsl.frontend.staging.session import Session
    from tcdsl.frontend.symbols.symbols import SymbolicTensor

__all__ = ["ArrayBody", "GraphBody", "OperatorBody"]

_KINDS = {"real": ("float32", "float64"), "int": ("int32", "int64"), "bool": ("bool",)}


class ArrayBody:
    """What graphs and single operators have in common: arrays become tensors, one parameter each.

    ``lengths`` are those of packs, ``left_out`` the inputs that are not given, ``others`` the arrays behind the inputs.
    """

    size_names: Mapping[str, Sequence[str | None]] = MappingProxyType({})
    #: The types of the arrays, where the text declares them.
    kinds: Sequence[str] | None = None

    def __init__(
        self,
        operator: Operator,
        find: Library,
        attributes: Mapping[str, Any],
        lengths: Mapping[str, int],
        left_out: Sequence[str],
        *,
        text: str,
        others: Sequence[str] = (),
    ) -> None:
        self.operator, self.find, self.attributes = operator, find, dict(attributes)
        self.lengths, self.left_out = dict(lengths), frozenset(left_out)
        given = (each.name for each in operator.inputs if each.name not in left_out)
        counts = ((name, lengths.get(name)) for name in given)
        labels = ([name] if count is None else [f"{name}{k + 1}" for k in range(count)] for name, count in counts)
        fresh = FreshNames().fresh
        self.parameters = tuple(map(fresh, [*chain.from_iterable(labels), *others]))
        self.source = text
        #: What stands for the decorated function, and for its source.
        self.function = function_of_text(operator.name, self.parameters)
        filename = "" if operator.span is None else operator.span.filename
        self.definition = defined_by_text(operator.name, filename, operator.span, self.parameters, text)
        self.surroundings = Surroundings(self.function, self.definition.definition, frozenset())

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Record what the body computes in the current session."""
        session: Session = ACTIVE_SESSION.get()
        arrays = [self._tensor(session, *pair) for pair in zip(self.parameters, arguments, strict=True)]
        kinds = self.kinds if self.kinds is not None else [*map(_kind, arrays)]
        # The types of reals and integers for arrays of these kinds.
        found = {(kind, each.element_type) for each, kind in zip(arrays, kinds, strict=True)}
        real = "float64" if ("real", "float64") in found else "float32"
        whole = "int64" if ("int", "int64") in found else "int32"
        arithmetic = Arithmetic(real, whole, _SizesOfCall(session=session))
        with sharing():
            return self.recorded(Composer(arithmetic, session, self.find, _no_variables), arrays, kinds)

    def recorded(self, composer: Composer, arrays: Sequence[SymbolicTensor], kinds: Sequence[str]) -> Any:
        """Record what the body computes for arrays of these kinds."""
        raise NotImplementedError

    def _tensor(self, session: Session, label: str, given: Any) -> SymbolicTensor:
        from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicTensor

        given = captured(session, np.asarray(given) if isinstance(given, bool | int | float) else given, label)
        if isinstance(given, SymbolicNumber):
            dtype = {"bool": "bool", "int": "int32", "float": "float32"}[given.weak_kind]
            return recorded_store(session, label, dtype, (), cast(given.expr, dtype))
        if not isinstance(given, SymbolicTensor):
            raise DtypeError.at(f"`{label}` is a {type(given).__name__}, not an array", self.operator.name_span)
        return given

    def results(self, composer: Composer, outputs: Sequence[Any], marks: Any, others: Iterable[Any] = ()) -> Any:
        """The outputs, one after the other, the lengths of packs that data says, other tensors, and marked extents."""
        ended = (each.length for each in outputs if getattr(each, "length", None) is not None)
        lengths = [composer.recorded(each, "count") for each in ended]
        marked = (compress(value.shape, axes) for value, axes in zip(flat(outputs), marks, strict=False))
        counts = [composer.recorded(each, "count") for each in chain.from_iterable(marked)]
        found = composer.symbols([*outputs, *lengths, *others, *counts])
        return found[0] if len(found) == 1 else found


class OperatorBody(ArrayBody):
    """An operator for arrays of any shapes: `ArrayBody` with the ``types`` that type parameters are given."""

    def __init__(self, operator: Operator, find: Library, module: str, types: Mapping[str, str], *given: Any) -> None:
        super().__init__(operator, find, *given, text=operator.name)
        self.module, self.types = module, [types[each.name] for each in operator.generics if each.name in types]

    def recorded(self, composer: Composer, arrays: Sequence[SymbolicTensor], kinds: Sequence[str]) -> Any:
        """Record the operator."""
        flat = iter(zip(arrays, kinds, strict=True))

        def tensor(name: str) -> TensorValue:
            array, kind = next(flat)
            return _typed(composer, array, name, kind, Pack.of(map(composer.arithmetic.exact, array.extents)))

        def given(name: str) -> Any:
            count = self.lengths.get(name)
            return tensor(name) if count is None else Pack.of(tensor(name) for _ in range(count))

        inputs = [None if each.name in self.left_out else given(each.name) for each in self.operator.inputs]
        name = f"{self.module}.{self.operator.name}"
        outputs = composer.operator(self.operator, self.module, self.types, self.attributes, inputs, "", None, name)
        return self.results(composer, outputs, open_extents(self.operator))


def _kind(tensor: SymbolicTensor) -> str:
    return "bool" if tensor.element_type == "bool" else "real" if is_floating(tensor.element_type) else "int"


def _no_variables(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
    raise ConfigurationError.at(f"the variable `{label}` has no value", span, "call the operator in a graph")


class GraphBody(ArrayBody):
    """``GraphBody(operator, find, attributes, lengths, left_out, text=text, variables=known)`` for a function.

    ``run(None, *arrays)`` records the graph in the current session: the tensors of the outputs, one after the other,
    with ``updates`` what variables hold afterwards, and the extents that ``marks`` names. With ``quantized`` it does
    what `@quantize` says.
    """

    def __init__(
        self,
        *given: Any,
        text: str,
        variables: Sequence[Variable],
        updates: bool = False,
        quantized: bool = False,
        marks: Sequence[Sequence[bool]] = (),
    ) -> None:
        super().__init__(*given, text=text, others=[each.label.replace(".", "_") for each in variables])
        self.variables, self.updates, self.quantized, self.marks = tuple(variables), updates, quantized, marks
        inputs = (each for each in self.operator.inputs if each.name not in self.left_out)
        declared = ([each.type.name] * self.lengths.get(each.name, 1) for each in inputs)
        self.kinds = [*chain.from_iterable(declared), *(each.type for each in variables)]

    def recorded(self, composer: Composer, arrays: Sequence[SymbolicTensor], kinds: Sequence[str]) -> Any:
        """Record the graph."""
        count = len(arrays) - len(self.variables)
        tensors = dict(zip((each.label for each in self.variables), arrays[count:], strict=True))

        def variable(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
            what, tensor = f"the variable `{label}`", tensors[label]
            if tensor.rank != len(shape):
                raise ShapeError.at(f"{what} has shape {tuple(shape)}, and its array has rank {tensor.rank}", span)
            for axis, (extent, wanted) in enumerate(zip(tensor.extents, shape, strict=True)):
                _require_equal(extent, integer(wanted), what, axis, span)
            return _typed(composer, tensor, label, kind, shape)

        composer.variables, composer.quantized = variable, self.quantized
        evaluator = composer.evaluator()
        values = graph_attributes(self.operator, evaluator, self.attributes)
        sizes: dict[str, Any] = {}
        flat = iter(arrays)

        def given(declaration: Declaration, axes: Sequence[InputExtent] | None, item: int) -> TensorValue:
            return self._input(composer, axes, declaration, next(flat), sizes)

        inputs = GraphInputs(self.operator, evaluator, self.lengths, self.left_out).tensors(given, sizes)
        outputs = composer.operator(self.operator, "main", (), values, inputs, "", None)
        return self.results(composer, outputs, self.marks, composer.updates.values() if self.updates else ())

    def _input(
        self,
        composer: Composer,
        axes: Sequence[InputExtent] | None,
        declaration: Declaration,
        tensor: SymbolicTensor,
        sizes: dict[str, Any],
    ) -> TensorValue:
        what = f"the input `{declaration.name}` of `{self.operator.name}`"
        if axes is not None and len(axes) != tensor.rank:
            fact = f"{what} has rank {len(axes)}, and is given an array of rank {tensor.rank}"
            raise ShapeError.at(fact, declaration.span)
        arithmetic, shape = composer.arithmetic, list[Any]()
        for axis, extent in enumerate(tensor.extents):
            wanted = axes[axis] if axes is not None else InputExtent(None, "", None)
            value = arithmetic.exact(extent)
            known = wanted.extent
            if known is None and wanted.name:
                known = sizes.setdefault(wanted.name, value)
            if known is not None and known != value:
                _require_equal(extent, arithmetic.size(known), what, axis, declaration.span)
                value = known
            if wanted.bound is not None:
                fact = f"axis {axis} of {what} has the extent {_number(extent)}, and {wanted.bound} is the most"
                ACTIVE_SESSION.get().builder.require(apply("le", extent, integer(wanted.bound)), fact, declaration.span)
            shape.append(value)
        return _typed(composer, tensor, declaration.name, declaration.type.name, Pack.of(shape))


def _require_equal(extent: Expr, wanted: Expr, what: str, axis: int, span: Span | None) -> None:
    fact = f"axis {axis} of {what} has the extent {_number(extent)}, not {_number(wanted)}"
    ACTIVE_SESSION.get().builder.require_equal(extent, wanted, fact, span)


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
        self.session.are_same(size, integer(found))
        return found

    def decide(self, operator: str, left: Expr, right: Expr) -> bool:
        """Whether ``left operator right`` holds."""
        if operator in ("!=", ">=", "<="):
            return not self.decide({"!=": "==", ">=": "<", "<=": ">"}[operator], left, right)
        if operator == "==" and self.session.are_same(left, right):
            return True
        pair = (right, left) if operator == ">" else (left, right)
        return self.session.is_negative(apply("sub", *pair)) and operator != "=="


def _typed(composer: Composer, tensor: SymbolicTensor, name: str, kind: str, shape: Pack) -> TensorValue:
    """An array as a tensor of the graph, in the type that its kind has in this call."""
    allowed = _KINDS.get(kind, ())
    if tensor.element_type not in allowed:
        hint = f"convert it: `{name}.astype(np.{allowed[0]})`" if allowed else ""
        raise DtypeError.at(f"`{name}` is {kind}, and is given an array of {tensor.element_type}", None, hint)
    if tensor.element_type != composer.arithmetic.dtype(kind):
        cell = cell_of(tensor, [*map(index, cell_variables(tensor.rank))], tensor.element_type)
        return composer.stored(name, kind, shape, cast(cell, composer.arithmetic.dtype(kind)))
    return TensorValue(name, kind, shape, tensor)
