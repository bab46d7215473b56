"""Loops of a known number of rounds: one of the program where all rounds are alike and many, else round by round."""

from __future__ import annotations

import numpy as np

import tcdsl as tc

ROUNDS = 9

STEP = """
operator step {
    @attrib { scale: real = 0.5; }
    @input { h: real[n]; x: real[n]; }
    @output { h1: real[n]; }
    @lower { h1[i] = scale * h[i,] + x[i,], i < n; }
}
operator shorter {
    @input { h: real[n]; }
    @output { h1: real[n - 1]; }
    @lower { h1[i] = h[i + 1,], i < n - 1; }
}
""".replace("h1[i] =", "h1[i,] =")


def graph(body, rounds=ROUNDS, inputs="", outputs="y: real[3]; ys: real[{rounds},3];"):
    text = f"""
import layout, layer, math;
{STEP}
graph g {{
    @input {{ x: real[{rounds},3]; h: real[3]; {inputs} }}
    @output {{ {outputs.format(rounds=rounds)} }}
    @compose {{
        xs..({rounds}) = layout.unstack{{axis=0}}(x);
        {body}
    }}
}}
"""
    return tc.skriptnd.parse(text).graphs["g"]


def scanned(word, rounds=ROUNDS):
    body = f"y, items = with s = h for each : xs {word} {{ t = step(s, each); yield t, t; }};"
    return graph(body + " ys = layout.stack{axis=0}(items);", rounds)


def given(rounds=ROUNDS):
    generator = np.random.default_rng(rounds)
    return generator.normal(size=(rounds, 3)).astype(np.float32), generator.normal(size=3).astype(np.float32)


def slope_of(found):
    return tc.grad(lambda x, h: (found(x, h)[1] ** 2).sum(), argnums=(0, 1))


def runs(found, *arrays):
    """Whether the program has a loop that runs."""
    return "repeat" in str(found.explain("ir", *arrays))


def test_rounds_that_are_alike_are_one_round_of_the_program():
    x, h = given()
    running, unrolled = scanned("do"), scanned("unroll")
    assert runs(running, x, h)
    assert not runs(unrolled, x, h)
    wanted = []
    state = h
    for each in x:
        state = np.float32(0.5) * state + each
        wanted.append(state)
    for found in (running, unrolled):
        y, ys = found(x, h)
        np.testing.assert_allclose(ys, wanted, rtol=1e-6)
        np.testing.assert_array_equal(y, ys[-1])
    slopes = [slope_of(each)(x, h) for each in (running, unrolled)]
    for one, other in zip(*slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_rows_of_a_tensor_are_scanned_where_they_lie():
    text = str(scanned("do").explain("ir", *given()))
    # The loop is given `x` itself, which nothing puts together again; no position is checked.
    assert "times with x, h, h, h1" in text
    assert "= x[number, i0]" in text


def test_rows_in_another_order_are_put_together():
    turned = ", ".join(f"xs[{k}]" for k in reversed(range(ROUNDS)))
    body = f"turned = [{turned}]; y = with s = h for each : turned do {{ t = step(s, each); yield t; }};"
    x, h = given()
    found = graph(body, outputs="y: real[3];")
    state = h
    for each in x[::-1]:
        state = np.float32(0.5) * state + each
    np.testing.assert_allclose(found(x, h), state, rtol=1e-6)


def test_few_rounds_are_unrolled():
    assert not runs(scanned("do", 8), *given(8))


def test_rounds_with_variables_are_unrolled():
    body = """y = with s = h for each : xs do {
        r = layout.unsqueeze{axes=[0]}(each);
        t = layer.linear{channels=1}(r);
        u = layout.squeeze{axes=[0,1]}(t);
        v = math.add(s, u);
        yield v;
    };"""
    found = graph(body, outputs="y: real[3];")
    labels = [label for label in found.variables if label.endswith("filter")]
    assert len(labels) == ROUNDS
    assert not runs(found, *given())


def test_numbers_that_attributes_take_are_unrolled():
    body = f"y = with s = h do..(k -> {ROUNDS}) step{{scale=real(k)}}(s, h);"
    found = graph(body, outputs="y: real[3];")
    x, h = given()
    assert not runs(found, x, h)
    state = h
    for k in range(ROUNDS):
        state = np.float32(k) * state + h
    np.testing.assert_allclose(found(x, h), state, rtol=1e-6)


def test_tensors_of_several_shapes_are_scanned_round_by_round():
    parts = ", ".join(f"p{k}" for k in range(ROUNDS))
    cut = " ".join(f"p{k} = layout.slice{{axes=[0], begin=[0], end=[{k % 2 + 1}]}}(h);" for k in range(ROUNDS))
    body = f"{cut} y = with s = h for each : [{parts}] do {{ m = math.sum_reduce{{axes=[0]}}(each);"
    body += " t = math.add(s, m); yield t; };"
    found = graph(body, outputs="y: real[3];")
    x, h = given()
    assert not runs(found, x, h)
    np.testing.assert_allclose(found(x, h), h + 5 * h[0] + 4 * h[:2].sum(), rtol=1e-5)


def test_rows_of_a_tensor_are_stacked_in_one_statement() -> None:
    made = graph(
        "~, items = with s = h for each : xs do { t = step(s, each); yield t, t; };"
        " ys = layout.stack{axis=0}(items); y = layout.stack{axis=1}(items);",
        outputs="ys: real[{rounds},3]; y: real[3,{rounds}];".replace("{rounds}", str(ROUNDS)),
    )
    x, h = given()
    ys, y = made(x, h)
    wanted = scanned("unroll")(x, h)[1]
    np.testing.assert_allclose(ys, wanted, rtol=1e-6)
    np.testing.assert_allclose(y, wanted.T, rtol=1e-6)
    text = str(made.explain("ir", x, h))
    assert text.count("\nys[") + text.count("\ny[") == 2, text
