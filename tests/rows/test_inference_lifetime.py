"""What shape inference keeps alive, what it undoes, and what it costs."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from tcdsl.errors import ShapeError
from tcdsl.rows.inference import (
    Origin,
    Shape,
    close,
    compose,
    einsum,
    keeping,
    known,
    number,
    parameter,
    pointwise,
)
from tcdsl.rows.inference.closing import OpenVariables
from tcdsl.rows.inference.equations.affine_axes import ReadAxis, WrittenAxis
from tcdsl.rows.inference.equations.axis_joins import AxisJoin
from tcdsl.rows.inference.equations.row_equations import RowEquation
from tcdsl.rows.inference.equations.row_joins import RowJoin
from tcdsl.rows.inference.variables.row import Dimension, RowVariable
from tcdsl.rows.inference.variables.transaction import ShapeConstraint
from tests.rows.stated_shapes import equal, unknown

HERE = Origin()
KINDS: list[type[ShapeConstraint]] = [RowJoin, AxisJoin, RowEquation, ReadAxis, WrittenAxis]


def alive(*kinds: type[object]) -> int:
    gc.collect()
    return alive_now(*kinds)


def alive_now(*kinds: type[object]) -> int:
    # Not isinstance: other packages' objects may act when they are asked for their class.
    return sum(issubclass(type(found), kinds) for found in gc.get_objects())


def test_constraints_of_dropped_results_are_collected() -> None:
    w, x = parameter("w"), known((2,))
    before = alive(ShapeConstraint, RowVariable, Dimension)
    for _ in range(50):
        pointwise([compose(w, x, HERE), parameter("b"), number()], HERE)
    # Some watchers that are gone may still have entries, but nothing that they stood for is left.
    assert alive(ShapeConstraint, RowVariable, Dimension) - before < 5


def test_watchers_that_are_gone_are_left_out() -> None:
    w, x = parameter("w"), known((2,))
    for _ in range(500):
        pointwise([compose(w, x, HERE), parameter("b")], HERE)
    gc.collect()
    pointwise([compose(w, x, HERE), parameter("b")], HERE)
    variable = w.output.resolved.variable
    assert variable is not None
    # They are looked through at powers of two, from 16.
    assert len(variable.watchers) <= 17


def test_nothing_waits_once_shapes_are_known() -> None:
    h = known((4,), batch=(10,))
    shapes = []
    before = alive(ShapeConstraint)
    for layer in range(5):
        w, b = parameter(f"w{layer}"), parameter(f"b{layer}", (4,))
        h = pointwise([compose(w, h, HERE), b, number()], HERE)
        shapes += [w, b, h]
    assert alive(ShapeConstraint) > before
    close(shapes, HERE)
    assert alive(ShapeConstraint) == before


def test_intermediate_shapes_need_not_be_held() -> None:
    w, b, v = parameter("w"), parameter("b", (16,)), parameter("v", (3,))
    y = compose(v, pointwise([compose(w, known((2,)), HERE), b], HERE), HERE)
    gc.collect()
    close([w, v, y], HERE)
    assert [str(w), str(v), str(y)] == ["2 -> 16", "16 -> 3", "3"]


def test_what_a_dropped_result_said_is_dropped_unless_it_is_kept() -> None:
    def stated() -> Shape:
        w = parameter("w")
        pointwise([number(), pointwise([compose(w, known((2,)), HERE), known((16,))], HERE)], HERE)
        return w

    with keeping():
        w = stated()
    # Another use binds the row that the first one speaks of to one with more axes.
    einsum("...i=>...", [w], HERE)
    gc.collect()
    close([w], HERE)
    assert str(w) == "2 -> 16"
    with pytest.raises(ShapeError, match="`w` has output axes that nothing determines"):
        close([stated()], HERE)


def test_what_is_reduced_has_to_fit() -> None:
    p = parameter("p")
    einsum("...;...=>", [p, known((2, 3))], HERE)
    gc.collect()
    close([p], HERE)
    assert str(p) == "2, 3"


def test_results_that_are_dropped_are_gone_without_the_garbage_collector() -> None:
    w, x = parameter("w"), known((2,))
    gc.collect()
    gc.disable()
    try:
        before = alive_now(ShapeConstraint, RowVariable, Dimension)
        for _ in range(50):
            y = pointwise([compose(w, x, HERE), known((3,)), number()], HERE)
            z = pointwise([y, known((4, 1))], HERE)
            einsum("...i;ij=>...j", [z, known((3, 7))], HERE)
            del y, z
        after = alive_now(ShapeConstraint, RowVariable, Dimension)
    finally:
        gc.enable()
    assert after - before < 5


# -- undoing


def everything(shapes: list[Shape]) -> list[object]:
    """All that there is to know of what is open, with the identities of its parts."""
    scope = OpenVariables(shapes)
    fields = [slot for slot in Dimension.__slots__ if slot not in ("__weakref__", "watchers")]
    return [
        [str(shape) for shape in shapes],
        [(id(v), v.binding, v.owners, v.least, v.fallback, list(v.watchers)) for v in scope.rows],
        [(id(d), [getattr(d, field) for field in fields], list(d.watchers)) for d in scope.axes],
        [(id(c), c.done, c.watched, getattr(c, "operands", ()), getattr(c, "joins", ())) for c in scope.constraints],
    ]


def test_a_contradiction_changes_nothing() -> None:
    w, b, x = parameter("w"), parameter("b", (16,)), known((2,))
    y = pointwise([compose(w, x, HERE), b], HERE)
    u = unknown("u")
    t = einsum("...i2 => ...i", [u], HERE)
    shapes = [w, b, y, u, t]
    before = everything(shapes)
    wrong = [
        lambda: pointwise([y, known((17,))], HERE),
        lambda: compose(w, known((3,)), HERE),
        lambda: equal(y, known((2, 3, 17)), HERE),
        lambda: einsum("ij;jk=>ik", [y, known((3, 4))], HERE),
        lambda: close([*shapes, parameter("v")], HERE),
    ]
    for attempt in wrong:
        with pytest.raises(ShapeError):
            attempt()
        assert everything(shapes) == before


# -- cost


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each kind of constraint is looked at."""
    counted: Counter[str] = Counter()

    def count(kind: type[ShapeConstraint]) -> None:
        narrow = kind.narrow

        def counting(self: ShapeConstraint, transaction: object) -> None:
            counted[kind.__name__] += 1
            narrow(self, transaction)  # type: ignore[arg-type]

        monkeypatch.setattr(kind, "narrow", counting)

    for kind in KINDS:
        if "narrow" in vars(kind):
            count(kind)
    return counted


def chain(length: int) -> list[Shape]:
    """Layers with parameters of their own, and one, a, that all of them share."""
    h, a = known((16,), batch=(100,)), parameter("a")
    shapes = [a]
    for layer in range(length):
        w, b = parameter(f"w{layer}"), parameter(f"b{layer}", (16,))
        h = pointwise([compose(w, h, HERE), b], HERE)
        h = pointwise([number(), pointwise([h, a], HERE)], HERE)
        shapes += [w, b, h]
    return shapes


def test_the_cost_of_an_operation_does_not_depend_on_how_many_there_were(steps: Counter[str]) -> None:
    per_layer = []
    for length in (50, 500):
        steps.clear()
        shapes = chain(length)
        built = sum(steps.values()) / length
        close(shapes, HERE)
        per_layer.append((built, sum(steps.values()) / length))
        assert str(shapes[-1]) == "100 | 16"
        assert str(shapes[0]) == "16"
    assert per_layer[1][0] <= per_layer[0][0] + 1
    assert per_layer[1][1] <= per_layer[0][1] + 1


def test_a_chain_of_data_makes_no_constraints() -> None:
    h = known((3,), batch=(4,))
    before = alive(ShapeConstraint, RowVariable)
    results = []
    for _ in range(2000):
        h = pointwise([h, known((1,)), number()], HERE)
        results.append(h)
    assert alive(ShapeConstraint, RowVariable) == before
    assert str(h) == "4 | 3"
