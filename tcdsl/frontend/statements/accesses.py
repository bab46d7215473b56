"""Subscripts in tensor statements: ``A[i, k]``, ``x[clamp(i - 1)]``, ``table[ids[i], d]``, ``get(x[i - 1], 0.0)``.

An index is affine if it is made of index variables, sizes and integers by ``+``, ``-``, products with sizes and
integers, and ``//`` and ``%`` by positive constants. Any other integer is data: it is checked before memory is
touched.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.arrays.views import view
from tcdsl.frontend.names.name_resolution import Position
from tcdsl.frontend.points.exact_indices import exact_index, is_whole
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.staging.faults import FAULTY, Faulty, shape_note
from tcdsl.frontend.staging.run_time_integers import terms
from tcdsl.frontend.statements.evaluator import Evaluator
from tcdsl.frontend.symbols.graph_tensors import PendingState
from tcdsl.frontend.symbols.recognition import BOUNDARIES, recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, int64_constant, store_value
from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import apply, cast
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, SizeValue, is_affine_index

__all__ = ["access_indices", "axis_nodes", "filled_read", "is_data", "subscript", "target_index"]

_OOB_BOUNDARIES = {"check": Boundary.CHECK, "skip": Boundary.SKIP, "clamp": Boundary.CLAMP}


def axis_nodes(index: ast.expr) -> list[ast.expr]:
    """The nodes of a subscript, one per axis: none for ``t[()]``."""
    return list(index.elts) if isinstance(index, ast.Tuple) else [index]


def subscript(evaluation: Evaluator, node: ast.Subscript, position: Position) -> object:
    """``base[index]``: a cell of a tensor, or what Python gives for a dict, a list or a shape."""
    base = evaluation.evaluate(node.value)
    if isinstance(base, Faulty):
        return FAULTY
    if isinstance(base, PendingState):
        return base
    if isinstance(base, Value | PointValue):
        if not axis_nodes(node.slice):
            return base
        return evaluation.fault(
            ShapeError, "a scalar at a point has no axes to index", node, "give all indices in one pair of brackets"
        )
    tensor = evaluation.attempt(lambda: evaluation.tensor_of(base, node.value), node)
    if isinstance(tensor, Faulty):
        return FAULTY
    if tensor is not None:
        part = _part(evaluation, tensor, node)
        return read(evaluation, tensor, node) if part is None else part
    if isinstance(base, SymbolicNumber | int | float) and not axis_nodes(node.slice):
        return base
    key = evaluation.evaluate(node.slice, Position.INDEX)
    if isinstance(key, Faulty):
        return FAULTY
    if isinstance(node.value, ast.Constant) and isinstance(base, str) and base.isidentifier():
        fact = f'"{base}" declares a parameter, whose cells are read under a name'
        return evaluation.fault(DslSyntaxError, fact, node, f'declare it before: `{base} = "{base}"[n]`')
    if _holds_points(key):
        fact = f"an index variable cannot index a Python {type(base).__name__}"
        hint = "make it an array (np.asarray), or loop over its elements in Python"
        return evaluation.fault(DslSyntaxError, fact, node, hint)
    return evaluation.native(lambda: base[key], node)  # type: ignore[index]


def _part(evaluation: Evaluator, tensor: SymbolicTensor, node: ast.Subscript) -> object:
    # `X[v]` of a matrix, for a number v: its row, as NumPy's indexing gives it. What has index variables is a cell.
    nodes = axis_nodes(node.slice)
    names = {part.id for each in nodes for part in ast.walk(each) if isinstance(part, ast.Name)}
    if len(nodes) >= tensor.rank or not names.isdisjoint(evaluation.index_variables):
        return None
    key = [evaluation.evaluate(each, Position.INDEX) for each in nodes]
    sizes = [
        SymbolicSize(evaluation.environment.session.builder, each.expr)
        if isinstance(each, Value) and _kind(each.expr) == "size"
        else each
        for each in key
    ]
    if not all(isinstance(each, SymbolicSize | int | np.integer) for each in sizes):
        return None
    return evaluation.native(lambda: view(tensor, tuple(sizes)), node)


def _holds_points(key: object) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, Value | PointValue) for part in parts)


def read(evaluation: Evaluator, tensor: SymbolicTensor, node: ast.Subscript, fill: Expr | None = None) -> object:
    """The cell of ``tensor`` that ``node`` names; with ``fill``, plain axes give it where they are out of range."""
    axes = access_indices(evaluation, tensor, node, None if fill is None else Boundary.FILL)
    if axes is None:
        return FAULTY
    boundaries = tuple(boundary for _, boundary in axes)
    fill = fill if Boundary.FILL in boundaries else None
    return tensor.cell([index for index, _ in axes], evaluation.span(node), boundaries, fill)


def access_indices(
    evaluation: Evaluator, tensor: SymbolicTensor, node: ast.Subscript, plain: Boundary | None = None
) -> list[tuple[Expr, Boundary]] | None:
    """An index expression and a boundary for every axis of ``tensor``; ``None`` after a fault.

    Axes that say no boundary have the ``plain`` one, or that which the function says.
    """
    nodes = axis_nodes(node.slice)
    if len(nodes) != tensor.rank:
        given = f"{len(nodes)} {'index' if len(nodes) == 1 else 'indices'}"
        evaluation.fault(
            ShapeError,
            f"`{tensor.label}` has rank {tensor.rank} and is given {given}",
            node,
            "give one index per axis" if tensor.rank else f"read it bare: `{ast.unparse(node.value)}`",
            (shape_note(tensor),),
        )
        return None
    found = [axis_index(evaluation, axis, extent, plain) for axis, extent in zip(nodes, tensor.extents, strict=True)]
    known = [entry for entry in found if entry is not None]
    return known if len(known) == len(found) else None


def axis_index(
    evaluation: Evaluator, node: ast.expr, extent: Expr | None, plain: Boundary | None = None
) -> tuple[Expr, Boundary] | None:
    """The index of one axis and what happens out of range. ``extent`` is ``None`` where it is to be inferred."""
    boundary = _boundary(evaluation, node)
    if boundary is not None:
        assert isinstance(node, ast.Call)
        if len(node.args) != 1 or node.keywords:
            evaluation.fault(DslSyntaxError, f"`{boundary.value}` takes one index", node)
            return None
        index = index_expression(evaluation, node.args[0], None, moves=True)
        return None if index is None else (index, boundary)
    index = index_expression(evaluation, node, extent)
    if index is None:
        return None
    if plain is None:
        plain = _OOB_BOUNDARIES[evaluation.environment.oob] if is_data(index) else Boundary.SKIP
    return index, plain


def target_index(evaluation: Evaluator, node: ast.expr, extent: Expr | None) -> tuple[Expr | None, Boundary | None]:
    """The index of one axis of a target, and the boundary around it, which has moved it into range.

    ``y[clamp(i - 1)]`` is ``y[min(max(i - 1, 0), N - 1)]``, an index that is data: cells meet, and no sets say where.
    """
    boundary = _boundary(evaluation, node)
    entry = axis_index(evaluation, node, extent)
    if entry is None or boundary is None:
        return None if entry is None else entry[0], boundary
    if extent is None:
        evaluation.fault(
            ShapeError,
            f"`{ast.unparse(node)}` moves into an axis whose extent is not known",
            node,
            "declare the target with its extents",
        )
        return None, boundary
    return moved_index(cast(entry[0], INTEGER, evaluation.span(node)), extent, boundary), boundary


def _boundary(evaluation: Evaluator, node: ast.expr) -> Boundary | None:
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if not isinstance(function, ast.Name | ast.Attribute):
        return None
    meaning = recognize(evaluation.quietly(function))
    return Boundary(meaning) if meaning in BOUNDARIES else None


def index_expression(evaluation: Evaluator, node: ast.expr, extent: Expr | None, moves: bool = False) -> Expr | None:
    """``node`` as an index; a negative integer counts from the end of an axis of ``extent``.

    One that a boundary ``moves`` is the position that it says: ``x[clamp(-1)]`` is the first cell.
    """
    if isinstance(node, ast.Slice | ast.Starred) or (isinstance(node, ast.Constant) and node.value in (None, Ellipsis)):
        evaluation.fault(
            DslSyntaxError,
            f"`{ast.unparse(node)}` as an index in a tensor statement",
            node,
            "write one index variable per axis, with a condition for a part of the range; slices make views outside"
            " of tensor statements",
        )
        return None
    if _is_mask(evaluation, node):
        hint = "write the condition in the value, with an index for each axis: `y[i] = a if y[i] > 0.5 else y[i]`"
        evaluation.fault(DslSyntaxError, f"`{ast.unparse(node)}` is a mask, which is no index here", node, hint)
        return None
    evaluation.terms |= dict.fromkeys(map(id, terms(node, evaluation.index_variables)), False)
    given = evaluation.evaluate(node, Position.INDEX)
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        fixed = evaluation.attempt(lambda: _fixed(evaluation, int(given), node, extent, moves), node)
        return None if isinstance(fixed, Faulty) else fixed
    value = evaluation.scalar(given, node)
    if value is None:
        return None
    given_expr = value.expr
    if not is_whole(given_expr, evaluation.definitions):
        hint = "compare in a condition" if value.logical == "bool" else "convert it with int64(...), or divide with //"
        evaluation.fault(DtypeError, f"an index of type {value.logical}", node, hint)
        return None
    integers = evaluation.environment.session.integers
    expr: Expr | None = evaluation.attempt(lambda: exact_index(given_expr, evaluation.definitions, integers), node)
    if expr is None or isinstance(expr, Faulty):
        return None
    if integers.is_alone(expr) and not moves:
        # A negative integer counts from the end.
        return _from_end(evaluation, expr, node, extent) if integers.is_negative(expr) else expr
    if _kind(expr) == "data" and is_affine_index(expr):
        # Made of index variables, but not affine (`i * j`, `i // N`): the type keeps it from being taken for affine.
        return Cast(expr, INTEGER, evaluation.span(node))
    return expr


def _is_mask(evaluation: Evaluator, node: ast.expr) -> bool:
    """Whether ``node`` is a truth value for each cell of whole arrays: ``y > 0.5``, or a name of such an array."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        return _is_mask(evaluation, node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return _is_mask(evaluation, node.left) or _is_mask(evaluation, node.right)
    if isinstance(node, ast.Compare):
        names = [each for each in (node.left, *node.comparators) if isinstance(each, ast.Name)]
        return any(_whole(evaluation, each) is not None for each in names)
    array = _whole(evaluation, node) if isinstance(node, ast.Name) else None
    return array is not None and array.dtype == "bool"


def _whole(evaluation: Evaluator, node: ast.Name) -> SymbolicArray | None:
    if node.id in evaluation.index_variables:
        return None
    given = evaluation.evaluate(node)
    return given if isinstance(given, SymbolicArray) and given.rank > 0 else None


def _fixed(evaluation: Evaluator, number: int, node: ast.expr, extent: Expr | None, moves: bool) -> Expr | None:
    constant = int64_constant(number, evaluation.span(node))
    return constant if number >= 0 or moves else _from_end(evaluation, constant, node, extent)


def _from_end(evaluation: Evaluator, number: Expr, node: ast.expr, extent: Expr | None) -> Expr | None:
    if extent is None:
        shown = number.value if isinstance(number, Constant) else ast.unparse(node)
        evaluation.fault(
            ShapeError,
            f"the index {shown} counts from the end of an axis whose extent is not known",
            node,
            "declare the target with its extents, or write the position itself",
        )
        return None
    return apply("add", extent, number, span=evaluation.span(node))


# -- affine or data ------------------------------------------------------------------------------------------


def is_data(index: Expr) -> bool:
    """Whether an index is data: not made of index variables and sizes in an affine way."""
    return _kind(index) == "data"


def _kind(expr: Expr) -> str:
    # "size" (no index variable), "affine" or "data".
    match expr:
        case Constant() | SizeValue():
            return "size"
        case IndexValue():
            return "affine"
        case Apply(primitive=primitive, arguments=arguments, dtype="int64"):
            return _applied_kind(primitive, arguments)
        case _:
            return "data"


def _applied_kind(primitive: str, arguments: Sequence[Expr]) -> str:
    kinds = {_kind(argument) for argument in arguments}
    if "data" in kinds:
        return "data"
    if kinds == {"size"}:
        return "size" if primitive in ("add", "sub", "neg", "mul", "floor_div", "mod", "max", "min") else "data"
    match primitive:
        case "add" | "sub" | "neg":
            return "affine"
        case "mul" if "size" in kinds:
            return "affine"
        case "floor_div" | "mod":
            divisor = arguments[1]
            return "affine" if isinstance(divisor, Constant) and divisor.value > 0 else "data"
        case _:
            return "data"


# -- fills ---------------------------------------------------------------------------------------------------


def filled_read(evaluation: Evaluator, node: ast.Call) -> object:
    """``get(x[i - 1], 0.0)``: the cell, or the fill value where the index is out of range."""
    cell = node.args[0] if node.args else None
    if len(node.args) != 2 or node.keywords or not isinstance(cell, ast.Subscript):
        return evaluation.fault(
            DslSyntaxError, "`get` takes a cell and a fill value", node, "write `get(x[i - 1], 0.0)`"
        )
    fill_node = node.args[1]
    base = evaluation.evaluate(cell.value)
    if isinstance(base, Faulty):
        return FAULTY
    tensor = evaluation.attempt(lambda: evaluation.tensor_of(base, cell.value), node)
    if tensor is None:
        return evaluation.fault(DtypeError, f"`get` reads tensors, not a {type(base).__name__}", cell)
    fill = evaluation.value(fill_node)
    if fill is None or isinstance(tensor, Faulty):
        return FAULTY
    stored = evaluation.attempt(lambda: store_value(fill, tensor.element_type, evaluation.span(fill_node)), node)
    return FAULTY if isinstance(stored, Faulty) else read(evaluation, tensor, cell, stored)
