"""What counts as an operation, by hand: each rule on the smallest program that shows it."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

from tcdsl.autodiff.cost import OperationCount, count_operations, weight
from tcdsl.autodiff.cost.point_sets import cardinality, coordinates
from tests.autodiff.programs import program

X = np.arange(1.0, 6.0)
IDS = np.array([0, 1, 1, 0, 0])


def counts(body: str, tensors: str = "y: float64", output: str = "y") -> dict[str, int]:
    made = program("x: float64[N]; A: float64[N, N]; s: float64; ids: int64[N]", tensors, body, output)
    found = count_operations(made, [X, np.ones((5, 5)), np.array(2.0), IDS])
    named = {"add": found.additions, "mul": found.multiplications, "div": found.divisions, **dict(found.calls)}
    return {name: number for name, number in named.items() if number}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("y[()] += x[i] for [i]: 0 <= i < N", {"add": 4}),
        ("y[()] -= x[i] for [i]: 0 <= i < N", {"add": 4}),
        ("y[()] += x[i] from fill(0.0) for [i]: 0 <= i < N", {"add": 4}),
        ("y[()] += x[i] from fill(1.0) for [i]: 0 <= i < N", {"add": 5}),
        ("y[()] += x[i] from s for [i]: 0 <= i < N", {"add": 5}),
        ("y[()] += x[i] from fill(s[()] * 2.0) for [i]: 0 <= i < N", {"add": 5, "mul": 1}),
        ("y[()] *= x[i] for [i]: 0 <= i < N", {"mul": 4}),
        ("y[()] >>= x[i] for [i]: 0 <= i < N", {"max": 4}),
        ("y[()] <<= x[i] from s for [i]: 0 <= i < N", {"min": 5}),
        ("y[()] /= x[i] for [i]: 0 <= i < N", {"div": 5}),
        # Conditions leave points out, brackets leave terms out.
        ("y[()] += x[i] for [i]: 0 <= i < N if x[i] > 2.0", {"add": 2}),
        ("y[()] += where(x[i] > 2.0, sin(x[i]), 0.0) for [i]: 0 <= i < N", {"add": 2, "sin": 3}),
        ("y[()] += where(i > 2, sin(x[i]), 0.0) for [i]: 0 <= i < N", {"add": 1, "sin": 2}),
        ("y[()] += where(i > 2, x[i], 1.0) for [i]: 0 <= i < N", {"add": 4}),
        ("y[()] *= where(i > 2, x[i], 0.0) for [i]: 0 <= i < N", {"mul": 4}),
        ("y[()] += x[i] * where(i > 2, x[i], 0.0) for [i]: 0 <= i < N", {"mul": 5, "add": 1}),
        ("y[()] += x[i] + where(i > 2, x[i], 0.0) for [i]: 0 <= i < N", {"add": 4 + 2}),
        ("y[()] += where(i < 2, x[i], 0.0) + where(i > 2, x[i], 0.0) for [i]: 0 <= i < N", {"add": 3}),
        ("y[()] += get(x[i - 2], 0.0) for [i]: 0 <= i < N", {"add": 2}),
        ("y[()] += get(x[i - 2], x[i] * x[i]) for [i]: 0 <= i < N", {"add": 4, "mul": 2}),
        # Laziness, and local definitions.
        ("y[()] += where(x[i] > 2.0 and sin(x[i]) > 0.0, 1.0, 2.0) for [i]: 0 <= i < N", {"add": 4, "sin": 3}),
        ("y[()] += where(x[i] > 2.0 or sin(x[i]) > 0.0, 1.0, 2.0) for [i]: 0 <= i < N", {"add": 4, "sin": 2}),
        ("y[()] += let(t := exp(x[i]), t * t) for [i]: 0 <= i < N", {"add": 4, "mul": 5, "exp": 5}),
        ("y[()] += let(t := exp(x[i]), where(i > 2, t * t, x[i])) for [i]: 0 <= i < N", {"add": 4, "mul": 2, "exp": 2}),
        (
            "y[()] += let(t := exp(x[i]), where(i > 2, t, 0.0) + where(i > 1, t, 0.0)) for [i]: 0 <= i < N",
            {"add": 2 + 2, "exp": 3},
        ),
        # Operations.
        ("y[()] = fma(s[()], s[()], s[()]) for []:", {"add": 1, "mul": 1}),
        ("y[()] = -square(s[()]) for []:", {"mul": 1}),
        ("y[()] = s[()] ** 7.0 for []:", {"mul": 4}),
        ("y[()] = s[()] ** -2.0 for []:", {"mul": 1, "div": 1}),
        ("y[()] = s[()] ** 0.5 for []:", {"pow": 1}),
        ("y[()] = recip(s[()]) - s[()] / 3.0 for []:", {"add": 1, "div": 2}),
        ("y[()] = s[()] * (1.0 / float64(N)) for []:", {"mul": 1}),
        ("y[()] += x[2 * i] * float64(i) for [i]: 0 <= i and 2 * i < N", {"add": 2, "mul": 3}),
        ("y[()] += float64(ids[i] * ids[i] + 1) for [i]: 0 <= i < N", {"add": 4}),
    ],
)
def test_rules(body: str, wanted: dict[str, int]) -> None:
    assert counts(body) == wanted


def test_cells_that_hold_nothing_yet_take_their_first_value_for_free() -> None:
    tensors = "a: float64[N]; y: float64[N]"
    even = "a[2 * i] += x[i] for [i]: 0 <= i and 2 * i < N\n"
    assert counts(even + "y[i] += x[i] from a for [i]: 0 <= i < N", tensors) == {"add": 3}
    assert counts(even + "y[2 * i + 1] += x[i] from a for [i]: 0 <= i and 2 * i + 1 < N", tensors) == {}
    # A product with a cell that holds 0 is a product.
    assert counts(even + "y[i] *= x[i] from a for [i]: 0 <= i < N", tensors) == {"mul": 5}
    # What a read finds is a number.
    assert counts(even + "y[i] = x[i] + a[i] for [i]: 0 <= i < N", tensors) == {"add": 5}
    bracket = "a[i] = where(i == 2, x[i], 0.0) for [i]: 0 <= i < N\n"
    assert counts(bracket + "y[i] += x[i] from a for [i]: 0 <= i < N", tensors) == {"add": 1}


def test_scattered_sums_count_the_cells_that_data_say() -> None:
    assert counts("y[ids[i]] += x[i] for [i]: 0 <= i < N", "y: float64[N]") == {"add": 3}
    body = "a[ids[i]] += x[i] for [i]: 0 <= i < N\ny[i] += x[i] from a for [i]: 0 <= i < N"
    assert counts(body, "a: float64[N]; y: float64[N]") == {"add": 3 + 2}


def test_conditions_on_computed_values() -> None:
    body = "m[()] >>= x[i] * x[i] for [i]: 0 <= i < N\n"
    body += "y[()] += where(x[i] * x[i] == m[()], exp(x[i]), 0.0) for [i]: 0 <= i < N"
    assert counts(body, "m: float64; y: float64") == {"max": 4, "mul": 10, "exp": 1}


def test_weights() -> None:
    for name in ("add", "mul", "div", "max", "exp", "log", "sin", "cos", "tanh", "sigmoid", "relu", "sqrt"):
        assert weight(name) == 1
    # erf: g * exp(-(a * a)) * c. gelu: with an erf and an exp in its derivative.
    assert weight("erf") == pytest.approx(4 / 3)
    assert 3 < weight("gelu") < 5
    count = OperationCount.of({"add": 2, "mul": 3, "erf": 3})
    assert (count.plain, count.weighted) == (8, pytest.approx(9))


BIG = 1_000_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{{ [i, j, k] : 0 <= i < {BIG} and 0 <= j < {BIG} and 0 <= k < {BIG} }}", BIG**3),
        (f"{{ [i, j] : 0 <= i < {BIG} and j = i }}", BIG),
        (f"{{ [i, j] : 0 <= i < {BIG} and 0 <= j <= i }}", BIG * (BIG + 1) // 2),
        (f"{{ [i, k] : 0 <= i < {BIG} and 0 <= k < 5 and 0 <= i + k - 2 < {BIG} }}", 5 * BIG - 6),
        (f"{{ [i] : 0 <= i < {BIG} and i mod 3 <= 1 }}", 2 * (BIG // 3) + 1),
        (f"{{ [i] : exists j : i = 3 * j + 1 and 0 <= i < {BIG} }}", BIG // 3),
        (f"{{ [i, j] : 0 <= i + j < {BIG} and 0 <= i - j < {BIG} }}", BIG * BIG // 2),
        ("{ [] : }", 1),
        ("{ [i] : i > 0 and i < 1 }", 0),
        ("{ [i] : 0 <= i < 10 or 5 <= i < 20 }", 20),
    ],
)
def test_large_sets_are_counted_without_visiting_their_points(text: str, wanted: int) -> None:
    assert cardinality(isl.Set(text)) == wanted


@pytest.mark.parametrize("seed", range(40))
def test_random_sets(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(10):
        points = isl.Set(random_set(random))
        listed: list[tuple[int, ...]] = []
        rank = points.dim(isl.dim_type.set)

        def collect(point: isl.Point, listed: list[tuple[int, ...]] = listed, rank: int = rank) -> None:
            listed.append(tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(rank)))

        points.foreach_point(collect)
        assert cardinality(points) == len(listed)
        found = [tuple(row) for rows in coordinates(points, 3) for row in rows.tolist()]
        assert sorted(found) == sorted(listed)


def random_set(random: np.random.Generator) -> str:
    names = ["i", "j", "k"][: random.integers(1, 4)]
    parts = [f"{-random.integers(0, 4)} <= {name} < {random.integers(0, 8)}" for name in names]
    for _ in range(random.integers(0, 4)):
        form = " + ".join(f"{random.integers(-3, 4)}*{name}" for name in names) + f" + {random.integers(-3, 4)}"
        divisor = random.integers(2, 5)
        options = (
            f"{form} >= 0",
            f"{form} = 0",
            f"({form}) mod {divisor} = 0",
            f"floor(({form})/{divisor}) <= {names[0]}",
            f"(exists e : {form} = 2*e + 3*{names[-1]})",
            f"({form} >= 1 or {form} <= -2)",
        )
        parts.append(options[random.integers(len(options))])
    return f"{{ [{', '.join(names)}] : {' and '.join(parts)} }}"


def test_infinite_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="infinitely many"):
        cardinality(isl.Set("{ [i] : i >= 0 }"))
