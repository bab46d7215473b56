"""What a text declares of shapes, and of the attributes and inputs of graphs, with what is given for them.

Extents that the text fixes are constants of the program; the others are sizes of the arrays, which are at most their
bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcdsl.errors import ConfigurationError, DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.arithmetic import StandIns
from tcdsl.frontend.skriptnd.evaluation import MOST_ITEMS, ExpressionEvaluator
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Extent, Identifier, Operator, names_in
from tcdsl.frontend.skriptnd.values import Extreme, Pack, ScalarValue, TensorValue, is_size, shown, type_of
from tcdsl.ir.expressions import SizeValue

__all__ = ["GraphInputs", "InputExtent", "declared_shape", "declared_tensors", "graph_attributes"]


def declared_shape(shape: Sequence[Extent], evaluator: ExpressionEvaluator, what: str, item: int = 0) -> Pack | None:
    """The extents of an output, a constant or a variable; None where an entry is open (``~`` without a bound).

    Of extents that differ in a pack, ``..z``, those of tensor ``item``.
    """
    found: list[Any] = []
    for extent in shape:
        node = extent.value if extent.value is not None else extent.bound
        if node is None:
            return None
        found.extend(_declared_extents(extent, evaluator.value(node), evaluator, what, item))
    for extent in found:
        if type_of(extent) != "int" or isinstance(extent, Extreme) or not is_size(extent):
            raise DtypeError.at(f"{what}: an extent is {shown(extent)}, not an int", shape[0].span)
        if type(extent) is int and extent < 0:
            raise ShapeError.at(
                f"{what}: the extent {extent} is negative", shape[0].span, f"the shape is {shown(Pack(found))}"
            )
    if len(found) > MOST_ITEMS:
        raise ShapeError.at(f"{what}: {len(found)} axes", shape[0].span)
    return Pack.of(found)


def _declared_extents(
    extent: Extent, value: Any, evaluator: ExpressionEvaluator, what: str, item: int
) -> Sequence[Any]:
    # Those of one entry of a shape; none where it is null.
    if extent.spread and isinstance(value, Pack):
        if item >= len(value):
            raise ShapeError.at(f"{what}: {len(value)} extents for more tensors", extent.span)
        value = value[item]
    if extent.repeats is None:
        if isinstance(value, Pack):
            raise DtypeError.at(f"{what}: an extent is a pack", extent.span, "expand it: `s..`")
        return () if value is None else (value,)
    length = extent.repeats.length
    if length is None:
        if value is not None and not isinstance(value, Pack):
            raise DtypeError.at(f"{what}: `..` behind what is no pack", extent.span)
        return value or ()
    count = evaluator.count(length, "the length of a shape")
    if isinstance(value, Pack):
        if count != len(value):
            raise ShapeError.at(f"{what}: {len(value)} extents for {count} axes", extent.span)
        return value
    if value is None and count:
        raise ShapeError.at(f"{what}: an extent is null", extent.span)
    return (value,) * count


def declared_tensors(declaration: Declaration, evaluator: ExpressionEvaluator) -> Any:
    """Outputs of the declared types and shapes; None where these are open."""
    given = declaration.type
    kind = evaluator.scope.generic(given.name) or given.name
    what = f"the output `{declaration.name}`"
    if given.shape is None:
        return None
    if given.pack is None:
        shape = declared_shape(given.shape, evaluator, what)
        return None if shape is None else TensorValue(declaration.name, kind, shape)
    if given.pack.length is None:
        return None
    length = evaluator.count(given.pack.length, f"the length of {what}")
    shapes = [declared_shape(given.shape, evaluator, what, k) for k in range(length)]
    if None in shapes:
        return None
    return Pack.of(TensorValue(declaration.name, kind, shape) for shape in shapes if shape is not None)


def graph_attributes(operator: Operator, evaluator: ExpressionEvaluator, given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a graph, ``given`` ones as values of Python's and defaults."""
    known = [each.name for each in operator.attributes]
    for name in given:
        if name not in known:
            fact = f"the graph `{operator.name}` has no attribute `{name}`"
            raise ConfigurationError.at(fact, operator.name_span, f"its attributes are {', '.join(known) or 'none'}")
    found: dict[str, Any] = {}
    for each in operator.attributes:
        if each.name in given:
            value = _packed(given[each.name], each)
        elif each.default is not None:
            value = evaluator.value(each.default)
        elif each.type.optional:
            value = None
        else:
            fact = f"the attribute `{each.name}` of the graph `{operator.name}` has no value"
            hint = f"give it: `attributes={{'{each.name}': ...}}`, or `graph.configured({each.name}=...)`"
            raise ConfigurationError.at(fact, each.span, hint)
        found[each.name] = evaluator.scope.names[each.name] = value
    return found


def _packed(value: Any, declaration: Declaration) -> Any:
    import numpy as np

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return Pack.of(_packed(each, declaration) for each in value)
    if value is not None and not isinstance(value, bool | int | float | str):
        fact = f"the attribute `{declaration.name}` is of type {type(value).__name__}"
        raise ConfigurationError.at(
            fact, declaration.span, "attributes are numbers, texts, truth values, or lists of them"
        )
    if isinstance(value, int) and not isinstance(value, bool) and declaration.type.name == "real":
        return float(value)
    return value


@dataclass(frozen=True, slots=True)
class InputExtent:
    """One axis of an input: a fixed ``extent``, or the ``name`` of a size, if it has one, with its ``bound``."""

    extent: int | None
    name: str
    bound: int | None


@dataclass(slots=True)
class GraphInputs:
    """``GraphInputs(operator, evaluator)``: the evaluator knows the attributes."""

    operator: Operator
    evaluator: ExpressionEvaluator

    def length(self, declaration: Declaration, given: int | None = None) -> int | None:
        """How many tensors an input has: ``given`` ones, else as many as the text says or allows; None if no pack."""
        pack = declaration.type.pack
        if pack is None:
            return None
        names = self.evaluator.scope.names
        node = pack.length
        if node is not None and not self._is_open(node):
            wanted = self.evaluator.count(node, f"the length of `{declaration.name}`")
            if given is not None and given != wanted:
                raise ShapeError.at(
                    f"`{declaration.name}` has {wanted} tensors, and {given} are given", declaration.span
                )
            return wanted
        bound = None if pack.bound is None else self.evaluator.count(pack.bound, f"the bound of `{declaration.name}`")
        if given is not None and bound is not None and given > bound:
            raise ShapeError.at(
                f"`{declaration.name}` has at most {bound} tensors, and {given} are given", declaration.span
            )
        found = given if given is not None else bound
        if found is None:
            fact = f"the length of the pack `{declaration.name}` has no bound"
            raise DslSyntaxError.at(fact, declaration.span, "write `..(n|8)` for at most 8")
        if isinstance(node, Identifier):
            names[node.name] = found
        return found

    def _is_open(self, node: Any) -> bool:
        return any(not self.evaluator.scope.knows(name) for name in names_in(node))

    def extents(self, declaration: Declaration) -> list[InputExtent] | None:
        """The axes of an input, or of each tensor of a pack; None where the text leaves the shape out."""
        shape = declaration.type.shape
        if shape is None:
            return None
        found: list[InputExtent] = []
        for extent in shape:
            found.extend(self._axes(extent, declaration))
        return found

    def _axes(self, extent: Extent, declaration: Declaration) -> Iterator[InputExtent]:
        evaluator = self.evaluator
        bound = None
        if extent.bound is not None:
            value = evaluator.value(extent.bound)
            bounds = list(value) if isinstance(value, Pack) else [value]
            if not all(type(each) is int and each >= 0 for each in bounds):
                raise DtypeError.at("a bound that is no int", extent.span)
            bound = bounds[0]
        count = 1
        if extent.repeats is not None and extent.repeats.length is not None:
            count = evaluator.count(extent.repeats.length, "the number of axes")
        node = extent.value
        if node is None or self._is_open(node):
            if node is not None and not isinstance(node, Identifier):
                raise DslSyntaxError.at(
                    "an extent of a graph's input is a name, a number, or made of attributes", extent.span
                )
            name = node.name if isinstance(node, Identifier) else ""
            for axis in range(count):
                yield InputExtent(None, name and (f"{name}.{axis}" if extent.repeats is not None else name), bound)
            return
        value = evaluator.value(node)
        if extent.repeats is not None and isinstance(value, Pack):
            for each in value:
                yield InputExtent(each, "", None)
            return
        if type(value) is not int or value < 0:
            if isinstance(value, ScalarValue):
                yield InputExtent(None, "", bound)
                return
            raise ShapeError.at(
                f"an extent of `{declaration.name}` is of type {type_of(value) or 'null'}, or negative", extent.span
            )
        for _ in range(count):
            yield InputExtent(value, "", None)

    def stand_ins(self, known: StandIns) -> list[Any]:
        """Tensors for all inputs, whose sizes are in ``known``."""
        found: list[Any] = []
        sizes: dict[str, Any] = {}
        for each in self.operator.inputs:
            length = self.length(each)
            made = []
            for k in range(1 if length is None else length):
                axes = self.extents(each) or []
                shape = [self._stand_in(axis, f"{each.name}{k}_{n}", each, sizes, known) for n, axis in enumerate(axes)]
                made.append(TensorValue(each.name, each.type.name, Pack.of(shape)))
            self.bind(each, sizes)
            found.append(made[0] if length is None else Pack.of(made))
        return found

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

    def bind(self, declaration: Declaration, sizes: Mapping[str, Any]) -> None:
        """Know the sizes that an input has bound: extents of later inputs may be made of them."""
        for extent in declaration.type.shape or ():
            if isinstance(extent.value, Identifier):
                name = extent.value.name
                if name in sizes:
                    self.evaluator.scope.names.setdefault(name, sizes[name])
