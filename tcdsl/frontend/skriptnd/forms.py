"""What is known of a graph without arrays: attributes, inputs, and what they come to.

Extents that the text fixes are constants of the program; the others are sizes of the arrays, which are at most their
bounds. Data may cut off results.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic, StandIns
from tcdsl.frontend.skriptnd.binding import Binding
from tcdsl.frontend.skriptnd.composition import Composer, Library
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator
from tcdsl.frontend.skriptnd.tensor_recording import TensorRecording
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Extent, Identifier, Operator, names_in
from tcdsl.frontend.skriptnd.values import Pack, ScalarValue, TensorValue, bound_of, flat, is_size, type_of
from tcdsl.frontend.words.shared_parts import sharing
from tcdsl.ir.expressions import SizeValue
from tcdsl.span import Span

__all__ = ["GraphForm", "GraphInputs", "InputExtent", "Variable"]
__all__ += ["attribute_value", "composed", "graph_attributes", "marked", "open_extents", "trimmed"]


def graph_attributes(operator: Operator, evaluator: ExpressionEvaluator, given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a graph, ``given`` ones as values of Python's and defaults.

    The evaluator knows them afterwards, and what shapes of inputs may be made of beside them.
    """
    known = [each.name for each in operator.attributes]
    for name in given:
        if name not in known:
            fact = f"the graph `{operator.name}` has no attribute `{name}`"
            raise ConfigurationError.at(fact, operator.name_span, f"its attributes are {', '.join(known) or 'none'}")
    found: dict[str, Any] = {}
    for each in operator.attributes:
        if each.name in given:
            value = attribute_value(given[each.name], each)
        elif each.default is not None:
            value = evaluator.value(each.default)
        elif each.type.optional:
            value = None
        else:
            fact = f"the attribute `{each.name}` of the graph `{operator.name}` has no value"
            hint = f"give it: `attributes={{'{each.name}': ...}}`, or `graph.configured({each.name}=...)`"
            raise ConfigurationError.at(fact, each.span, hint)
        found[each.name] = evaluator.scope.names[each.name] = value
    binding = Binding(operator, evaluator, operator.name, None, TensorRecording(evaluator.arithmetic, None))
    for each in operator.attributes:
        if isinstance(found[each.name], Pack):
            binding.length(each)
    binding.early()
    return found


def attribute_value(value: Any, declaration: Declaration) -> Any:
    """A value of Python's as one of SkriptND."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return Pack.of(attribute_value(each, declaration) for each in value)
    if value is not None and not isinstance(value, bool | int | float | str):
        fact = f"the attribute `{declaration.name}` is of type {type(value).__name__}"
        hint = "attributes are numbers, texts, truth values, or lists of them"
        raise ConfigurationError.at(fact, declaration.span, hint)
    if isinstance(value, int) and not isinstance(value, bool) and declaration.type.name == "real":
        return float(value)
    return value


@dataclass(frozen=True, slots=True)
class InputExtent:
    """One axis of an input: a known ``extent``, or the ``name`` of a size, if it has one, with its ``bound``.

    An extent is known by the text, an int, or by an earlier input, an expression of its sizes.
    """

    extent: Any
    name: str
    bound: int | None


@dataclass(slots=True)
class GraphInputs:
    """``GraphInputs(operator, evaluator, lengths)``: ``lengths`` are those of packs; ``left_out`` are not given."""

    operator: Operator
    evaluator: ExpressionEvaluator
    lengths: Mapping[str, int]
    left_out: Collection[str] = ()

    def tensors(
        self, made: Callable[[Declaration, list[InputExtent] | None, int], TensorValue], sizes: Mapping[str, Any]
    ) -> list[Any]:
        """A tensor, a pack or None for each input: ``made`` makes a tensor of its axes, and may add to ``sizes``."""
        found: list[Any] = []
        for each in self.operator.inputs:
            if each.name in self.left_out:
                found.append(None)
                continue
            length, shape = self._length(each), each.type.shape
            items = []
            for k in range(1 if length is None else length):
                axes = None if shape is None else [axis for entry in shape for axis in self._axes(entry, each, k)]
                items.append(made(each, axes, k))
            # Extents of later inputs may be made of the sizes of this one.
            for extent in shape or ():
                if isinstance(extent.value, Identifier) and extent.value.name in sizes:
                    self.evaluator.scope.names.setdefault(extent.value.name, sizes[extent.value.name])
            found.append(items[0] if length is None else Pack.of(items))
        return found

    def _length(self, declaration: Declaration) -> int | None:
        # How many tensors an input has: as many as are given, else as the text says or allows; None if no pack.
        pack, given = declaration.type.pack, self.lengths.get(declaration.name)
        if pack is None:
            return None
        names, node = self.evaluator.scope.names, pack.length
        if node is not None and not self._is_open(node):
            wanted = self.evaluator.count(node, f"the length of `{declaration.name}`")
            if given is not None and given != wanted:
                fact = f"`{declaration.name}` has {wanted} tensors, and {given} are given"
                raise ShapeError.at(fact, declaration.span)
            return wanted
        bound = None if pack.bound is None else self.evaluator.count(pack.bound, f"the bound of `{declaration.name}`")
        if given is not None and bound is not None and not 1 <= given <= bound:
            fact = f"`{declaration.name}` has 1 to {bound} tensors, and {given} are given"
            raise ShapeError.at(fact, declaration.span)
        found = given if given is not None else bound
        if found is None:
            fact = f"the length of the pack `{declaration.name}` has no bound"
            raise DslSyntaxError.at(fact, declaration.span, "write `..(n|8)` for at most 8")
        if isinstance(node, Identifier):
            names[node.name] = found
        return found

    def _is_open(self, node: Any) -> bool:
        return any(not self.evaluator.scope.knows(name) for name in names_in(node))

    def _axes(self, extent: Extent, declaration: Declaration, item: int) -> Iterator[InputExtent]:
        # Those of an entry of a shape, of tensor `item` of a pack.
        evaluator, node = self.evaluator, extent.value
        packed = extent.repeats is not None
        counted = None if extent.repeats is None else extent.repeats.length
        length = None if counted is None else evaluator.count(counted, "the number of axes")
        is_open = node is None or self._is_open(node)
        if node is not None and is_open and not isinstance(node, Identifier):
            fact = "an extent of a graph's input is a name, a number, or made of attributes and of names before it"
            raise DslSyntaxError.at(fact, extent.span)
        value = None if node is None or is_open else evaluator.value(node)
        bound = None if extent.bound is None else evaluator.value(extent.bound)
        name = node.name if isinstance(node, Identifier) else ""
        if extent.spread:
            # Each tensor of the pack has an extent of its own.
            value, bound = (each[item : item + 1] if isinstance(each, Pack) else each for each in (value, bound))
            name, packed = name and f"{name}.{item}", False
        if length is None:
            length = next((len(each) for each in (value, bound) if isinstance(each, Pack)), 1)
        values, bounds = (each if isinstance(each, Pack) else (each,) * length for each in (value, bound))
        if len(values) != length or len(bounds) != length:
            raise ShapeError.at(f"an entry of the shape of `{declaration.name}` is {length} axes", extent.span)
        for axis, (each, most) in enumerate(zip(values, bounds, strict=True)):
            if extent.bound is not None and (type(most) is not int or most < 0):
                raise DtypeError.at("a bound that is no int, or negative", extent.span)
            if not is_open and (not is_size(each) or (type(each) is int and each < 0)):
                kind = type_of(each) or "null"
                raise ShapeError.at(f"an extent of `{declaration.name}` is of type {kind}, or negative", extent.span)
            yield InputExtent(each, f"{name}.{axis}" if name and packed else name, most)

    def stand_ins(self, known: StandIns) -> list[Any]:
        """Tensors for all inputs, whose sizes are in ``known``."""
        sizes: dict[str, Any] = {}

        def made(given: Declaration, axes: list[InputExtent] | None, item: int) -> TensorValue:
            labels = (f"{given.name}{item}_{axis}" for axis in count())
            shape = (self._stand_in(*pair, given, sizes, known) for pair in zip(axes or (), labels, strict=False))
            return TensorValue(given.name, given.type.name, Pack.of(shape))

        return self.tensors(made, sizes)

    def _stand_in(
        self, axis: InputExtent, label: str, declaration: Declaration, sizes: dict[str, Any], known: StandIns
    ) -> Any:
        if axis.extent is not None:
            return axis.extent
        if axis.name in sizes:
            return sizes[axis.name]
        if axis.bound is None:
            fact = f"an extent of `{declaration.name}` has no bound"
            raise DslSyntaxError.at(fact, declaration.span, f"write `{axis.name or '~'}|100` for at most 100")
        name = (axis.name or label).replace(".", "_")
        known.sizes[name] = axis.bound
        made = ScalarValue(SizeValue(name), "int", True)
        if axis.name:
            sizes[axis.name] = made
        return made


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a graph: its label, type and shape, the name of its file, and whether the graph reads it."""

    label: str
    type: str
    shape: tuple[int, ...]
    file: str
    span: Span | None
    used: bool = True


@dataclass(slots=True)
class GraphForm:
    """What is known of a graph without arrays: attributes and variables, and the shapes of its inputs and outputs.

    ``operations`` are the operators that are called, ``sizes`` the most that each size may be, by name.
    """

    attributes: dict[str, Any]
    variables: dict[str, Variable]
    inputs: list[Any]
    outputs: list[Any]
    operations: int
    #: The labels of variables that a call changes.
    updates: tuple[str, ...]
    sizes: dict[str, int]
    #: What quantizes tensors, by their labels: an operator, and its attributes.
    quantizations: dict[str, tuple[str, dict[str, Any]]]


def trimmed(results: Any, marks: Sequence[Sequence[bool]]) -> Any:
    """Results of a body without the numbers behind them, and arrays without the cells that these leave out.

    ``marks`` says of each axis of the first results whether only data says its extent. Tensors keep all cells.
    """
    count = sum(map(sum, marks))
    if not count:
        return results
    found, counts = list(results[:-count]), iter(results[-count:])
    for k, axes in enumerate(marks):
        numbers = [next(counts) if each else None for each in axes]
        if isinstance(found[k], np.ndarray):
            parts = (slice(None) if each is None else slice(int(each)) for each in numbers)
            found[k] = np.ascontiguousarray(found[k][tuple(parts)])
    return tuple(found)


def open_extents(operator: Operator) -> list[list[bool]]:
    """Whether extents of outputs are declared by a bound alone, one list for each output that is no pack."""
    return [[each.bound is not None for each in output.type.shape or ()] for output in operator.outputs]


def marked(outputs: Sequence[Any]) -> list[list[bool]]:
    """Whether only data says the extents of tensors, one list for each tensor."""
    return [[bound_of(extent) is not None for extent in each.shape] for each in flat(outputs)]


def composed(
    operator: Operator,
    find: Library,
    attributes: Mapping[str, Any],
    lengths: Mapping[str, int] | None = None,
    quantized: bool = False,
    left_out: Collection[str] = (),
) -> GraphForm:
    """Look at a graph without arrays; its inputs are as large as they may be, its packs have ``lengths`` tensors.

    Inputs in ``left_out`` are not given.

    All faults of the text are errors, but for indices that are out of range, which the first call tells.
    """
    known_sizes = StandIns()
    arithmetic = Arithmetic("float32", "int64", known_sizes)  # what the call has, arrays tell
    variables: dict[str, Variable] = {}
    tensors: list[TensorValue] = []

    def variable(label: str, kind: str, shape: Pack, span: Span | None) -> TensorValue:
        # The names of a graph that is called without a label begin with its own.
        called = any(isinstance(each, Operator) for each in composition.unlabelled)
        file = f"main.{label}.dat" if called else f"main.{operator.name}.{label}.dat"
        known = Variable(label, kind, tuple(shape), file, span)
        if variables.setdefault(label, known) != known:
            raise ShapeError.at(f"the variable `{label}` has two shapes", span)
        tensors.append(TensorValue(label, kind, shape))
        return tensors[-1]

    composition = Composer(arithmetic, None, find, variable, quantized=quantized)
    evaluator = composition.evaluator()
    values = graph_attributes(operator, evaluator, attributes)
    given = GraphInputs(operator, evaluator, lengths or {}, left_out).stand_ins(known_sizes)
    with sharing():
        outputs = composition.operator(operator, "main", (), values, given, "", None)
    used = {each.name for each in tensors if each.used}
    variables = {label: replace(each, used=label in used) for label, each in variables.items()}
    called = composition.operations - 1  # without the graph itself
    found = (tuple(composition.updates), known_sizes.sizes, composition.quantizations)
    return GraphForm(values, variables, given, outputs, called, *found)
