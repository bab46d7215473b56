from __future__ import annotations

import pytest

from tcdsl.errors import ShapeError
from tcdsl.ir.build import index
from tcdsl.ir.expressions import Expr
from tcdsl.ir.sizes.size_binding import SizePlan, bind_sizes, evaluate_size
from tcdsl.ir.text.parser import parse_program
from tests.ir.notation import parse_expr

MATMUL = parse_program("""
program matmul
input A: float32[N, K]
input B: float32[B_0, M] as "weights"
assert K == B_0, "A has {K} columns, weights has {B_0} rows; {other} {} stay"
assert N > 0, "A has no rows"
""")

CONVOLUTION = parse_program("""
program convolution
input x: float32[N]
input k: float32[KX]
size H = N // 2
size P = H * KX
tensor y: float32[N - KX + 1] as "result"
tensor z: float32[P, H]
""")

DECLARED = parse_program("""
program declared
input x: float32[N, 3]
input g: float32[N, N + 1] as "gradient"
""")


def size_expr(text: str) -> Expr:
    return parse_expr(text, {}, ("N", "M"), ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("N + M * 2 - 1", 12),
        ("-N // 2", -4),
        ("-N % 4", 1),
        ("max(N, M) - min(N, M)", 4),
        ("N if N > M else M", 7),
        ("1 // 0 if N < M else 5", 5),
        ("1 if N > M or 1 // 0 > 0 else 2", 1),
        ("1 if N < M and 1 // 0 > 0 else 2", 2),
        ("1 if not (N == M) and N != M and N >= 7 and M <= 3 else 2", 1),
        ("N * 9223372036854775807", 7 * (2**63 - 1)),
        ("abs(-N) + square(M)", 16),
        ("N ** 2", 49),
        ("int64(ceil(float64(N) / 2.0))", 4),
        ("int64(bool(N))", 1),
        ("N & M", 3),
        ("sign(M - N)", -1),
    ],
)
def test_expressions_of_sizes(text: str, expected: int) -> None:
    value = evaluate_size(size_expr(text), {"N": 7, "M": 3})
    assert type(value) is int
    assert value == expected


def test_division_by_zero_is_pythons() -> None:
    with pytest.raises(ZeroDivisionError):
        evaluate_size(size_expr("N // M"), {"N": 7, "M": 0})


def test_expressions_of_index_variables_are_refused() -> None:
    with pytest.raises(TypeError, match="not an expression of sizes"):
        evaluate_size(index("i"), {})


def test_sizes_come_from_axes_and_expressions() -> None:
    assert bind_sizes(MATMUL, [(2, 3), (3, 4)]) == {"N": 2, "K": 3, "B_0": 3, "M": 4}
    assert list(bind_sizes(CONVOLUTION, [(7,), (2,)]).items()) == [("N", 7), ("KX", 2), ("H", 3), ("P", 6)]
    assert bind_sizes(CONVOLUTION, [(0,), (1,)]) == {"N": 0, "KX": 1, "H": 0, "P": 0}
    assert bind_sizes(DECLARED, [(2, 3), (2, 3)]) == {"N": 2}
    assert bind_sizes(parse_program("program empty"), []) == {}


def test_a_plan_serves_many_calls() -> None:
    plan = SizePlan(MATMUL)
    assert plan.bind([(2, 3), (3, 4)])["M"] == 4
    with pytest.raises(ShapeError):
        plan.bind([(2, 3), (4, 4)])
    assert plan.bind(((1, 0), (0, 5))) == {"N": 1, "K": 0, "B_0": 0, "M": 5}


def message(shapes: list[tuple[int, ...]], program: object) -> str:
    with pytest.raises(ShapeError) as caught:
        bind_sizes(program, shapes)  # type: ignore[arg-type]
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def test_assertions_are_filled_in() -> None:
    assert message([(2, 3), (4, 5)], MATMUL) == "A has 3 columns, weights has 4 rows; {other} {} stay"


def test_all_failing_assertions_are_reported() -> None:
    assert message([(0, 3), (4, 5)], MATMUL).split("\n") == [
        "2 faults",
        "",
        "A has 3 columns, weights has 4 rows; {other} {} stay",
        "",
        "A has no rows",
    ]


def test_negative_extents_name_the_tensor() -> None:
    assert message([(3,), (6,)], CONVOLUTION).split("\n") == [
        "result would have a negative extent: its shape is (-2,)",
        '    y: float32[N - KX + 1] as "result"',
        "    KX = 6, N = 3",
    ]


def test_negative_opaque_sizes_are_found() -> None:
    program = parse_program("program p\ninput x: int8[N]\nsize P = N - 3\ntensor y: int8[P]\ntensor z: int8[2, P]")
    assert bind_sizes(program, [(3,)]) == {"N": 3, "P": 0}
    assert message([(2,)], program).count("negative extent") == 2


@pytest.mark.parametrize(
    ("shapes", "fact"),
    [
        ([(2, 4), (2, 3)], "x has shape (2, 4), but (2, 3) is needed"),
        ([(2, 3), (2, 2)], "gradient has shape (2, 2), but (2, 3) is needed"),
        ([(2, 3), (3, 3)], "gradient has shape (3, 3), but (2, 3) is needed"),
    ],
)
def test_inputs_have_their_declared_shape(shapes: list[tuple[int, ...]], fact: str) -> None:
    assert message(shapes, DECLARED).startswith(fact)
    assert "N = 2" in message(shapes, DECLARED)


def test_ranks_and_numbers_of_arrays() -> None:
    assert message([(2, 3), (3,)], MATMUL).split("\n") == [
        "weights has 2 axes, but the array given has 1",
        '    B: float32[B_0, M] as "weights"',
        "    given: (3,)",
    ]
    assert message([(2, 3)], MATMUL).startswith("matmul takes 2 arrays, not 1\n    A: float32[N, K]")


def test_a_size_that_divides_by_zero_is_a_shape_error() -> None:
    program = parse_program("""
program blocks
input x: int8[N]
input y: int8[M]
size B = N // M
size C = B + 1
assert M > 0, "y is empty"
assert B > 1, "x is shorter than two blocks"
""")
    assert bind_sizes(program, [(7,), (2,)]) == {"N": 7, "M": 2, "B": 3, "C": 4}
    assert message([(7,), (4,)], program) == "x is shorter than two blocks"
    assert message([(7,), (0,)], program).split("\n") == [
        "2 faults",
        "",
        "the size N // M divides by zero",
        "    M = 0, N = 7",
        "",
        "y is empty",
    ]


def test_an_assertion_that_divides_by_zero_fails() -> None:
    program = parse_program('program p\ninput x: int8[N]\nassert 12 % N == 0, "12 is no multiple of {N}"')
    assert bind_sizes(program, [(4,)]) == {"N": 4}
    assert message([(5,)], program) == "12 is no multiple of 5"
    assert message([(0,)], program) == "12 is no multiple of 0"


def test_an_extent_that_divides_by_zero_is_a_shape_error() -> None:
    program = parse_program("program p\ninput x: int8[N]\ntensor y: int8[12 // N]")
    assert bind_sizes(program, [(4,)]) == {"N": 4}
    assert message([(0,)], program).startswith("the shape of y divides by zero\n    y: int8[12 // N]\n    N = 0")
