"""What can be decorated, what it becomes, and how calls find their program."""

from __future__ import annotations

import inspect
import logging
import math
import pickle
import re
import sys
import typing
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.runtime.test_own_decorators import Vector

SCALE = 2.0
TABLE = np.arange(4.0)
SETTINGS = {"shift": 1}
x = np.ones(3)


@op
def doubled(x):
    return 2 * x


def plain_doubled(x):
    return 2 * x


@op
def scaled(x):
    return SCALE * x


@op
def with_table(x):
    return x + TABLE


def test_op_of_a_function_equals_decorating_it() -> None:
    np.testing.assert_array_equal(op(plain_doubled).interpret(x), doubled.interpret(x))


def test_functions_keep_their_name_and_pickle() -> None:
    assert doubled.__name__ == "doubled"
    assert repr(doubled) == "<op doubled>"
    assert pickle.loads(pickle.dumps(doubled)) is doubled


def test_nested_functions_static_methods_and_methods() -> None:
    class Layer:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @op
        def forward(self, x):
            return self.factor * x

        @staticmethod
        @op
        def shifted(x):
            return x + 1

    assert Layer(3.0).forward.interpret(x).tolist() == [3, 3, 3]
    assert Layer(4.0).forward.interpret(x).tolist() == [4, 4, 4]
    assert Layer.shifted.interpret(x).tolist() == [2, 2, 2]
    layer = Layer(5.0)
    assert layer.forward is layer.forward


def test_a_changed_attribute_of_the_instance_takes_effect() -> None:
    class Layer:
        factor = 2.0

        @op
        def forward(self, x):
            return self.factor * x

    layer = Layer()
    assert layer.forward.interpret(x)[0] == 2
    layer.factor = 7.0
    assert layer.forward.interpret(x)[0] == 7


def test_a_changed_global_takes_effect() -> None:
    global SCALE
    try:
        assert scaled.interpret(x)[0] == 2
        SCALE = 5.0
        assert scaled.interpret(x)[0] == 5
    finally:
        SCALE = 2.0


def test_a_global_array_is_an_input_read_at_every_call() -> None:
    global TABLE
    four = np.zeros(4)
    first = TABLE
    try:
        np.testing.assert_array_equal(with_table.interpret(four), [0, 1, 2, 3])
        programs = with_table.cache_info().programs
        TABLE = np.array([5.0, 6.0, 7.0, 8.0])
        np.testing.assert_array_equal(with_table.interpret(four), [5, 6, 7, 8])
        TABLE[0] = 9.0
        assert with_table.interpret(four)[0] == 9
        assert with_table.cache_info().programs == programs
    finally:
        TABLE = first


def test_closure_values_take_effect_when_they_change() -> None:
    factor = 2.0

    @op
    def times(x):
        return factor * x

    assert times.interpret(x)[0] == 2
    factor = 3.0
    assert times.interpret(x)[0] == 3


def test_ops_call_ops() -> None:
    @op
    def quadrupled(x):
        return doubled(doubled(x))

    assert quadrupled.interpret(x)[0] == 4
    assert "doubled" not in quadrupled.explain("ir")


def test_python_around_statements_runs_at_staging() -> None:
    @op
    def repeated(x, *, times: int, activation: str = "relu"):
        for _ in range(times):
            x = x + 1 if activation == "relu" else x - 1
        return x

    assert repeated.interpret(x, times=3)[0] == 4
    assert repeated.interpret(x, times=2, activation="none")[0] == -1
    assert repeated.cache_info().programs == 2


def test_floats_are_run_time_numbers_until_python_branches_on_them() -> None:
    @op
    def step(x, *, rate):
        return x * rate

    @op
    def branching(x, *, rate):
        return x * rate if rate > 0.5 else x

    for k in range(3):
        assert step.interpret(x, rate=0.25 * k)[0] == 0.25 * k
        assert branching.interpret(x, rate=float(k))[0] == (k if k > 0 else 1)
    assert step.cache_info().programs == 1
    assert branching.cache_info().programs == 3


def test_float_functions_of_run_time_numbers() -> None:
    @op
    def f(x, *, rate, power: int):
        return x * math.sqrt(rate) / (1 - rate**2) + power

    assert f.interpret(x, rate=0.25, power=3)[0] == pytest.approx(0.5 / (1 - 0.0625) + 3)


def test_weak_numbers_take_the_type_of_what_they_meet() -> None:
    @op
    def f(x, y, *, rate):
        return x * rate, x + y

    first, second = f.interpret(np.ones(2, np.float32), 2, rate=0.5)
    assert first.dtype == np.float32
    assert second.dtype == np.float32
    assert f.interpret(np.ones(2, np.float32), np.float64(2), rate=0.5)[1].dtype == np.float64


def test_results_keep_their_structure() -> None:
    @op
    def f(x):
        return {"twice": 2 * x, "rest": [x, (x + 1, None, "text", 3)]}

    found = f.interpret(x)
    assert found["twice"][0] == 2
    assert found["rest"][1][1:] == (None, "text", 3)
    found["rest"][0][0] = 50
    assert x[0] == 1


def test_one_program_for_all_shapes_and_one_per_type_and_rank() -> None:
    function = op(plain_doubled)
    for extent in (0, 1, 2, 7):
        assert function.interpret(np.ones(extent)).shape == (extent,)
    function.interpret(np.ones((2, 2)))
    function.interpret(np.ones(2, np.float32))
    assert function.cache_info().programs == 3
    assert function.cache_info().hits == 3
    assert "float32[_]" in str(function.cache_info())
    function.cache_clear()
    assert function.cache_info().programs == 0


def test_names_of_sizes_come_from_the_function() -> None:
    @op
    def f(A, B: "real[K, M]"):  # noqa: UP037
        N, K = A.shape  # noqa: RUF059
        return A @ B

    text = f.explain("ir", np.ones((2, 3)), np.ones((3, 4)))
    assert "input A: float64[N, K]" in text
    assert "input B: float64[B_0, M]" in text


def test_sizes_bound_twice_must_agree() -> None:
    @op
    def f(A, B):
        A.bind_dims(N, K)
        B.bind_dims(K, M)
        return A * N + M

    assert f.interpret(np.ones((2, 3)), np.ones((3, 4)))[0, 0] == 6
    with pytest.raises(tc.ShapeError, match="axis 0 of `B` does not have the extent `K`"):
        f.interpret(np.ones((2, 3)), np.ones((5, 4)))


def test_annotations_name_ranks_and_types() -> None:
    @op
    def f(A: "float32[N, N]"):  # noqa: UP037
        return A + N

    assert f.interpret(np.ones((2, 2), np.float32))[0, 0] == 3
    with pytest.raises(tc.DtypeError, match="`A` is float64, not float32"):
        f.interpret(np.ones((2, 2)))
    with pytest.raises(tc.ShapeError, match="`A` has rank 1, but 2 sizes"):
        f.interpret(np.ones(2, np.float32))
    with pytest.raises(tc.ShapeError, match="axis 1 of `A`"):
        f.interpret(np.ones((2, 3), np.float32))


def test_containers_are_ordinary_python() -> None:
    @op
    def f(x):
        found = {}
        items = [0, 0]
        found["a"] = x + 1
        items[0] = found["a"] * 2
        items[1] += 5
        SETTINGS["seen"] = True
        return items[0] + items[1] + SETTINGS["shift"]

    assert f.interpret(x)[0] == 10
    assert SETTINGS.pop("seen") is True


def test_what_cannot_be_decorated() -> None:
    async def asynchronous(x):
        return x

    def generating(x):
        yield x

    with pytest.raises(tc.DslSyntaxError, match="a lambda cannot be decorated"):
        op(lambda x: x)
    with pytest.raises(tc.DslSyntaxError, match="is an async function"):
        op(asynchronous)
    with pytest.raises(tc.DslSyntaxError, match="is a generator"):
        op(generating)
    with pytest.raises(tc.DslSyntaxError, match="takes a function, not a type"):
        op(int)
    with pytest.raises(tc.DslSyntaxError, match="is decorated already"):
        op(doubled)


@op
def annotated(x: real[N], y: float32[N, K] = None, *, n: int = 3, z: any[()] = 1.0) -> real[N]:
    return x * n


def test_annotations_of_tensors_can_be_evaluated() -> None:
    hints = typing.get_type_hints(annotated, include_extras=True)
    assert hints.pop("n") is int
    assert hints == {
        "x": typing.Annotated[Any, "real[N]"],
        "y": typing.Annotated[Any, "float32[N, K]"],
        "z": typing.Annotated[Any, "any[()]"],
        "return": typing.Annotated[Any, "real[N]"],
    }
    assert typing.get_type_hints(annotated)["x"] is Any
    assert set(typing.get_type_hints(Vector.halved)) == set()
    assert list(inspect.signature(Vector(np.ones(2)).plain).parameters) == ["x"]
    assert annotated(x).tolist() == [3, 3, 3]


def test_source_that_is_not_available() -> None:
    namespace: dict[str, Any] = {"op": op}
    with pytest.raises(tc.DslSyntaxError, match="the source of `f` is not available"):
        exec("@op\ndef f(x):\n    return x\n", namespace)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        (([1.0, 2.0],), {}, tc.DtypeError, "`x` is a list"),
        (("a",), {}, tc.DtypeError, "`x` is a str"),
        ((None,), {}, tc.DtypeError, "`x` is a NoneType"),
        ((np.ones(2, complex),), {}, tc.DtypeError, "element type complex128"),
        ((np.array(["a"]),), {}, tc.DtypeError, "element type <U1"),
        ((np.ones(2, ">f4"),), {}, tc.DtypeError, "byte order"),
        ((2**70,), {}, tc.DtypeError, "does not fit into 64 bits"),
        ((np.ones(2),), {"mode": [1]}, tc.ConfigurationError, "a list cannot be hashed"),
        ((np.ones(2),), {"mode": np.ones(2)}, tc.ConfigurationError, "move it in front of the"),
        ((np.ones(2), np.ones(2)), {}, TypeError, "too many positional arguments"),
        ((), {}, TypeError, "missing a required argument"),
    ],
)
def test_wrong_arguments(arguments: Any, keywords: Any, error: type[Exception], message: str) -> None:
    @op
    def f(x, *, mode=None):
        return x

    with pytest.raises(error, match=message):
        f.interpret(*arguments, **keywords)


class Foreign:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.arange(3.0)


def test_foreign_arrays_are_read() -> None:
    assert doubled.interpret(Foreign()).tolist() == [0, 2, 4]


def test_explain_needs_a_program_and_a_stage() -> None:
    function = op(plain_doubled)
    with pytest.raises(tc.ConfigurationError, match="has not been staged yet"):
        function.explain("ir")
    with pytest.raises(tc.ConfigurationError, match="source, ir, passes, schedule, loops, python, grad, cost"):
        function.explain("assembly", x)
    assert "def plain_doubled(x):" in function.explain("source")


def test_settings() -> None:
    from tcdsl.config import settings

    assert settings().threads == 0
    with tc.config(threads=2, check="bounds,nan"):
        assert settings().threads == 2
        with tc.config(optimize=False):
            assert settings().check == {"bounds", "nan"}
            assert settings().optimize is False
    assert settings().optimize is True
    with tc.config(threads=np.int8(2), check=("nan",), optimize=np.False_, debug=0):
        assert settings() == replace(settings(), threads=2, check=frozenset({"nan"}), optimize=False, debug=False)
        assert type(settings().threads) is int
        assert settings().optimize is False
    for options, message in [
        ({"thread": 1}, "there is no setting 'thread'"),
        ({"threads": -1}, "threads is -1"),
        ({"check": "speed"}, "names 'speed'"),
        ({"threads": 1.5}, "threads is 1.5; write a count of threads"),
        ({"threads": 2.0}, "threads is 2.0"),
        ({"threads": True}, "threads is True"),
        ({"threads": np.True_}, "threads is np.True_"),
        ({"threads": None}, "threads is None"),
        ({"threads": "many"}, "threads is 'many'"),
        ({"check": 5}, "check=5 is no list of checks; choose from bounds, nan, ir"),
        ({"check": None}, "check=None is no list"),
        ({"check": b"nan"}, "check=b'nan' is no list"),
        ({"check": ["nan", 5]}, r"check=\['nan', 5\] names 5"),
        ({"check": [["nan"]]}, r"names \['nan'\]"),
        ({"debug": "perhaps"}, "'perhaps' is not a switch"),
        ({"debug": 3}, "3 is not a switch; write 1 or 0"),
        ({"optimize": None}, "None is not a switch"),
        ({"optimize": 1.0}, "1.0 is not a switch"),
        ({"cache_dir": 3}, "cache_dir=3 is no path"),
        ({"cache_dir": "a\0b"}, "it holds a NUL character"),
    ]:
        with pytest.raises(tc.ConfigurationError, match=message), tc.config(**options):
            pass


def test_settings_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["tcdsl.config"]  # the package's attribute of that name is the function
    monkeypatch.setenv("TCDSL_THREADS", "3")
    monkeypatch.setenv("TCDSL_OPTIMIZE", "off")
    module.from_environment.cache_clear()
    try:
        assert module.settings().threads == 3
        assert module.settings().optimize is False
        with tc.config(threads=1):
            assert module.settings().threads == 1
    finally:
        monkeypatch.undo()
        module.from_environment.cache_clear()


def test_debugging_shows_compilations_and_runs(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("tcdsl")
    handlers, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [logging.StreamHandler()], False
    function = op(plain_doubled)
    try:
        with tc.config(debug=True):
            function(x)
        with tc.config(threads=1):
            function(x)
    finally:
        logger.handlers, logger.propagate = handlers, propagate
    shown = capfd.readouterr().err
    assert re.search(r"(compiled|loaded) plain_doubled: 1 nest in \d+\.\d\d s, \S+\.py\n", shown)
    assert re.search(r"ran plain_doubled\(float64\[3\]\) in \S+ ms\n", shown)
    assert shown.count("ran ") == 1
    assert function.cache_info().kernels == 1


# -- what looks at the frame that calls it -------------------------------------------------------------------


LOG = logging.getLogger("tests.decorators")


@cd
def logging_code(x):
    LOG.info("first")
    logging.getLogger("tests.decorators").info("second")
    for t in range(x.shape[0]):
        LOG.info("in a loop")
        x[t] += 1.0
    if x[0] > 0:
        logging.info("in an arm")  # noqa: LOG015
        x[0] = 1.0
    warnings.warn("a warning", stacklevel=1)


@op
def stopping(x):
    y[i] = 2 * x[i]
    breakpoint()  # noqa: T100
    return y + 1


def test_logging_and_warnings_show_the_users_line(caplog: pytest.LogCaptureFixture) -> None:
    lines, first = inspect.getsourcelines(logging_code.function)
    with caplog.at_level(logging.INFO), pytest.warns(UserWarning, match="a warning") as warned:
        logging_code(np.ones(3))
    assert len({record.getMessage() for record in caplog.records}) == 4
    for record in caplog.records:
        assert (record.filename, f'("{record.getMessage()}")' in lines[record.lineno - first]) == (
            Path(__file__).name,
            True,
        )
    assert (warned[0].filename, lines[warned[0].lineno - first].strip()[:13]) == (__file__, "warnings.warn")


def test_breakpoint_stops_in_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stop() -> None:
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_name, frame.f_lineno, frame.f_locals["y"].ndim))

    monkeypatch.setattr(sys, "breakpointhook", stop)
    lines, first = inspect.getsourcelines(stopping.function)
    line = first + next(k for k, text in enumerate(lines) if "breakpoint" in text)
    assert stopping.interpret(np.ones(2)).tolist() == [3, 3]
    assert seen[0] == ("stopping", line, 1)
