"""Quotients, remainders and extents in loops that run: what is asked of sizes is what Python would need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.errors import ShapeError
from tests.language.running_programs import check, program

PARAMETERS = "w: 'real[N]', z: 'real[M]', k: 'real[K]'"
W = np.random.default_rng(43).random(5)


def of_sizes(*lines: str) -> Any:
    """A function of ``w``, ``z`` and ``k``, arrays of N, M and K cells, with these lines in rounds over ``w``."""
    body = "".join(f"\n    {line}" for line in lines)
    return program(f"s = 0.0\nfor t in range(N):{body}\nreturn s", PARAMETERS)


def by_hand(line: str, z: Any, k: Any) -> Any:
    """What Python computes."""
    names = {"w": W, "N": 5, "M": len(z), "k": k, "s": 0.0}
    exec(f"for t in range(N):\n    {line}", names)
    return names["s"]


@pytest.mark.parametrize("divided", ["w[1 % M]", "w[t % M]", "w[t // M]", "w[t] * (N // M)", "w[t] * ((t - 1) % M)"])
def test_rounds_divide_by_sizes_only_where_they_run(divided: str) -> None:
    f = of_sizes(f"s = s + {divided}")
    nothing = np.zeros(0)
    check(f, (nothing, nothing, nothing), 0.0)
    check(f, (W, W[:2], nothing), by_hand(f"s = s + {divided}", W[:2], nothing))
    with pytest.raises(ShapeError, match=r"the size .* divides by zero\n(.*\n)*M = 0") as refused:
        f(W, nothing, nothing)
    assert "max" not in str(refused.value)


def test_a_divisor_that_the_call_says_is_0_only_where_no_round_runs() -> None:
    f = program("s = 0.0\nfor t in range(N):\n    s = s + w[t // n]\nreturn s", "w: 'real[N]', n")
    check(f, (W[:0], 0), 0.0)
    check(f, (W, 2), W[[0, 0, 1, 1, 2]].sum())
    with pytest.raises(ShapeError, match="the size t // n divides by zero"):
        f(W, 0)
    g = program("s = 0.0\nfor t in range(N // n):\n    s = s + w[t]\nreturn s", "w: 'real[N]', n")
    check(g, (W, 2), W[:2].sum())
    with pytest.raises(ShapeError, match="divides by zero"):
        g(W, 0)


@pytest.mark.parametrize(
    ("index", "needed"),
    [("t // M", 3), ("(N - 1 - t) // M", 3), ("(t + 2) // M", 4), ("t % M", 2), ("(t // M) % M", 2)],
)
def test_an_array_needs_the_cells_that_rounds_read_and_no_more(index: str, needed: int) -> None:
    f = of_sizes(f"s = s + k[{index}] * w[t]")
    k = np.arange(1.0, needed + 1)
    check(f, (W, W[:2], k), by_hand(f"s = s + k[{index}] * w[t]", W[:2], k))
    with pytest.raises(ShapeError, match="is out of range of axis 0"):
        f(W, W[:2], k[1:])


@pytest.mark.parametrize("index", ["t + 1", "t - 1", "t + N", "2 * t + 1"])
def test_indices_that_no_round_could_have_need_no_round(index: str) -> None:
    f = of_sizes(f"s = s + w[{index}]")
    check(f, (W[:0], W, W), 0.0)
    with pytest.raises(ShapeError, match="is out of range of axis 0"):
        f(W, W, W)


@pytest.mark.parametrize(
    "lines",
    [
        ("if t > 5:", "    s = s + w[9]"),
        ("if t > 5:", "    if t != 6:", "        s = s + w[t % M]"),
        ("for u in range(t - 5):", "    s = s + w[u + 8]"),
        ("for u in range(t, t - 6, -1):", "    if t == 5 and u < 3:", "        s = s + w[9]"),
    ],
)
def test_arms_and_loops_that_no_round_reaches_ask_nothing(lines: tuple[str, ...]) -> None:
    f = of_sizes(*lines)
    nothing = np.zeros(0)
    for length in (0, 1, 5):
        check(f, (W[:length], nothing, nothing), 0.0)
    with pytest.raises(ShapeError):
        f(np.ones(8), nothing, nothing)


@pytest.mark.parametrize("line", ["s = s + w[N]", "k[N] += w[t]", "if M > 3:\n    k[K] += 1"])
def test_what_can_never_run_is_an_error_only_where_it_runs(line: str) -> None:
    f = program(f"s = 0.0\nfor t in range(M):\n    {line.replace(chr(10), chr(10) + '    ')}\nreturn s", PARAMETERS)
    check(f, (W, W[:0], W), 0.0)
    with pytest.raises(ShapeError, match="is out of range of axis 0"):
        f(W, W, W)


def test_a_loop_in_a_loop_without_rounds_asks_nothing() -> None:
    f = of_sizes("for u in range(M):", "    s = s + w[u - 2] * k[u // 2 - 1]")
    check(f, (W[:0], W, W[:0]), 0.0)
    check(f, (W, W[:0], W[:0]), 0.0)
    with pytest.raises(ShapeError, match="is out of range of axis 0"):
        f(W, W, W)


@pytest.mark.parametrize("declaration", ["f: real[n]", "f = output(n)"])
def test_a_target_stays_as_it_is_declared_where_no_round_runs(declaration: str) -> None:
    f = program(f"{declaration}\nfor t in range(n):\n    f[t] = x[t]\nreturn f", "x: 'real[N]', n")
    for n in (0, 1, 3):
        check(f, (W.astype("float32"), n), W[:n].astype("float32"))
    assert f(W.astype("float32"), 0).dtype == np.float32
    with pytest.raises(ShapeError, match="an extent of -1"):
        f(W, -1)
    g = program("f: real[n + 1]\nfor t in range(n):\n    f[t + 1] = x[t]\nreturn f", "x: 'real[N]', n")
    for n in (-1, 0, 2):
        check(g, (W, n), np.array([0.0, *W[: max(n, 0)]])[: n + 1])


def test_a_declared_target_that_no_round_writes_stays_declared() -> None:
    body = "q: real[N]\nfor t in range(N):\n    for u in range(N):\n        if {}:\n            x[0] += 1"
    body += "\n        else:\n            q[t] = x[0]\n"
    check(program(body.format("True") + "return x"), (np.zeros(2), 0), np.array([4.0, 0.0]))
    check(program(body.format("t > u") + "return x, q"), (np.zeros(2), 0), (np.array([1.0, 0.0]), np.array([0.0, 1.0])))


class Cells(dict[int, float]):
    """The cells that Python's rounds write; others are 0."""

    def __missing__(self, position: int) -> float:
        return 0.0


FIRST = ["for t in range(N):\n    q[t + 1] = x[t]", "for t in range(N - 1, -1, -2):\n    q[t // 2] += x[t]"]
OPEN = [
    *FIRST,
    "for t in range(N):\n    for u in range(t):\n        q[t + u] += x[u]",
    "for t in range(N):\n    if t > 2:\n        q[2 * t] = x[t]\n    else:\n        q[t] = -x[t]",
    "for t in range(1, N):\n    q[N - t] = x[t] + (q[N - t + 1] if t > 1 else 0.0)",
]


@pytest.mark.parametrize(
    ("declaration", "rounds"),
    [*(("q: real[X]", rounds) for rounds in OPEN), *(("q = output()", rounds) for rounds in FIRST)],
)
def test_open_extents_are_those_that_all_rounds_need(declaration: str, rounds: str) -> None:
    f = program(f"{declaration}\n{rounds}\nreturn q", "x: 'real[N]'")
    for length in (5, 1, 0):
        cells = Cells()
        exec(rounds, {"N": length, "x": W[:length], "q": cells})
        check(f, (W[:length],), np.array([cells[k] for k in range(1 + max(cells, default=-1))]))


def test_targets_with_open_extents_are_read_and_changed_in_rounds() -> None:
    f = program("q: real[X]\nq[i + 1] = x[i]\nfor t in range(N):\n    q[t] += x[t]\nreturn q", "x: 'real[N]'")
    check(f, (W,), np.array([0.0, *W]) + np.array([*W, 0.0]))
    g = program("q: real[X]\nq[i + 1] = x[i]\nif x[0] > 0:\n    q[1] += 3\nreturn q", "x: 'real[N]'")
    check(g, (W,), np.array([0.0, W[0] + 3, *W[1:]]))
    h = program(
        "q: real[X]\nfor t in range(N):\n    for u in range(M):\n        q[t * M + u] = w[t]\nreturn q", PARAMETERS
    )
    with pytest.raises(ShapeError, match=r"how large `q` has to be(.*\n)*declare an extent into which all rounds fit"):
        h(W, W, W)


def test_a_size_in_a_message_of_staging_is_called_by_its_name() -> None:
    with pytest.raises(ShapeError, match=r"the index N is out of range of axis 0 of y, which has the extent N\n"):
        program("y: real[N]\ny[N] = x[0]\nreturn y")(W, 0)


ENDS = [
    (-(2**63), 2**63 - 1, 2**62),
    (2**63 - 1, -(2**63), -(2**62)),
    (2**63 - 1, -(2**63), -(2**63)),
    (2**63 - 2, 2**63 - 1, 2**63 - 1),
    (5, 0, -(2**63)),
    (-(2**63), 2**63 - 1),
    (2**63 - 1, -(2**63)),
    (-(2**62), 2**62),
]


@pytest.mark.parametrize("bounds", ENDS)
def test_rounds_are_counted_exactly_at_the_ends_of_the_integers(bounds: tuple[int, ...]) -> None:
    names = ", ".join("abc"[: len(bounds)])
    rounds = "    s = s + 1\n    last = t\n    if s > 3:\n        break"
    f = program(f"s = 0\nlast = 0\nfor t in range({names}):\n{rounds}\nreturn s, last", f"x: 'real[N]', {names}")
    numbers = range(*bounds)[:4]
    check(f, (W, *bounds), (len(numbers), numbers[-1] if numbers else 0))


@pytest.mark.parametrize(
    "index", ["t * 2**40", "t * 2**62 * 4", "2**62 * (t % 3)", "t * 2**62 % 2**63", "N - 2**70 + 2**70 - 1"]
)
def test_indices_are_exact_at_the_ends_of_the_integers(index: str) -> None:
    f = program(f"s = 0.0\nfor t in range(N):\n    s = s + x[{index}]\nreturn s", "x: 'real[N]'")
    assert f(W[:1]) == W[0]
    with tc.config(check="ir"):
        assert f(W[:1]) == W[0]
    check(f, (W[:1],), W[0])
    if "t" not in index:
        return
    with pytest.raises(ShapeError, match="is out of range of axis 0"):
        f(W)


def test_numbers_of_rounds_are_exact() -> None:
    body = "s = 0\nfor t in range(N):\n    for k in range(2**62 * (t % 3) // 2**61):\n        s = s + k\nreturn s"
    check(program(body, "x: 'real[N]'"), (W[:4],), sum(sum(range(2 * (t % 3))) for t in range(4)))


def test_cells_at_remainders_of_numbers_of_rounds_in_arms_have_gradients() -> None:
    body = "for t in range(N):\n    if t > 0:\n        y = tanh(x[t % N] * y)\n    x = tanh(y)\nreturn x"
    tc.check_grads(program(body, "x: 'real[N]', y: 'real[N]'"), (W[:3], W[2:]))


FAULTY_ROUNDS = [
    ("for t in range(N):\n    s = s + x[2 * t - 3]", (W,), "at t = 0\n"),
    ("for t in range(N):\n    for k in range(t):\n        s = s + x[t + k]", (W,), "at t = 3, k = 2\n"),
    ("for t in range(N):\n    if t > 2:\n        s = s + x[2 * t - 3]", (W,), "at t = 4\n"),
    ("for t in range(1, N, 2):\n    s = s + x[t + 2]", (W,), "at round 1 of `t`, from 0\n"),
]


@pytest.mark.parametrize(("loop", "arguments", "place"), FAULTY_ROUNDS)
def test_what_sizes_decide_names_the_round(loop: str, arguments: tuple[Any, ...], place: str) -> None:
    f = program(f"s = 0.0\n{loop}\nreturn s", "x: 'real[N]'")
    for run in (f, f.interpret):
        with pytest.raises(ShapeError, match="of axis 0 of x") as caught:
            run(*arguments)
        assert place in str(caught.value)
        assert "get(x[...], 0.0)" in str(caught.value)


def test_indices_of_either_sign_are_exact() -> None:
    f = program("s = 0.0\nfor t in range(n):\n    s = s + x[t * 2**62 * 4 % 3]\nreturn s", "x, n")
    check(f, (W[:4], 5), sum(W[t * 2**64 % 3] for t in range(5)))


def test_a_round_among_millions_is_not_looked_for() -> None:
    loops = "for t in range(m):\n    for u in range(m):\n        for v in range(m):\n"
    body = f"s = 0.0\n{loops}            if t == 150 and u == 9 and v == 11:\n                s = s + x[v]\nreturn s"
    f = program(body, "x: 'real[N]', m")
    with pytest.raises(ShapeError, match="the index v is out of range of axis 0 of x, which has the extent N = 4"):
        f(W[:4], 300)
    assert f(W[:4], 100) == 0
