"""Graphs of constraints between rows, made by chance, and an oracle that tries all small shapes.

The oracle knows the rules for known shapes alone, in terms of tuples, and nothing of variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np

from tcdsl.rows import inference
from tcdsl.rows.inference import Origin, Shape
from tcdsl.rows.spec import AxisSpec, RowSpec, parse_spec
from tests.rows.stated_shapes import equal

__all__ = ["Concrete", "Graph", "Node", "evaluate", "graph", "solutions", "state"]

Choose = Callable[[int], int]
Tuple = tuple[int, ...]
Concrete = tuple[Tuple, Tuple, Tuple]
"""Batch, input, output."""

# A graph is tried with thousands of shapes.
parsed_spec = cache(parse_spec)

SIZES = (1, 2, 3)
ROWS: list[Tuple] = [(), *((a,) for a in SIZES), *product(SIZES, SIZES)]

SPECS = [
    ["ij=>ji", "i=>i", "...=>...", "...|...->...=>...", "i...=>...", "...i=>...", "i->j=>j->i", "ii=>i", "_i=>i"],
    ["ij;jk=>ik", "i;i=>i", "...;...=>...", "...i;i=>...", "o+k;k=>o", "2*o+k;k=>o", "..v..i;..v..=>..v..", "i;j=>ij"],
]
REDUCED = ["...|...->... => ", "1i=>i"]


@dataclass(frozen=True)
class Node:
    """One shape or one statement: ``kind`` with operands by number.

    ``rows`` are those of data or of a parameter (`None` where they are to be found), ``spec`` that of an einsum.
    """

    kind: str
    operands: tuple[int, ...] = ()
    rows: tuple[Tuple | None, Tuple | None, Tuple | None] = (None, None, None)
    spec: str = ""

    @property
    def states(self) -> bool:
        """Whether it only states something, and is no shape."""
        return self.kind == "equal"


@dataclass
class Graph:
    """Nodes, each after its operands."""

    nodes: list[Node] = field(default_factory=list)

    @property
    def shapes(self) -> list[int]:
        """The numbers of the nodes that are shapes."""
        return [place for place, node in enumerate(self.nodes) if not node.states]


def graph(choose: Choose, parameters: int, operations: int) -> Graph:
    """A graph of this size; ``choose(n)`` gives a number less than n."""
    made = Graph()
    for _ in range(parameters):
        given = ROWS[choose(len(ROWS))] if choose(3) == 0 else None
        made.nodes.append(Node("parameter", rows=((), None, given)))
    for _ in range(1 + choose(2)):
        batch, inputs = (ROWS[choose(4)] if choose(3) == 0 else () for _ in range(2))
        made.nodes.append(Node("known", rows=(batch, inputs, ROWS[choose(len(ROWS))])))
    if choose(4) == 0:
        made.nodes.append(Node("number", rows=((), (), (1,))))
    for _ in range(operations):
        shapes = made.shapes
        pick = [shapes[choose(len(shapes))] for _ in range(3)]
        kind = ("pointwise", "compose", "einsum", "einsum", "transpose", "equal")[choose(6)]
        if kind == "einsum":
            count = 1 + choose(2)
            specs = SPECS[count - 1] + (REDUCED if count == 1 else [])
            made.nodes.append(Node(kind, tuple(pick[:count]), spec=specs[choose(len(specs))]))
        else:
            count = {"pointwise": 1 + choose(3), "transpose": 1}.get(kind, 2)
            made.nodes.append(Node(kind, tuple(pick[:count])))
    return made


# -- what the package says


def state(node: Node, shapes: Sequence[Shape | None], name: str) -> Shape | None:
    """Add the node's constraint; the shape of its result, if it has one."""
    origin = Origin()
    operands = [shape for place in node.operands if (shape := shapes[place]) is not None]
    match node.kind:
        case "parameter":
            return inference.parameter(name, node.rows[2], node.rows[1])
        case "known":
            batch, inputs, outputs = (row or () for row in node.rows)
            return inference.known(outputs, inputs, batch, name=name)
        case "number":
            return inference.number(name)
        case "pointwise":
            return inference.pointwise(operands, origin)
        case "compose":
            return inference.compose(operands[0], operands[1], origin)
        case "transpose":
            return inference.transpose(operands[0], origin)
        case "einsum":
            return inference.einsum(node.spec, operands, origin)
        case _:
            equal(operands[0], operands[1], origin)
    return None


# -- what the rules say


def solutions(made: Graph, most: int = 3) -> Iterator[list[Concrete | None]]:
    """All shapes of a graph's nodes for which it holds, with rows of parameters of up to two axes of size up to 3."""
    free = [node for node in made.nodes if node.kind == "parameter"]
    domains = [[node.rows[r]] if node.rows[r] is not None else ROWS for node in free for r in (1, 2)]
    for rows in product(*domains):
        found = evaluate(made, list(zip(rows[::2], rows[1::2], strict=True)))
        if found is not None:
            yield found


def evaluate(made: Graph, parameters: Sequence[tuple[Tuple, Tuple]]) -> list[Concrete | None] | None:
    """The shapes of all nodes, given the input and output rows of the parameters; `None` if the graph does not hold."""
    given = iter(parameters)
    shapes: list[Concrete | None] = []
    for node in made.nodes:
        if node.kind == "parameter":
            inputs, outputs = next(given)
            shapes.append(((), inputs, outputs))
            continue
        if node.kind in ("known", "number"):
            shapes.append(tuple(row or () for row in node.rows))  # type: ignore[arg-type]
            continue
        try:
            shapes.append(_apply(node, [shape for place in node.operands if (shape := shapes[place]) is not None]))
        except ValueError:
            return None
    return shapes


def _apply(node: Node, operands: Sequence[Concrete]) -> Concrete | None:
    left, right = operands[0], operands[-1]
    match node.kind:
        case "pointwise":
            return tuple(np.broadcast_shapes(*rows) for rows in zip(*operands, strict=True))  # type: ignore[return-value]
        case "transpose":
            return left[0], left[2], left[1]
        case "compose":
            _require(left[1] == right[2])
            return np.broadcast_shapes(left[0], right[0]), right[1], left[2]
        case "equal":
            _require(left == right)
        case _:
            return _einsum(node.spec, operands)
    return None


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _einsum(text: str, operands: Sequence[Concrete]) -> Concrete:
    spec = parsed_spec(text)
    names: dict[str, int] = {}
    variables: dict[str, list[Tuple]] = {}
    affine: list[tuple[AxisSpec, int]] = []
    for wanted, shape in zip(spec.operands, operands, strict=True):
        for row, sizes in zip(wanted.rows, shape, strict=True):
            fixed = row or RowSpec()
            extra = len(sizes) - len(fixed.axes)
            _require(extra >= 0)
            head = len(fixed.leading)
            middle = sizes[head : head + extra]
            if fixed.variable is not None:
                variables.setdefault(fixed.variable, []).append(middle)
            for axis, size in zip(fixed.axes, sizes[:head] + sizes[head + extra :], strict=True):
                if axis.name is not None:
                    _require(names.setdefault(axis.name, size) == size)
                elif axis.position is not None:
                    _require(size > axis.position)
                elif not axis.placeholder:
                    affine.append((axis, size))
    for axis, size in affine:
        # The one form in the specs above: c*o + k, where o is found here.
        (step, index), (_, window) = axis.terms
        room = size - 1 - (names[window] - 1)
        _require(room >= -step)
        valid = room // step + 1
        _require(names.setdefault(index, valid) == valid)
    result = []
    for row in spec.result.rows:
        if row is None:
            result.append(())
            continue
        middle = () if row.variable is None else np.broadcast_shapes(*variables.get(row.variable, [()]))
        leading, trailing = ([names[axis.name or ""] for axis in axes] for axes in (row.leading, row.trailing))
        result.append((*leading, *middle, *trailing))
    return result[0], result[1], result[2]
