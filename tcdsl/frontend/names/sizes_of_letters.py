"""What the index variables of a statement say about sizes of parameters that nothing has said yet.

::

    k = param("k", i=(3, 3, None), o=count)
    y[n, h, w, o] += x[n, h + p, w + q, c] * k[o, p, q, c]         the last axis of k is as long as that of x

An index variable that stands bare on several axes finds equal extents, in statements, local definitions and functions
that these call. So an axis of a parameter is as long as another axis with the same variable, of an array, of a tensor
or of a target with extents.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import IndexName, index_meaning, value_meaning
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray
from tcdsl.ir.expressions import Expr, IndexValue

__all__ = ["relate_axes"]

# An index variable, with the generator or the reduction that binds it, if one does.
_Variable = tuple[str, int]
_Place = tuple[SymbolicArray | GraphTensor | Sequence[Expr], tuple[_Variable | None, ...]]


def relate_axes(
    values: Sequence[ast.expr],
    environment: FunctionScope,
    target: Sequence[ast.expr] = (),
    extents: Sequence[Expr] | None = None,
) -> None:
    """Say how long the axes of tensors of unknown shape are, where index variables of a statement say so.

    ``values`` are its value and its conditions, ``target`` the index list, of a target with ``extents`` if these are
    known. A local definition has values alone, and so has what a function gives at a point.
    """
    graph = environment.session.context.graph
    if graph is None:
        return
    letters = _Letters(environment, target)
    places: list[_Place] = [place for each in values for place in letters.places(each, {}, 0)]
    unknown = [array for array, _ in places if isinstance(array, GraphTensor) and not array.rows.is_known]
    if not unknown:
        return
    if extents is not None and len(extents) == len(target):
        places.append((extents, tuple(letters.variable(index, {}, 0) for index in target)))
    # Where sizes contradict each other, inference of ranges says so.
    known: dict[_Variable, int] = {}
    for array, variables in places:
        for variable, size in zip(variables, _sizes(array, len(variables), environment.session), strict=False):
            if variable is not None and size is not None:
                known.setdefault(variable, size)
    for array, variables in places:
        if isinstance(array, GraphTensor) and not array.rows.is_known:
            graph.axes_are(array, [None if each is None else known.get(each) for each in variables])


class _Letters:
    # What the accesses of a statement are indexed with.
    def __init__(self, environment: FunctionScope, target: Sequence[ast.expr]) -> None:
        self._environment = environment
        self._on_target = {node.id for each in target for node in ast.walk(each) if isinstance(node, ast.Name)}

    def places(self, node: ast.AST, bound: dict[str, int], around: int) -> Iterator[_Place]:
        """The accesses under ``node``, in a reduction ``around``; ``bound`` are the variables of generators."""
        match node:
            case ast.GeneratorExp(generators=clauses) | ast.ListComp(generators=clauses):
                names = [each for clause in clauses for each in ast.walk(clause.target) if isinstance(each, ast.Name)]
                bound = {**bound, **{each.id: id(node) for each in names}}
            case ast.Call(func=ast.Name(id=name)) if not around:
                around = id(node) if recognize(value_meaning(name, self._environment)) in REDUCTIONS else 0
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name not in bound:
                array = self._environment.value_of(name)
                if isinstance(array, GraphTensor | SymbolicArray):
                    axes = index.elts if isinstance(index, ast.Tuple) else [index]
                    yield array, tuple(self.variable(each, bound, around) for each in axes)
        for child in ast.iter_child_nodes(node):
            yield from self.places(child, bound, around)

    def variable(self, index: ast.expr, bound: dict[str, int], around: int) -> _Variable | None:
        """The index variable that ``index`` is."""
        match index:
            case ast.Name(id=name) if name in bound:
                return name, bound[name]
            case ast.Name(id=name) if isinstance(point := self._environment.own(name), PointValue):
                given = point.value.expr
                return (f"={given.name}", 0) if isinstance(given, IndexValue) else None
            case ast.Name(id=name) if isinstance(index_meaning(name, self._environment), IndexName):
                return name, 0 if name in self._on_target else around
        return None


def _sizes(array: SymbolicArray | GraphTensor | Sequence[Expr], rank: int, session: Session) -> Sequence[int | None]:
    if isinstance(array, GraphTensor):
        graph = session.context.graph
        return () if graph is None else graph.axis_sizes(array, rank)
    return [_evaluated(each, session) for each in (array.extents if isinstance(array, SymbolicArray) else array)]


def _evaluated(extent: Expr, session: Session) -> int | None:
    try:
        return session.evaluate(extent)
    except (KeyError, ZeroDivisionError):
        return None  # nobody calls what is staged, or it is known later
