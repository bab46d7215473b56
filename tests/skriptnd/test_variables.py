"""Variables of graphs: in loops and branches, in packs, updated by calls, and left out where nothing reads them."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tests.skriptnd.graphs import graph_of, reals

OWN = """import math;
operator gate { @input { x: real[n]; } @output { a: real[n]; b: real[n]; } @variable { w: real[n]; }
    @compose { a = math.mul(x, w); b = math.add(x, w); } }
graph g { @input { x: real[2]; } @output { y: real[2]; c: real[2]; } @compose { BODY } }
"""


@pytest.mark.parametrize("rounds", ["unroll", "do"])
@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ("y, c = with s = x, t = x LOOP..(2) gate(s);", ["y1.w", "y2.w"]),
        ("~, y = with s = x, t = x LOOP..(2) { p, q = gate(s); yield p, q; }; c = x;", ["y1.w", "y2.w"]),
        ("y, c = with s = x, t = x LOOP..(2) all: gate(s);", ["all.w"]),
    ],
)
def test_rounds_that_are_written_out_have_variables_of_their_own(rounds, body, labels):
    assert list(graph_of(OWN.replace("BODY", body.replace("LOOP", rounds))).variables) == labels


def test_rounds_on_data_share_their_variables() -> None:
    net = graph_of("""import layer; graph g { @input { x: real[2,3]; n: int[]; } @output { y: real[2,3]; }
        @compose { y = with s = x do..(n) layer.linear{channels=3}(s); } }""")
    assert list(net.variables) == ["y.filter", "y.bias"]
    x, w, b = reals(2, 3), reals(3, 3, seed=1), reals(3, seed=2)
    net.variables.update({"y.filter": w, "y.bias": b})
    for rounds in (0, 1, 3):
        wanted = x
        for _ in range(rounds):
            wanted = wanted @ w.T + b
        np.testing.assert_allclose(net(x, np.int32(rounds)), wanted, rtol=1e-5)
    wide = [each.astype(np.float64) for each in (x, w, b)]

    def loss(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        return net(x, np.int32(3), variables={"y.filter": w, "y.bias": b}).sum()

    tc.check_grads(loss, tuple(wide))


STATE = """
import math;
operator running {
    @attrib { momentum: real; }
    @input { x: real[n, static c]; }
    @variable { mean: real[c]; }
    @output { y: real[n, c]; }
    @compose { y = math.sub(x, mean); }
    @update {
        now = math.mean_reduce{axes=[0], squeeze=true}(x);
        kept = math.mul(mean, momentum);
        new = math.mul(now, 1.0 - momentum);
        mean = math.add(kept, new);
    }
}
graph net {
    @input { x: real[n|9, 2]; }
    @output { y: real[n, 2]; }
    @variable { calls: real[]; }
    @compose { norm = running{momentum=0.5}(x); y = norm; }
    @update { calls = math.add(calls, 1.0); }
}
"""


def test_calls_update_variables() -> None:
    net = graph_of(STATE)
    x = np.float32([[2.0, 4.0], [4.0, 8.0]])
    assert net(x).tolist() == x.tolist()
    assert (net.variables["norm.mean"].tolist(), net.variables["calls"]) == ([1.5, 3.0], 1.0)
    assert net(x).tolist() == [[0.5, 1.0], [2.5, 5.0]]
    before = {label: value.copy() for label, value in net.variables.items()}
    # A call that fails, one with variables of its own, and derivatives leave all as it is.
    with pytest.raises(tc.ShapeError):
        net(np.ones((10, 2), np.float32))
    net(x, variables={"norm.mean": np.zeros(2, np.float32), "calls": np.float32(0)})
    tc.grad(lambda x: net(x).sum())(x)
    tc.check_grads(net, (x,))
    assert all((net.variables[label] == value).all() for label, value in before.items())
    assert net.variables["calls"] == 2.0


@pytest.mark.parametrize(
    ("compose", "place"),
    [("with s = x do..(n) LAYER(s)", "a loop on data"), ("if c then LAYER(x) else x", "an arm of")],
)
def test_updates_that_may_not_run_are_refused(compose: str, place: str) -> None:
    graph = """graph g { @input { x: real[2,2]; n: int[]; c: bool[]; } @output { y: real[2,2]; }
        @compose { y = BODY; } }""".replace("BODY", compose.replace("LAYER", "r: running{momentum=0.5}"))
    with pytest.raises(tc.DslSyntaxError, match=rf"the variable `r\.mean` is updated in {place}"):
        graph_of(STATE.partition("graph net")[0] + graph)


def test_variables_that_nothing_reads_may_be_missing() -> None:
    net = graph_of("""import layer; graph g { @input { x: real[2,3]; } @output { y: real[2,3]; }
        @variable { own: real[3]; }
        @compose { h = layer.linear{channels=3, use_bias=false}(x); y = layer.linear{channels=3}(h); } }""")
    assert list(net.variables) == ["own", "h.filter", "h.bias", "y.filter", "y.bias"]
    given = {label: reals(*net.variables[label].shape) for label in ("h.filter", "y.filter", "y.bias")}
    x = reals(2, 3)
    wanted = x @ given["h.filter"].T @ given["y.filter"].T + given["y.bias"]
    np.testing.assert_allclose(net(x, variables=given), wanted, rtol=1e-5)
    with pytest.raises(tc.ConfigurationError, match=r"`variables` lacks y\.bias$"):
        net(x, variables={label: each for label, each in given.items() if label != "y.bias"})


PACK = """import math; graph g { @input { x: real[2]; } @output { y: real[2]; }
    @WHAT { w: real[2]LENGTH; } @compose { y = math.add(x, w[1]); } }"""


def test_packs_of_variables_and_constants() -> None:
    x = np.float32([1, 2])
    net = graph_of(PACK.replace("WHAT", "variable").replace("LENGTH", "..(2)"))
    assert list(net.variables) == ["w.1", "w.2"]
    net.variables["w.2"] = x
    assert net(x).tolist() == [2, 4]
    for value, wanted in (("[1.0, 2.0]", [3, 4]), ("5.0", [6, 7])):
        constant = PACK.replace("WHAT", "constant").replace("LENGTH", f"..(2) = {value}")
        assert graph_of(constant)(x).tolist() == wanted
    for length, fact in (
        ("..", "the shape of the variable `w` depends"),
        ("..(3) = [1.0, 2.0]", "has 3 tensors, and 2"),
    ):
        text = PACK.replace("WHAT", "constant" if "=" in length else "variable").replace("LENGTH", length)
        with pytest.raises(tc.ShapeError, match=fact):
            graph_of(text)
