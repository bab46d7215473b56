"""What a text declares of the shapes of outputs, constants and variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.frontend.skriptnd.evaluation import MOST_ITEMS, ExpressionEvaluator
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Extent
from tcdsl.frontend.skriptnd.values import Extreme, Pack, TensorValue, shown, type_of

__all__ = ["declared_shape", "declared_tensors"]


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
        if type_of(extent) != "int" or isinstance(extent, Extreme) or not evaluator.arithmetic.is_size(extent):
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
