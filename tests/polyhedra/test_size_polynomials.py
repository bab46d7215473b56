"""Arithmetic on linear forms with symbolic coefficients, and what is known about sizes."""

from __future__ import annotations

import itertools
import random

import pytest

from tcdsl.ir.build import apply, index, integer, size
from tcdsl.ir.expressions import Apply, Constant, Expr, IndexValue, SizeValue
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.size_algebra import SizeAlgebra, SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import parameter_names
from tcdsl.ranges.sketches.inference_state import sketch_sizes
from tests.ranges.programs import Shapes

N, M, K = (Polynomial.of(size(name)) for name in ("N_0", "M_0", "K_0"))
I, J = (Polynomial.of(index(name)) for name in ("i", "j"))


@pytest.fixture
def algebra():
    return SizeAlgebra(Shapes({"N": 1, "M": 1, "K": 1}))


def test_polynomials_are_equal_if_their_terms_are():
    assert (N - 1) * M + M == N * M
    assert (N + M) * (N - M) == N * N - M * M
    assert (I * N + J) - J == I * N
    assert not (N - N).terms


def test_products_of_index_variables_have_no_form():
    with pytest.raises(NotAffine):
        I * J


def test_parts_of_a_form():
    form = I * N * 2 + J - 3
    assert form.coefficient("i") == N * 2
    assert form.without("i") == J - 3
    assert form.variables == {"i", "j"}
    assert form.constant == -3
    assert form.value is None
    assert form.bare is None
    assert I.bare == "i"
    assert (I * 2).bare is None
    assert Polynomial.number(0).value == 0
    assert not form.quasi_affine
    assert form.substituted(size("N_0"), M + 1) == I * M * 2 + I * 2 + J - 3


def test_division_by_terms():
    assert (N * M * 2 + M * K + 5).split(M) == (N * 2 + K, Polynomial.number(5))
    assert (I * 4 + 7).split(Polynomial.number(2)) == (I * 2 + 3, Polynomial.number(1))
    assert (I * 3 + 7).split(Polynomial.number(2)) == (Polynomial.number(3), I * 3 + 1)
    assert N.split(N + 1) is None


def test_division_by_sums():
    assert (I * N + I + J).divided_by(N + 1) == (I, J)
    assert (I * (N + M) * (K - 1) + J * (K - 1) + 4).divided_by(K - 1) == (I * (N + M) + J, Polynomial.number(4))
    assert (I * N + J).divided_by(N + 1) == (Polynomial({}), I * N + J)
    assert (N * M + N + 5).divided_by(M + 1) == (N, Polynomial.number(5))
    assert (I * N + I + J).sums_before_variables() == [N + 1, -N - 1]
    draw = random.Random(5)
    atoms = (N, M, K, Polynomial.number(1), Polynomial.number(-2))
    for _ in range(200):
        divisor, sizes, factor = (
            sum((draw.choice(atoms) * draw.choice(atoms) for _ in range(3)), Polynomial({})) for _ in range(3)
        )
        if not divisor.terms:
            continue
        form = (I * factor + sizes) * divisor
        assert form.divided_by(divisor) == (I * factor + sizes, Polynomial({}))
        quotient, rest = (form + J + N).divided_by(divisor)
        assert quotient * divisor + rest == form + J + N


def test_strides():
    assert (I * N * M + J * M).stride() == M
    assert (I * N * 4 + J * N * 6).stride() == N * 2
    assert (I * N + J * M).stride() is None
    assert (I + J).stride() is None


def _value(expr, point):
    match expr:
        case IndexValue(name=name) | SizeValue(name=name):
            return point[name]
        case Constant(value=value):
            return value
        case Apply(arguments=arguments):
            constants = tuple(integer(_value(argument, point)) for argument in arguments)
            return evaluate_size(apply(expr.primitive, *constants), {})
    raise TypeError(expr)


def _random_expression(draw: random.Random, depth: int) -> Expr:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice([index("i"), index("j"), size("N_0"), size("M_0"), integer(draw.randint(-4, 4))])
    left = _random_expression(draw, depth - 1)
    match draw.choice(["add", "sub", "mul", "floor_div", "mod", "min", "max", "neg"]):
        case "neg":
            return apply("neg", left)
        case "floor_div" | "mod" as primitive:
            return apply(primitive, left, integer(draw.randint(1, 4)))
        case primitive:
            return apply(primitive, left, _random_expression(draw, depth - 1))


@pytest.mark.parametrize("seed", range(150))
def test_reading_and_writing_keep_the_value(seed):
    draw = random.Random(seed)
    expr = _random_expression(draw, 4)
    shapes = Shapes({"N": 1, "M": 1})
    algebra = SizeAlgebra(shapes)
    try:
        written = algebra.expr(algebra.form(expr))
    except NotAffine:
        return
    for n, m, i, j in itertools.product((0, 1, 5), (0, 2, 3), (-3, 0, 4), (-1, 2)):
        point = {"N_0": n, "M_0": m, "i": i, "j": j}
        for name, known in shapes.sizes.items():
            if name not in point:
                point[name] = _value(known.source, point)
        assert _value(written, point) == _value(expr, point)


def test_what_is_known_about_sizes(algebra):
    assert algebra.nonnegative(N * M + K)
    assert not algebra.nonnegative(N - 1)
    assert algebra.negative(-N - 1)
    assert not algebra.negative(-N)
    algebra.assume(apply("ge", size("N_0"), size("M_0")))
    assert algebra.nonnegative(N - M)
    assert algebra.sign(M - N) == -1
    assert algebra.sign(M - K) is None
    assert algebra.extreme([N, M], largest=True) == N
    assert algebra.extreme([N - 1, M - 1, K + 2], largest=False) == algebra.extreme([M, K + 3], largest=False) - 1


def test_bounds_over_ranges(algebra):
    ranges = {"i": SizeInterval(Polynomial.number(0), N - 1), "j": SizeInterval(Polynomial.number(0), I)}
    assert algebra.bound(I * M + J, ranges, True) == (N - 1) * M + N - 1
    assert algebra.bound(I - J, ranges, False) == Polynomial.number(0)
    assert algebra.bound(J - I * 2, ranges, False) == (N - 1) * -2
    assert algebra.bound(I * (M - K), ranges, True) is None


def test_quotients(algebra):
    assert algebra.quotient(N * M + M, M) == N + 1
    assert algebra.quotient(I * 4 + 7, Polynomial.number(4)) == I + 1
    assert algebra.form(apply("mod", apply("mul", size("N_0"), size("M_0")), size("M_0"))) == Polynomial({})
    named = algebra.quotient(N, M)
    assert named == algebra.quotient(N, M)
    assert named.bare is None
    with pytest.raises(NotAffine):
        algebra.quotient(I, M)
    with pytest.raises(NotAffine):
        algebra.form(apply("floor_div", integer(4), index("i")))


def test_the_context_of_a_statement_speaks_of_its_sizes_and_of_those_that_they_are_tied_to():
    shapes = Shapes({f"P{k}": 2 for k in range(16)})
    for k in range(4):
        shapes.add(f"Q{k}[i, j] += P{k}[i, l] * P{k + 1}[l, j]")
    shapes.add("Q9[i] += P11[i, j] * P10[i, j]")
    names = sketch_sizes(shapes.sketch("R[i] += P0[i, j] * P2[j, i]"), shapes)
    assert names == {"P0_0", "P0_1", "P2_0", "P2_1"}
    context = shapes.known().about(names)
    assert names <= set(parameter_names(context)) <= {*names, "P1_0", "P1_1", "P3_0"}
    differ = condition_set(apply("ne", size("P0_1"), size("P2_0")), context)
    assert not context.intersect(differ).is_empty()
    # What is known through other sizes is known: P0_1 == P1_1 == P2_0.
    shapes.add("S[i] = P0[0, i] + P1[0, i]")
    shapes.add("T[i] = P1[0, i] + P2[i, 0]")
    assert shapes.known().about(names).intersect(differ).is_empty()


def test_sizes_that_an_algebra_has_named_are_known_to_it():
    shapes = Shapes({"N": 1, "M": 1})
    algebra = SizeAlgebra(shapes)
    product = algebra.expr(N * M)
    assert {each.name for each in (product,)} <= set(parameter_names(algebra.context))
