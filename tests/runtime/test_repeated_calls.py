"""The short way of a repeated call is taken only where it gives what the long way gives."""

from __future__ import annotations

import sys
from enum import StrEnum
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.targets.cache.store import ProgramStore

x = np.arange(6.0)
scale = 2.0
weights = [1.0, 2.0]
table = np.arange(6.0)
settings = SimpleNamespace(factor=2.0)


class Mode(StrEnum):
    """Equal to its text, and of another type."""

    DOUBLE = "double"


@op
def scaled(x):
    return scale * x


@op
def weighted(x):
    return x * weights[1]


@op
def strided(x, step):
    y[i] = x[step * i]
    return y


@op
def every(x, *, step):
    y[i] = x[step * i]
    return y


@op
def chosen(x, *, mode="double"):
    return x * 2 if mode == "double" else x * 3


@op
def raised(x, power=2.0, *, factor=0.5):
    return factor * x**power


@op
def exact(x, *, mode):
    return x * 2 if isinstance(mode, Mode) else x * 3


@op
def added(a, b):
    return a + b


@op
def moved(x, by):
    y = output(*x.shape)
    y[i] = get(x[i + by], 0.0)
    return y


@op
def made(x, size):
    y = output(size)
    y[i] = x[wrap(i)]
    return y


@op
def maybe_added(a, b=None):
    return a * 1.0 if b is None else a + b


@cd
def shifted(p, g, *, rate):
    p -= rate * g


@op
def weighing(x):
    return x * table


@op
def total(x):
    s[()] += x[i]
    return s


@op
def as_long(x):
    y[i] = x[0] + (table[i] - table[i] if x.shape[0] < 0 else 0.0)
    return y


@op
def times(x, factor):
    return x * factor


@op
def attributed(x):
    return x * settings.factor


def calls(f: Any, *given: tuple[tuple[Any, ...], dict[str, Any], Any]) -> None:
    """Each call four times, in turn, gives what is expected, twice."""
    for arguments, keywords, expected in (*given, *given):
        for _ in range(4):  # the last two by the shortest way
            found = f(*arguments, **keywords)
            assert found.dtype == np.asarray(expected).dtype
            np.testing.assert_array_equal(found, expected)


def passed_by(call: Any) -> list[str]:
    """The Python functions that ``call()`` passes."""
    passed: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            passed.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return passed


def python_calls(call: Any) -> int:
    """How many Python functions ``call()`` passes."""
    return len(passed_by(call))


def test_a_repeated_call_passes_few_python_functions() -> None:
    table = np.ones((6, 6))
    for call, most in (
        (lambda: added(x, x), 6),
        (lambda: added(table[0], table[:, 1]), 7),
        (lambda: shifted(table[:, 0], table[:, 1], rate=0.5), 9),
        (lambda: times(x, 3), 9),
        (lambda: weighing(x), 12),
        (lambda: added(x, x, out=table[5]), 10),
        (lambda: times(x, 3, out=(table[5],)), 12),
    ):
        for _ in range(4):
            call()
        assert python_calls(call) <= most


def test_a_new_shape_passes_few_python_functions() -> None:
    added.cache_clear()  # kinds of calls that other tests have made are looked at first
    for n in (3, 4):
        added(np.ones(n), np.ones(n))
    # The median: objects of other tests may be finalized during any of them. A call of another kind, which is looked at
    # first, costs five functions, and so does to look whether a nest waits that these sizes need.
    vectors = [np.ones(n) for n in range(700, 720)]
    assert median(python_calls(lambda x=x: added(x, x)) for x in vectors) <= 31


def test_many_shapes_and_kinds_of_calls_are_remembered() -> None:
    vectors = [np.arange(float(n)) for n in range(1, 600)]
    kinds = [np.arange(4.0), np.arange(4.0)[::2], np.arange(4, dtype=np.int8), np.ones((2, 2)), np.arange(4.0)[::-1]]
    for _ in range(2):
        for vector in (*vectors, *kinds):
            np.testing.assert_array_equal(added(vector, vector), 2 * vector)
    passed = [python_calls(lambda each=each: added(each, each)) for each in (*vectors, *kinds)]
    assert sorted(passed)[-10] <= 10
    # With the same shapes and other types the first kind of call that is tried may be another one.
    assert max(passed) <= 40


def test_integers_that_are_constants_of_the_program() -> None:
    calls(strided, ((x, 2), {}, x[::2]), ((x, 3), {}, x[::3]))
    calls(every, ((x,), {"step": 2}, x[::2]), ((x,), {"step": 3}, x[::3]))


def test_keywords_that_are_left_out() -> None:
    calls(chosen, ((x,), {}, 2 * x), ((x,), {"mode": "triple"}, 3 * x), ((x,), {"mode": "double"}, 2 * x))
    calls(raised, ((x,), {}, 0.5 * x**2), ((x, 3.0), {}, 0.5 * x**3), ((x,), {"factor": 2.0}, 2 * x**2))


def test_positional_arguments_by_keyword() -> None:
    calls(times, *(((x,), {"factor": number}, x * number) for number in (2, 5, 2.5, 3.5)))
    calls(times, ((), {"x": x, "factor": 2.0}, 2 * x), ((), {"x": x + 1, "factor": 2.0}, 2 * x + 2))
    calls(raised, ((x,), {"power": 3.0, "factor": 1.0}, x**3), ((x,), {"power": 2.0, "factor": 2.0}, 2 * x**2))
    calls(strided, *(((x,), {"step": step}, x[::step]) for step in (1, 2, 3)))
    calls(moved, *(((x,), {"by": by}, np.r_[x[by:], np.zeros(by)]) for by in (0, 1, 4)))
    calls(made, *(((x,), {"size": size}, np.resize(x, size)) for size in (3, 20, 40)))
    calls(maybe_added, ((x,), {"b": None}, x), ((x,), {"b": x}, 2 * x), ((x,), {"b": 3.0}, x + 3.0), ((x,), {}, x))


def test_configuration_that_is_equal_and_of_another_type() -> None:
    calls(exact, ((x,), {"mode": Mode.DOUBLE}, 2 * x), ((x,), {"mode": "double"}, 3 * x))


def test_other_types_and_ranks() -> None:
    single, whole, table = x.astype(np.float32), np.arange(6), x.reshape(2, 3)
    calls(added, ((x, x), {}, 2 * x), ((single, single), {}, 2 * single), ((table, table), {}, 2 * table))
    calls(times, ((whole, 2), {}, 2 * whole), ((whole, 2.0), {}, 2.0 * whole), ((whole, True), {}, whole))


def test_extents_that_broadcast() -> None:
    one = x[:1] + 1
    calls(added, ((x, x), {}, 2 * x), ((x, one), {}, x + 1), ((one, x), {}, x + 1), ((one, one), {}, 2 * one))


def test_memory_of_another_layout() -> None:
    first, second = np.arange(12.0).reshape(3, 4)[:, 1:3].T
    calls(added, ((x, x), {}, 2 * x), ((x[::-1], x), {}, np.full(6, 5.0)), ((first, second), {}, [3.0, 11.0, 19.0]))


def test_surroundings_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 2.0

    @op
    def closed(x):
        return factor * x

    for value in (2.0, 3.0, 2.0):
        factor = value
        monkeypatch.setitem(globals(), "scale", value)
        weights[1] = value
        monkeypatch.setattr(settings, "factor", value)
        for f in (closed, scaled, weighted, attributed):
            calls(f, ((x,), {}, value * x))


def test_wrong_calls_after_right_ones() -> None:
    calls(added, ((x, x), {}, 2 * x))
    for arguments, keywords in (((x,), {}), ((x, x, x), {}), ((x, x), {"c": 1})):
        with pytest.raises(tc.ConfigurationError):
            added(*arguments, **keywords)
    with pytest.raises(tc.ShapeError):
        added(x, x[:4])
    with pytest.raises(tc.DtypeError):
        added(x, x.astype(complex))
    calls(added, ((x, x), {}, 2 * x))


def refused(p: np.ndarray, g: np.ndarray, message: str) -> None:
    """The call fails, says why, and changes nothing."""
    before = p.copy(), g.copy()
    with pytest.raises(tc.TcdslError, match=message):
        shifted(p, g, rate=1.0)
    np.testing.assert_array_equal(p, before[0])
    np.testing.assert_array_equal(g, before[1])


def test_a_remembered_call_refuses_what_a_first_one_does() -> None:
    memory = np.arange(24.0)
    for p, g in ((np.zeros(4), np.ones(4)), (np.zeros(8)[::2], np.ones(8)[::2]), (np.zeros((2, 3)), np.ones((2, 3)))):
        for _ in range(3):
            shifted(p, g, rate=1.0)
        np.testing.assert_array_equal(p, -3.0)
    frozen, many = np.zeros(4), np.broadcast_to(np.zeros(1), (4,))
    frozen.flags.writeable = False
    lapped = np.lib.stride_tricks.as_strided(memory, (4,), (0,))
    rows = np.lib.stride_tricks.as_strided(memory, (2, 3), (8, 8))
    refused(frozen, memory[:4], "writes to `p`, but the array is read-only")
    refused(many, memory[:4], "read-only")
    refused(lapped, np.ones(4), "some of its cells share memory")
    refused(rows, np.ones((2, 3)), "some of its cells share memory")
    refused(memory[:4], memory[3:7], "writes to `p`, which shares memory with `g`")
    refused(memory[0:8:2], memory[2:10:2], "writes to `p`, which shares memory with `g`")
    refused(memory[:4], memory[3::-1], "writes to `p`, which shares memory with `g`")
    refused(memory[:6].reshape(2, 3), memory[5:11].reshape(2, 3), "shares memory")
    refused(memory[:4], np.ones(5), "`p` has 4|has 4|4 .* 5")
    refused(memory[:4], np.ones(4, complex), "element type complex128")
    refused(memory[:4], np.ones(4, ">f8"), "byte order")
    refused(memory[:4].astype(np.int64), np.ones(4), "float64")


def test_a_remembered_call_stores_into_out_only_what_a_first_one_would() -> None:
    first, frozen, memory = np.arange(4.0), np.zeros(4), np.zeros(12)
    frozen.flags.writeable = False
    for f, arguments in ((added, (first, first)), (times, (first, 2.0))):
        for out in (np.zeros(4), (np.zeros(4),), [np.zeros(4)]):
            for _ in range(2):
                assert f(*arguments, out=out) is out
                np.testing.assert_array_equal(np.ravel(out), 2 * first)
        for out, message in (
            (first, "out shares memory with another array"),
            (first.view(), "out shares memory with another array"),
            (frozen, "out must be writable"),
            (memory[::3], "out must be writable and row-major"),
            (np.zeros(5), r"out is float64\[5\]"),
            (np.zeros((4, 1)), r"out is float64\[4, 1\]"),
            (np.zeros(4, np.float32), r"out is float32\[4\]"),
            (np.zeros(4, ">f8"), r"out is >f8\[4\]|byte order"),
            ([0.0] * 4, "out has 4 arrays for 1 outputs"),
            ((), "out has 0 arrays for 1 outputs"),
            ("text", "out is str"),
            (np.ma.zeros(4), "masked"),
        ):
            with pytest.raises(tc.TcdslError, match=message):
                f(*arguments, out=out)
    np.testing.assert_array_equal(first, np.arange(4.0))
    assert not frozen.any()
    assert not memory.any()
    assert added(first, first, out=None).tolist() == (2 * first).tolist()


def test_unusual_arrays_in_repeated_calls() -> None:
    crooked = np.zeros(33, np.uint8)[1:].view(np.float64)
    odd = np.zeros(4, [("a", np.int8), ("b", np.float64)])["b"]
    view = np.zeros(4).view(np.memmap)
    for p in (np.zeros(4), crooked, odd, view, np.zeros(0), np.zeros((0, 3))):
        for k in range(1, 4):
            shifted(p, np.ones(p.shape), rate=1.0)
            np.testing.assert_array_equal(p, -float(k))
        # Empty arrays share nothing.
        shifted(p[:0], p[:0], rate=1.0)


@given(st.data())
def test_strided_arrays_are_refused_exactly_if_they_share_cells(data: st.DataObject) -> None:
    memory = np.arange(60.0)
    rank = data.draw(st.integers(1, 2))
    base = memory.reshape((60,) if rank == 1 else data.draw(st.sampled_from([(6, 10), (10, 6), (3, 20)])))

    def part(extents: tuple[int, ...]) -> np.ndarray:
        slices = []
        for extent, whole in zip(extents, base.shape, strict=True):
            step = data.draw(st.integers(1, max(1, (whole - 1) // max(1, extent - 1))))
            begin = data.draw(st.integers(0, whole - 1 - step * (extent - 1)))
            turned = slice(begin, begin + step * (extent - 1) + 1, step)
            slices.append(turned)
        chosen = base[tuple(slices)]
        return chosen[::-1] if data.draw(st.booleans()) else chosen

    extents = tuple(data.draw(st.integers(1, whole // 3)) for whole in base.shape)
    p, g = part(extents), part(extents)
    if np.shares_memory(p, g):
        with pytest.raises(tc.ShapeError, match="shares memory"):
            shifted(p, g, rate=1.0)
        np.testing.assert_array_equal(memory, np.arange(60.0))
    else:
        expected = p - g
        kept = g.copy()
        shifted(p, g, rate=1.0)
        np.testing.assert_array_equal(p, expected)
        np.testing.assert_array_equal(g, kept)


def test_numbers_that_do_not_fit_in_repeated_calls() -> None:
    whole = np.arange(3)
    calls(times, ((whole, 2), {}, 2 * whole), ((whole, -(2**62)), {}, np.array([0, -(2**62), -(2**63)])))
    with pytest.raises(tc.DtypeError, match=f"the integer {2**63} does not fit in int64"):
        times(whole, 2**63)
    counts = np.arange(3, dtype=np.uint64)
    for number in (2, 2**63, 2**64 - 1, 3):
        for _ in range(3):
            calls(times, ((counts, number), {}, counts * number), ((x, number), {}, x * number))
    calls(times, ((x, np.float32(2)), {}, 2 * x), ((x, np.int64(3)), {}, 3 * x))
    small = np.arange(3, dtype=np.int8)
    for _ in range(3):
        calls(times, ((small, -128), {}, np.array([0, -128, 0], np.int8)), ((small, 127), {}, small * np.int8(127)))
        with pytest.raises(tc.DtypeError, match="the integer 128 does not fit in int8"):
            times(small, 128)
    assert "Entry.arrays" not in passed_by(lambda: times(small, 2))
    with pytest.raises(tc.DtypeError, match="the integer 128 does not fit in int8"):
        times(small, 128)


def test_settings_that_change_between_repeated_calls() -> None:
    calls(added, ((x, x), {}, 2 * x))
    with tc.config(check="nan"), pytest.raises(tc.NanError, match="holds NaN"):
        added(x, x * np.nan)
    with tc.config(threads=1):
        calls(added, ((x, x), {}, 2 * x))
    assert np.isnan(added(x, x * np.nan)).all()


def test_arrays_of_the_module_in_repeated_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls(weighing, ((x,), {}, x * x))
    table[2] = 9.0
    calls(weighing, ((x,), {}, x * [0, 1, 9, 3, 4, 5]))
    table[2] = 2.0
    monkeypatch.setitem(globals(), "table", np.arange(6.0)[::-1])
    calls(weighing, ((x,), {}, x * x[::-1]))
    monkeypatch.setitem(globals(), "table", 3.0)
    calls(weighing, ((x,), {}, 3 * x))
    monkeypatch.setitem(globals(), "table", np.arange(5.0))
    with pytest.raises(tc.ShapeError):
        weighing(x)


@op
def affine(x, factor=2.0, shift=3.0, *, power=1):
    y[i] = x[i] ** power * factor + shift
    return y


@pytest.mark.parametrize(
    "keywords", [{}, {"factor": 4.0}, {"shift": 4.0}, {"shift": 1.0, "factor": 5.0}, {"shift": 1.0, "power": 2}]
)
def test_arrays_by_name_take_the_short_way(keywords: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = affine.interpret(x, **keywords)
    affine(x=x, **keywords)
    monkeypatch.setattr(affine.signature, "call", None)  # the long way
    np.testing.assert_array_equal(affine(x=x, **keywords), wanted)
    np.testing.assert_array_equal(affine(**keywords, x=x), wanted)


def test_arguments_by_name_keep_their_meaning() -> None:
    @op
    def named(a, /, x, *rest, y=1.0):
        z[i] = a[i] * x[i] + y
        return z

    np.testing.assert_array_equal(named(x, x=2 * x), 2 * x * x + 1)
    np.testing.assert_array_equal(named(x, y=2.0, x=x), x * x + 2)
    for wrong, message in (
        (lambda: named(a=x, x=x), "positional"),
        (lambda: affine(x, x=x), "multiple values for argument 'x'"),
        (lambda: affine(factor=1.0), "missing a required argument: 'x'"),
    ):
        with pytest.raises(tc.TcdslError, match=message):
            wrong()


def test_the_shortest_way_asks_what_the_others_ask() -> None:
    first, second = np.arange(4.0), np.ones(4)
    for _ in range(4):
        np.testing.assert_array_equal(added(first, second), first + 1)
    for others in ((second[:3], first[:3]), (first.astype("f"), second.astype("f")), (first[::-1], second)):
        np.testing.assert_array_equal(added(*others), others[0] + others[1])
        for _ in range(3):
            np.testing.assert_array_equal(added(first, second), first + 1)
    with pytest.raises(TypeError):
        added(first)
    with pytest.raises(tc.TcdslError):
        added(first, "text")
    with tc.config(debug=True):
        np.testing.assert_array_equal(added(first, second), first + 1)


def test_the_shortest_way_tells_of_faults() -> None:
    @cd
    def moved_in_place(x, p):
        x[p[i]] += 1.0

    place, target = np.array([0, 2]), np.zeros(3)
    for _ in range(4):
        moved_in_place(target, place)
    np.testing.assert_array_equal(target, [4.0, 0.0, 4.0])
    with pytest.raises(IndexError, match="out of range"):
        moved_in_place(target, place + 1)
    target.flags.writeable = False
    with pytest.raises(tc.TcdslError, match="read-only"):
        moved_in_place(target, place)
    both = np.zeros(3, np.int64)
    with pytest.raises(tc.TcdslError):
        moved_in_place(both, both)


@op
def smoothed(x, steps, rate, p):
    total = 0.0
    for _t in range(steps):
        moved[i] = x[p[i]]
        x = x + rate * (moved - x)
        total = total + x[0]
    return x, {"total": total, "half": 0.5 * x}


def test_loops_with_several_results_take_the_shortest_way() -> None:
    x, p = np.arange(4.0), np.array([1, 2, 3, 0])

    def expected(x: np.ndarray, steps: int, rate: float) -> tuple[np.ndarray, float]:
        total = 0.0
        for _ in range(steps):
            x = x + rate * (x[p] - x)
            total += x[0]
        return x, total

    # Each kind of call four times in a row, so that the last ones are served by the shortest way, or refused by it.
    for steps, rate in ((3, 0.5), (3, 0.25), (4, 0.25), (0, 0.25), (-2, 0.25), (3, 0.5)):
        for _ in range(4):
            wanted, total = expected(x, steps, rate)
            found, others = smoothed(x, steps, rate, p)
            np.testing.assert_allclose(found, wanted)
            np.testing.assert_allclose(others["total"], total)
            assert not isinstance(others["total"], np.ndarray)
            np.testing.assert_allclose(others["half"], 0.5 * wanted)
    assert "RepeatedCall.run" not in passed_by(lambda: smoothed(x, 3, 0.5, p))
    with pytest.raises(IndexError, match="out of range"):
        smoothed(x, 3, 0.5, p + 1)
    np.testing.assert_allclose(smoothed(x, 3, 0.5, p)[0], expected(x, 3, 0.5)[0])


@cd
def summed_in_place(A: real[N, M], p):
    for k in range(1, A.shape[0]):
        A[k] = A[k] + A[k - 1]
        A[k, p[k]] += 1.0
    return A[0], 2 * A[-1]


def test_loops_in_place_take_the_shortest_way() -> None:
    p = np.array([0, 1, 0])
    for _ in range(5):
        A = np.ones((3, 2))
        first, last = summed_in_place(A, p)
        np.testing.assert_array_equal(A, [[1, 1], [2, 3], [4, 4]])
        np.testing.assert_array_equal(first, [1, 1])
        np.testing.assert_array_equal(last, [8, 8])
    A = np.ones((3, 2))
    with pytest.raises(IndexError, match="out of range"):
        summed_in_place(A, p + 1)
    np.testing.assert_array_equal(A, 1)
    A.flags.writeable = False
    with pytest.raises(tc.TcdslError, match="read-only"):
        summed_in_place(A, p)


def test_numbers_keywords_settings_and_buffers_take_the_shortest_way() -> None:
    table, sizes = np.ones((6, 6)), np.arange(6.0)
    for call in (
        lambda: shifted(table[0], table[1], rate=0.5),
        lambda: raised(x, 3.0, factor=2.0),
        lambda: chosen(x, mode="triple"),
        lambda: strided(x, 2),
        lambda: made(sizes, 4),
        lambda: weighing(x),
        lambda: times(x, np.float64(3)),
        lambda: added(x, x, out=table[5]),
        lambda: times(x, 3, out=(table[5],)),
    ):
        with tc.config(threads=2):  # a table of launches that other tests have not used
            for _ in range(140):  # other tests have tried its patience
                call()
            assert "RepeatedCall.run" not in passed_by(call)


def test_arrays_of_which_only_extents_count_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (np.arange(6.0), np.arange(3.0), np.arange(6.0)):
        monkeypatch.setattr(sys.modules[__name__], "table", table)
        for _ in range(5):
            np.testing.assert_array_equal(as_long(x), np.full(len(table), x[0]))


def test_elementwise_loops_are_made_once_for_all_layouts(own_cache: Any) -> None:
    @op
    def both(a, b):
        return a * b + 1

    wide = np.ones((6, 8))
    for layout in (np.ones((6, 4)), wide[:, ::2], wide[:, :4], wide[::-1, :4]):
        np.testing.assert_array_equal(both(layout, np.full((6, 4), 2.0)), np.full((6, 4), 3.0))
    executable = both.staging.latest.executable
    assert len(executable._compiled) == 2
    assert [len(kernels) for kernels in executable._kernels.values()] == [1]


def test_functions_that_are_made_anew_share_what_was_read_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def slope(w: Any) -> Any:
        return tc.grad(lambda v: total(raised(v, 2.0)))(w)

    w = np.arange(4.0)
    for _ in range(2):
        np.testing.assert_allclose(slope(w), w)
    read = []
    monkeypatch.setattr(ProgramStore, "read", lambda store, name: read.append(name))
    np.testing.assert_allclose(slope(w + 1), w + 1)
    assert not read
