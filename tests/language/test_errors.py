"""Errors: one family, what a message shows, all faults together, and calls that fail without changing anything."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

FAMILY: dict[str, tuple[type[Exception], ...]] = {
    "TcdslError": (Exception,),
    "DslSyntaxError": (tc.TcdslError, SyntaxError),
    "ShapeError": (tc.TcdslError, ValueError),
    "DtypeError": (tc.TcdslError, TypeError),
    "ConfigurationError": (tc.TcdslError, TypeError),
    "DifferentiationError": (tc.TcdslError, TypeError),
    "DataIndexError": (tc.TcdslError, IndexError),
}


@op
def matmul(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


def raised(call: Any) -> tc.TcdslError:
    with pytest.raises(tc.TcdslError) as caught:
        call()
    return caught.value


# -- the family and its messages -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
def test_there_is_one_exception_family(name: str) -> None:
    kind = getattr(tc, name)
    assert issubclass(kind, tc.TcdslError)
    assert all(issubclass(kind, base) for base in FAMILY[name])


def test_errors_pickle_with_their_diagnostics() -> None:
    error = raised(lambda: matmul(np.ones((2, 3)), np.ones((4, 5))))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.diagnostics == error.diagnostics


def test_a_message_states_the_fact_points_at_the_source_shows_the_shapes_and_says_what_to_write() -> None:
    @op
    def scaled(A):
        C[i, j] = A[i, k] * A[i, j]
        return C

    error = raised(lambda: scaled.interpret(np.ones((2, 3))))
    assert isinstance(error, SyntaxError)
    lines = str(error).splitlines()
    assert lines[0].startswith(f"{__file__}:")
    assert "`k`" in lines[0]
    source = next(k for k, line in enumerate(lines) if "C[i, j] = A[i, k] * A[i, j]" in line)
    caret = lines[source + 1]
    assert set(caret.strip()) == {"^"}
    assert lines[source][caret.index("^") :].startswith(("k", "A[i, k]", "C[i, j]"))
    assert "+=" in str(error)
    (fault,) = error.diagnostics
    assert fault.hint
    shapes = str(raised(lambda: matmul(np.ones((2, 3)), np.ones((4, 5)))))
    assert "3" in shapes
    assert "4" in shapes


def test_carets_count_characters_and_not_bytes() -> None:
    @op
    def f(x, *, mode="ö"):
        y[i] = x[i] if mode == "üü" else Wrong * 2
        return y

    lines = str(raised(lambda: f.interpret(np.ones(2)))).splitlines()
    source, caret = lines[1], lines[2]
    assert source[caret.index("^") :].startswith("Wrong")


def test_a_caret_runs_to_the_end_of_its_line_where_the_fault_goes_on_below() -> None:
    # fmt: off
    @op
    def f(x):
        y[i] = x[i] & (
            x[i])
        return y
    # fmt: on

    lines = str(raised(lambda: f.interpret(np.ones(2)))).splitlines()
    assert lines[1].endswith("y[i] = x[i] & (")
    assert len(lines[2]) == len(lines[1])
    assert lines[2].index("^") == lines[1].index("x[i] & (")


def test_a_fault_that_occurs_twice_is_reported_once() -> None:
    @op
    def inner(x):
        y[i] = x[i, i]
        return y

    @op
    def outer(x):
        return inner(x) + inner(x)

    error = raised(lambda: outer.interpret(np.ones(3)))
    assert len(error.diagnostics) == 1
    assert "faults" not in str(error)


def test_all_faults_of_one_function_are_reported_together() -> None:
    @op
    def f(x, A):
        y[i] = x[i, 0]
        z[i] = x[i] * Missing
        w[i] = A[i, j]
        v[i] = y[i] + z[i]
        u[i] = x[i] & x[i]
        return w, v, u

    error = raised(lambda: f.interpret(np.ones(2), np.ones((2, 2))))
    assert str(error).startswith("4 faults")
    assert [type(fault.error()) for fault in error.diagnostics] == [
        tc.ShapeError,
        tc.DslSyntaxError,
        tc.DslSyntaxError,
        tc.DtypeError,
    ]
    assert [fault.span.line - error.diagnostics[0].span.line for fault in error.diagnostics] == [0, 1, 2, 4]


def test_a_fault_in_an_op_that_is_called_points_at_its_source() -> None:
    @op
    def inner(x):
        y[i] = x[i, i]
        return y

    @op
    def outer(x):
        return inner(x)

    error = raised(lambda: outer.interpret(np.ones(3)))
    assert "y[i] = x[i, i]" in str(error)


# -- failed calls --------------------------------------------------------------------------------------------


def test_checks_of_inputs_run_before_anything_is_written() -> None:
    @cd
    def f(p, A, B):
        p[i] += 1
        p[i] += A[i, k] * B[k, i]

    p = np.zeros(2)
    with pytest.raises(tc.ShapeError):
        f(p, np.ones((2, 3)), np.ones((4, 2)))
    assert p.tolist() == [0, 0]


def test_a_failed_call_changes_no_argument() -> None:
    @cd
    def scatter(p, q, ids, values):
        q[i] *= 2
        p[ids[i]] += values[i]
        q[i] += 1

    p, q = np.zeros(3), np.ones(4)
    arguments = (p, q, np.array([0, 1, 7, 2]), np.ones(4))
    for _ in range(2):
        with pytest.raises(tc.DataIndexError, match="7"):
            scatter(*arguments)
        assert p.tolist() == [0, 0, 0]
        assert q.tolist() == [1, 1, 1, 1]
    arguments[2][2] = 0
    scatter(*arguments)
    assert p.tolist() == [2, 1, 1]
    assert q.tolist() == [3, 3, 3, 3]


def test_a_failed_call_changes_no_output_buffer() -> None:
    @op
    def lookup(table, ids):
        y[i] = table[ids[i]]
        return y

    out = np.full(3, 5.0)
    with pytest.raises(tc.DataIndexError):
        lookup(np.ones(2), np.array([0, 1, 2]), out=out)
    assert out.tolist() == [5, 5, 5]


def test_a_failed_unique_assignment_changes_nothing() -> None:
    @cd
    def permute(p, ids, x):
        assign(p[ids[i]], "=:", x[i], unique=True)

    p = np.zeros(3)
    with pytest.raises(tc.ShapeError, match="twice"):
        permute(p, np.array([0, 1, 1]), np.ones(3))
    assert p.tolist() == [0, 0, 0]
    permute(p, np.array([2, 0, 1]), np.arange(3.0))
    assert p.tolist() == [1, 2, 0]


def test_an_exception_of_the_user_while_staging_leaves_the_function_usable() -> None:
    fail = [True]

    @op
    def f(x):
        if fail[0]:
            raise RuntimeError("not now")
        return 2 * x

    with pytest.raises(RuntimeError, match="not now"):
        f(np.ones(2))
    fail[0] = False
    assert f(np.ones(2)).tolist() == [2, 2]
    assert f.cache_info().programs == 1


def test_a_call_that_failed_may_be_repeated_with_better_arguments() -> None:
    for _ in range(2):
        with pytest.raises(tc.ShapeError):
            matmul(np.ones((2, 3)), np.ones((4, 5)))
    np.testing.assert_array_equal(matmul(np.ones((2, 3)), np.ones((3, 5))), np.full((2, 5), 3.0))


def test_the_error_of_a_data_index_names_tensor_axis_position_and_value() -> None:
    @op
    def lookup(table, ids):
        y[n, d] = table[ids[n], d]
        return y

    error = raised(lambda: lookup(np.ones((3, 2)), np.array([0, 1, -1])))
    text = str(error)
    assert isinstance(error, IndexError)
    for part in ("table", "axis 0", "-1", "n = 2"):
        assert part in text


def test_ordinary_python_errors_stay_pythons_own() -> None:
    @op
    def missing(x):
        return x * undefined_name_of_python

    @op
    def divided(x):
        return x * (1 / 0)

    with pytest.raises(NameError, match="undefined_name_of_python"):
        missing(np.ones(2))
    with pytest.raises(ZeroDivisionError):
        divided(np.ones(2))


def test_whole_arrays_are_accumulated_onto_what_there_is() -> None:
    @op
    def total(a):
        c += a
        return c

    hint = r"write it first, `c = ...`; a statement with an index list, `c\[i\] \+= x\[i\]`, starts anew"
    for a in (np.ones(2), tc.tensor(np.ones(2))):
        with pytest.raises(tc.DslSyntaxError, match=rf"`c` is read before anything is written to it\n.*\n.*\n{hint}"):
            total(a)


def test_several_targets_at_once_do_not_begin_a_declared_target_of_code() -> None:
    @cd
    def f(x):
        y = output(x.shape[0])
        y[0], y[-1] = x[0], x[-1]
        x[...] = y

    error = raised(lambda: f.interpret(np.ones(3)))
    assert isinstance(error, tc.DslSyntaxError)
    assert "Python stores into a declared target, which has no cells yet" in str(error)

    @op
    def advised(x):
        y, z = output(x.shape[0]), output(x.shape[0])
        y[0] = x[0]
        y[-1] = x[-1]
        z[0], z[-1] = x[0], x[-1]
        return y + z

    np.testing.assert_array_equal(advised.interpret(np.ones(3)), [2, 0, 2])
