"""Shape inference against NumPy's broadcasting, against all small shapes, and against the order of statements."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcdsl.errors import ShapeError
from tcdsl.rows.inference import (
    Origin,
    Shape,
    close,
    compose,
    einsum,
    known,
    number,
    parameter,
    pointwise,
    transpose,
)
from tests.rows.inference_oracle import Concrete, Graph, evaluate, graph, solutions, state
from tests.rows.stated_shapes import equal, unknown

HERE = Origin()
ROW = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3).map(tuple)
SHAPE = st.tuples(ROW, ROW, ROW)


def sizes_of(shape: Shape) -> Concrete:
    return shape.batch.sizes, shape.input.sizes, shape.output.sizes


@given(st.lists(SHAPE, min_size=1, max_size=4))
def test_pointwise_is_broadcasting_of_each_row(shapes: list[Concrete]) -> None:
    operands = [known(outputs, inputs, batch) for batch, inputs, outputs in shapes]
    try:
        expected = [np.broadcast_shapes(*rows) for rows in zip(*shapes, strict=True)]
    except ValueError:
        with pytest.raises(ShapeError):
            pointwise(operands, HERE)
        return
    assert list(sizes_of(pointwise(operands, HERE))) == expected


@given(st.lists(SHAPE, min_size=1, max_size=3), st.data())
def test_pointwise_is_broadcasting_when_the_operands_are_found_afterwards(
    shapes: list[Concrete], data: st.DataObject
) -> None:
    operands = [unknown(f"u{place}") for place in range(len(shapes))]
    result = pointwise(operands, HERE)
    try:
        expected = [np.broadcast_shapes(*rows) for rows in zip(*shapes, strict=True)]
    except ValueError:
        expected = None
    order = data.draw(st.permutations(range(len(shapes))))
    try:
        for place in order:
            batch, inputs, outputs = shapes[place]
            equal(known(outputs, inputs, batch), operands[place], HERE)
    except ShapeError:
        assert expected is None
        return
    assert expected is not None
    # Nothing needs to be closed: the result of known operands is known.
    assert list(sizes_of(result)) == expected


def whole(made: Graph) -> tuple[list[Shape | None], ShapeError | None]:
    """The shapes of all nodes, closed, or the fault."""
    shapes: list[Shape | None] = []
    try:
        for place, node in enumerate(made.nodes):
            shapes.append(state(node, shapes, f"n{place}"))
        close([shape for shape in shapes if shape is not None], HERE)
    except ShapeError as error:
        return shapes, error
    return shapes, None


def check(made: Graph) -> None:
    """What inference finds are shapes for which the graph holds; what it calls contradictory does not hold."""
    shapes, error = whole(made)
    if error is None:
        found = [None if shape is None else sizes_of(shape) for shape in shapes]
        given = [(s[1], s[2]) for s, node in zip(found, made.nodes, strict=True) if node.kind == "parameter" and s]
        assert evaluate(made, given) == found
    elif len(shapes) < len(made.nodes):
        # The fault was found when the last of these was stated.
        stated = Graph(made.nodes[: len(shapes) + 1])
        assert not any(solutions(stated)), error
    elif "nothing determines" not in str(error):
        assert not any(solutions(made)), error


@settings(deadline=2000)
@given(st.data())
def test_against_all_small_shapes(data: st.DataObject) -> None:
    check(graph(lambda n: data.draw(st.integers(0, n - 1)), 1, data.draw(st.integers(1, 6))))


@pytest.mark.parametrize("start", range(0, 90, 15))
def test_against_all_small_shapes_by_chance(start: int) -> None:
    for seed in range(start, start + 15):
        check(graph(Random(seed).randrange, 1 + (seed % 15 == 0), 5))


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_against_all_small_shapes_at_length(start: int) -> None:
    for seed in range(start, start + 100):
        check(graph(Random(seed).randrange, 1 + seed % 2, 6))


# -- the order of statements


def shuffled(made: Graph, random: Random) -> tuple[Graph, list[int]]:
    """The same graph with its nodes in another order, each after its operands, and where each is now."""
    waiting = list(range(len(made.nodes)))
    place: dict[int, int] = {}
    nodes = []
    while waiting:
        ready = [node for node in waiting if all(operand in place for operand in made.nodes[node].operands)]
        picked = random.choice(ready)
        waiting.remove(picked)
        place[picked] = len(nodes)
        old = made.nodes[picked]
        nodes.append(type(old)(old.kind, tuple(place[operand] for operand in old.operands), old.rows, old.spec))
    return Graph(nodes), [place[node] for node in range(len(made.nodes))]


@pytest.mark.parametrize("start", range(0, 150, 50))
def test_the_order_of_statements_does_not_matter(start: int) -> None:
    for seed in range(start, start + 50):
        random = Random(seed)
        made = graph(random.randrange, 2, 6)
        shapes, error = whole(made)
        for _ in range(4):
            other, places = shuffled(made, random)
            again, fault = whole(other)
            assert (error is None) == (fault is None), (seed, error, fault)
            if error is None:
                assert [str(shape) for shape in shapes] == [str(again[place]) for place in places], seed


# -- termination

SPECS = [
    "o+k;k=>o", "o+k;o=>k", "2*o+3*k;k=>o", "..v..i=>i..v..", "i..v..=>..v..i", "...i;i...=>...", "ij=>i", "i=>ii",
    "...|...->...=>...", "i=>2*i", "i=>i0", "i2=>i", "4-i=>i", "..v..;..v..|..v..->..v..=>..v..", "i+1=>i", "_i=>i_",
    "a...b=>b...a", "i,=>i,i+2", "j+i;i;j=>ij",
]  # fmt: skip


def random_statements(choose: Callable[[int], int], count: int) -> None:
    """Constraints between few shapes, most of them open, with many cycles, and contradictions that are passed over."""
    pool = [parameter("p"), parameter("q", (2,)), unknown("u"), unknown("v"), known((5,)), known((2,)), number()]

    def pick() -> Shape:
        return pool[choose(len(pool))]

    for _ in range(count):
        kind = choose(8)
        try:
            if kind < 3:
                spec = SPECS[choose(len(SPECS))]
                operands = [pick() for _ in range(1 + spec.count(";"))]
                pool.append(einsum(spec, operands, HERE))
            elif kind == 3:
                pool.append(pointwise([pick() for _ in range(1 + choose(3))], HERE))
            elif kind == 4:
                pool.append(compose(pick(), pick(), HERE))
            elif kind == 5:
                equal(pick(), pick(), HERE)
            elif kind == 6:
                equal(pick(), transpose(pick(), HERE), HERE)
            else:
                close([pick()], HERE)
        except ShapeError:
            continue
    try:
        close(pool, HERE)
    except ShapeError:
        return
    assert all(shape.is_known for shape in pool)


@settings(deadline=2000, max_examples=100)
@given(st.data())
def test_inference_ends(data: st.DataObject) -> None:
    random_statements(lambda n: data.draw(st.integers(0, n - 1)), 12)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_inference_ends_by_chance(start: int) -> None:
    for seed in range(start, start + 20):
        random_statements(Random(seed).randrange, 25)
