"""Graphs as functions: inputs, packs, variables, attributes, derivatives, control flow, files."""

from __future__ import annotations

import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.skriptnd.files import read_array, write_array
from tcdsl.tools.command_line import main
from tests.skriptnd.graphs import graph_of, reals

NET = """
import nn, math;
graph net {
    @attrib { width: int = 4; slope: real = 0.0; }
    @input { x: real[n|64, 3]; }
    @output { y: real[n, 2]; h: real[n, width]; }
    @variable { w1: real[width, 3]; b1: real[width]; w2: real[2, width]; }
    @compose {
        a = nn.linear(x, w1, b1);
        h = nn.relu{alpha=slope}(a);
        y = nn.linear(h, w2);
    }
}
"""


def weights(width: int = 4) -> dict[str, np.ndarray]:
    shapes = {"w1": (width, 3), "b1": (width,), "w2": (2, width)}
    return {name: reals(*shape, seed=k) - 1 for k, (name, shape) in enumerate(shapes.items())}


def expected(x: np.ndarray, w: dict[str, np.ndarray], slope: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    a = x @ w["w1"].T + w["b1"]
    h = np.maximum(a, slope * a)
    return h @ w["w2"].T, h


def test_a_graph_is_a_function() -> None:
    net = graph_of(NET)
    assert repr(net) == "<sknd graph net(x) -> y, h>"
    assert (net.inputs, net.outputs) == (("x",), ("y", "h"))
    assert net.attributes == {"width": 4, "slope": 0.0}
    assert repr(net.variables) == "<variables: w1: real[4,3], b1: real[4], w2: real[2,4]>"
    x, w = reals(5, 3), weights()
    assert net(x)[0].tolist() == np.zeros((5, 2)).tolist()
    net.variables.update(w)
    for found, wanted in zip(net(x=x), expected(x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    np.testing.assert_allclose(net(reals(9, 3))[0], expected(reals(9, 3), w)[0], rtol=1e-5)
    assert net.shapes((7, 3)) == ((7, 2), (7, 4))
    for shape in ((-1, 3), (2.5, 3)):
        with pytest.raises(tc.ShapeError, match="is no shape: extents are integers that are not negative"):
            net.shapes(shape)
    assert "for" in str(net.explain("loops", x))
    del net.variables["w1"]
    assert not net.variables["w1"].any()


def test_other_attributes_and_other_variables() -> None:
    net = graph_of(NET)
    net.variables.update(weights())
    wide = net.configured(width=6, slope=0.5)
    assert wide.variables["w1"].shape == (6, 3)
    x, w = reals(5, 3), weights(6)
    np.testing.assert_allclose(wide(x, variables=w)[0], expected(x, w, 0.5)[0], rtol=1e-5)
    assert wide.variables["b1"].tolist() == [0.0] * 6
    assert net.configured(slope=0.1).variables["w2"] is net.variables["w2"]
    assert next(iter(tc.skriptnd.parse(NET, attributes={"width": 7}).graphs.values())).attributes["width"] == 7


def test_double_precision_where_an_array_is_double() -> None:
    net = graph_of(NET)
    x, w = reals(5, 3).astype(np.float64), weights()
    found = net(x, variables=w)[0]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected(x, {k: v.astype(np.float64) for k, v in w.items()})[0], rtol=1e-12)


def test_derivatives() -> None:
    net = graph_of(NET)
    x, w = reals(5, 3), weights()
    net.variables.update(w)
    dx = tc.grad(lambda x: net(x)[0].sum())(x)
    a = x @ w["w1"].T + w["b1"]
    np.testing.assert_allclose(dx, ((a > 0) * w["w2"].sum(0)) @ w["w1"], rtol=1e-4)
    dw = tc.grad(lambda w2: net(x, variables={**w, "w2": w2})[0].sum())(w["w2"])
    np.testing.assert_allclose(dw, np.tile(np.maximum(a, 0).sum(0), (2, 1)), rtol=1e-4)
    tc.check_grads(net, [x])
    y, back = tc.vjp(net, x)
    assert back((np.ones_like(y[0]), np.zeros_like(y[1])))[0].shape == x.shape
    value, tangent = tc.jvp(net, (x,), (x,))
    assert tangent[0].shape == value[0].shape


def test_variables_train_as_parameters() -> None:
    text = """
    import nn;
    graph net {
        @input { x: real[8, 3]; }
        @output { y: real[8, 1]; }
        @variable { w: real[1, 3]; b: real[1]; }
        @compose { y = nn.linear(x, w, b); }
    }
    """
    net = graph_of(text)
    x = reals(8, 3) - 1
    target = x @ np.float32([[1.0, -2.0, 0.5]]).T + np.float32(0.25)

    parameters = {label: tc.param(label, init=value) for label, value in net.variables.items()}
    loss = ((net(tc.tensor(x), variables=parameters) - tc.tensor(target)) ** 2).mean()
    step = tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=0.1))
    for _ in range(400):
        step.run()
    assert loss.value < 1e-4
    net.variables.update({label: parameter.value for label, parameter in parameters.items()})
    np.testing.assert_allclose(net(x), target, atol=0.05)


PACKS = """
import math, layout;
graph sums {
    @input { xs: real[2]..(n|5); bias: real[2]; }
    @output { total: real[2]; parts: real[1]..(2); }
    @compose {
        total = with t = bias for x : xs do math.add(t, x);
        parts..(2) = layout.split{axis=0, count=2}(total);
    }
}
"""


def test_packs_are_lists() -> None:
    sums = graph_of(PACKS)
    xs = [reals(2, seed=k) for k in range(3)]
    total, parts = sums(xs, np.ones(2, np.float32))
    np.testing.assert_allclose(total, sum(xs) + 1, rtol=1e-6)
    assert [each.tolist() for each in parts] == [[total[0]], [total[1]]]
    for count in (0, 6):
        with pytest.raises(tc.ShapeError, match=f"`xs` has 1 to 5 tensors, and {count} are given"):
            sums([xs[0]] * count, xs[0])
    gradient = tc.grad(lambda x: sums([x, x * 2, x], x)[0].sum())(xs[0])
    assert gradient.tolist() == [5.0, 5.0]


FLOW = """
import math;
graph power {
    @input { x: real[3]; n: int[]; }
    @output { y: real[3]; }
    @constant { one: real[3] = 1.0; }
    @compose { y = with p = one do..(n) math.mul(p, x); }
}
graph doubled {
    @input { x: real[]; }
    @output { y: real[]; }
    @compose { y = with p = x while math.lt(p, 100.0) do math.mul(p, 2.0); }
}
graph at_least_once {
    @input { x: real[]; }
    @output { y: real[]; }
    @compose { y = with p = x do math.mul(p, 2.0) while math.lt(p, 100.0); }
}
graph counted {
    @input { x: real[]; }
    @output { y: real[]; }
    @compose { y = with p = x while math.lt(p, 10.0) do..(i -> 3) { q = math.add(p, 1.0); yield q; }; }
}
graph branch {
    @input { x: real[3]; c: bool[]; d: bool[]; }
    @output { y: real[3]; }
    @compose {
        y = if c then math.mul(x, 2.0) elif d then { z = math.neg(x); yield z; } else x;
    }
}
"""


def test_loops_and_branches_on_data() -> None:
    graphs = tc.skriptnd.parse(FLOW).graphs
    x = reals(3)
    for n in (0, 1, 4):
        np.testing.assert_allclose(graphs["power"](x, np.int32(n)), x**n, rtol=1e-5)
    assert [float(graphs["doubled"](np.float32(v))) for v in (3.0, 100.0)] == [192.0, 100.0]
    assert [float(graphs["at_least_once"](np.float32(v))) for v in (3.0, 100.0)] == [192.0, 200.0]
    assert [float(graphs["counted"](np.float32(v))) for v in (3.0, 8.5, 20.0)] == [6.0, 10.5, 20.0]
    for c, d, factor in ((True, True, 2), (False, True, -1), (False, False, 1)):
        np.testing.assert_allclose(graphs["branch"](x, np.bool_(c), np.bool_(d)), factor * x)
    assert graphs["doubled"](3).dtype == np.float32
    gradient = tc.grad(lambda x: graphs["power"](x, np.int32(3)).sum())(x)
    np.testing.assert_allclose(gradient, 3 * x**2, rtol=1e-4)
    gradient = tc.grad(lambda x: graphs["branch"](x, np.bool_(False), np.bool_(True)).sum())(x)
    assert gradient.tolist() == [-1.0] * 3
    assert float(tc.grad(graphs["doubled"])(np.float32(3.0))) == 64.0


LABELS = """
import nn, layout;
operator dense {
    @attrib { channels: int; use_bias: bool = true; }
    @input { x: real[b, static c]; }
    @variable { filter: real[channels, c]; bias: real[channels]; }
    @output { y: real[b, channels]; }
    @compose { y = nn.linear(x, filter, use_bias ? bias); }
}
operator twice {
    @input { x: real[b, static c]; }
    @output { y: real[b, c]; }
    @compose { h = dense{channels=c}(x); y = last: dense{channels=c, use_bias=false}(h); }
}
operator wrapped {
    @input { x: real[b, static c]; }
    @output { y: real[b, c]; }
    @compose { y = twice(x); }
}
graph net {
    @input { x: real[2, 3]; }
    @output { y: real[2, 3]; }
    @compose { first = dense{channels=3}(x); y = wrapped(first); }
}
"""


def test_labels_of_variables() -> None:
    net = graph_of(LABELS)
    assert list(net.variables) == [
        *("first.filter", "first.bias", "y.h.filter", "y.h.bias"),
        *("y.last.filter", "y.last.bias"),
    ]
    given = {label: np.ones(each.shape, np.float32) for label, each in net.variables.items()}
    assert net(np.ones((2, 3), np.float32), variables=given).tolist() == [[39.0] * 3] * 2


def test_a_graph_that_is_called_has_names_of_its_own(tmp_path: Path) -> None:
    # The calls without a label share its variables, wherever they stand; a label makes others.
    net = graph_of("""import math, quant;
    operator inner { @input { x: real[2]; } @output { y: real[2]; } @compose { a = part(x); y = math.add(a, 1.0); } }
    graph net { @input { x: real[2]; } @output { y: real[2]; z: real[2]; }
        @compose { a = part(x); b = inner(a); y = other: part(b); z = a; } }
    graph part { @input { x: real[2]; } @output { y: real[2]; } @variable { w: real[2]; }
        @compose { y = math.mul(x, w); }
        @quantize { w: quant.min_max_linear_quantize{min=0.0, max=4.0, bits=2, channel_axis=0}; } }
    """)
    assert list(net.variables) == ["part.w", "other.w"]
    net.variables.update({"part.w": np.float32([3, 5]), "other.w": np.float32([2, 7])})
    assert net(np.ones(2, np.float32))[0].tolist() == [20, 182]
    net.save(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["main.net.other.w.dat", "main.part.w.dat", "main.sknd"]
    again = tc.skriptnd.load(tmp_path).graphs
    assert again["net"](np.ones(2, np.float32))[0].tolist() == [20, 182]
    # A graph prints the graphs that it calls, behind itself.
    printed = tc.skriptnd.parse(str(net)).graphs
    assert list(printed) == ["net", "part"]
    assert printed["net"].table() == net.table()
    assert str(printed["net"]) == str(net)
    assert again["part"].variables["w"].tolist() == [3, 5]
    own = "@variable { w: real[2]; } @compose { s = math.add(x, w); c = math.mul(s, 2.0); }"
    with pytest.raises(tc.DslSyntaxError, match=r"two calls have the variable `part\.w`"):
        graph_of(f"""import math;
        operator f {{ @input {{ x: real[2]; }} @output {{ c: real[2]; }} {own} }}
        graph net {{ @input {{ x: real[2]; }} @output {{ y: real[2]; }} @compose {{ part = f(x); y = part(part); }} }}
        graph part {{ @input {{ x: real[2]; }} @output {{ c: real[2]; }} {own} }}""")


def test_files(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    block = "operator square { @input { x: real[s..]; } @output { y: real[s..]; } @lower { VALUE, i < s; } }"
    block = block.replace("VALUE", "y[i..] = x[i..] * x[i..]")
    (tmp_path / "own.sknd").write_text(block)
    (tmp_path / "blocks" / "deep.sknd").write_text(
        "import own;\n" + block.replace("square", "cube").replace("x[i..] * x[i..]", "x[i..] * x[i..] * x[i..]")
    )
    main = """import own, blocks.deep;
graph g {
    @input { x: real[2]; }
    @output { y: real[2]; z: real[2]; }
    @compose { y = own.square(x); z = blocks.deep.cube(x); }
}"""
    (tmp_path / "main.sknd").write_text(main)
    x = np.float32([2.0, 3.0])
    for module in (
        tc.skriptnd.load(tmp_path),
        tc.skriptnd.load(tmp_path / "main.sknd"),
        tc.skriptnd.parse(main, tmp_path),
    ):
        assert [each.tolist() for each in module.graphs["g"](x)] == [[4.0, 9.0], [8.0, 27.0]]
    assert str(module) == main
    (tmp_path / "own.sknd").write_text(block.replace("x[i..] *", "x[i..] %%"))
    with pytest.raises(tc.DslSyntaxError, match=r"own\.sknd:1:"):
        tc.skriptnd.load(tmp_path)


def test_graphs_are_sent_to_other_processes() -> None:
    net = graph_of(NET)
    net.variables.update(weights())
    x = reals(5, 3)
    again = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(again(x)[0], net(x)[0])


def test_models_in_folders(tmp_path: Path) -> None:
    net = graph_of(NET)
    net.variables.update(weights())
    net.save(tmp_path / "model")
    names = sorted(each.name for each in (tmp_path / "model").iterdir())
    assert names == ["main.net.b1.dat", "main.net.w1.dat", "main.net.w2.dat", "main.sknd"]
    with tarfile.open(tmp_path / "model.tgz", "w:gz") as archive:
        archive.add(tmp_path / "model", "model")
    x = reals(5, 3)
    for place in ("model", "model/main.sknd", "model.tgz"):
        again = tc.skriptnd.load(tmp_path / place).graphs["net"]
        np.testing.assert_array_equal(again(x)[0], net(x)[0])
    (tmp_path / "model" / "main.net.b1.dat").write_bytes(write_array(np.zeros(3, np.float32), "b1"))
    with pytest.raises(tc.ShapeError, match=r"has shape \(3,\), and its variable \(4,\)"):
        tc.skriptnd.load(tmp_path / "model")


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "bool"]
)
def test_files_of_variables(dtype: str) -> None:
    for shape in ((), (0, 3), (3, 5), (2, 1, 1, 1, 1, 1, 1, 2)):
        array = (np.random.default_rng(0).uniform(-3, 3, shape) * 9).astype(dtype)
        data = write_array(array, "x")
        assert data[:4] == bytes.fromhex("4eef0100")
        found = read_array(data, "x")
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_damaged_files_of_variables() -> None:
    data = write_array(reals(3, 4), "x")
    quantized = bytearray(write_array(np.arange(-2, 4, dtype=np.int8), "x"))
    struct.pack_into("<I", quantized, 4 + 4 * 11, 3)
    assert read_array(bytes(quantized), "x").tolist() == [-2, -1, 0, 1, 2, 3]
    signed = bytearray(write_array(np.arange(3, dtype=np.uint16), "x"))
    struct.pack_into("<I", signed, 4 + 4 * 12, 1)
    assert read_array(bytes(signed), "x").dtype == np.int16
    for k, value in ((0, 2**31), (1, 9), (2, 2**32 - 1), (10, 24), (11, 7)):
        damaged = bytearray(data)
        struct.pack_into("<I", damaged, 4 + 4 * k, value)
        with pytest.raises(tc.ConfigurationError, match=r"^x: "):
            read_array(bytes(damaged), "x")
    for broken in (b"", data[:127], data[:-1], data + b"0", b"\x00" + data[1:], data[:2] + b"\x02" + data[3:]):
        with pytest.raises(tc.ConfigurationError, match=r"^x: "):
            read_array(broken, "x")
    with pytest.raises(tc.ConfigurationError, match="x: has rank 9"):
        write_array(np.zeros((1,) * 9), "x")


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = graph_of(NET)
    assert net.table() == [
        ("input", "x", "real", "[n, 3]"),
        ("output", "y", "real", "[n, 2]"),
        ("output", "h", "real", "[n, 4]"),
        ("variable", "w1", "real", "[4, 3]"),
        ("variable", "b1", "real", "[4]"),
        ("variable", "w2", "real", "[2, 4]"),
    ]
    assert "<td>w1</td><td>real</td><td>[4, 3]</td>" in tc.skriptnd.parse(NET)._repr_html_()
    few, most = net.cost(reals(2, 3)).primal.operations, net.cost().primal.operations
    assert most.multiplications == 32 * few.multiplications > 0
    net.save(tmp_path)
    assert main(["skriptnd", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "[n, 3]" in shown
    assert "3 operators" in shown
    assert main(["skriptnd", str(tmp_path / "nothing.sknd")]) == 1


def test_changed_variables_are_seen_in_functions_and_derivatives() -> None:
    net = graph_of(LABELS)
    x = np.ones((2, 3), np.float32)

    @tc.op
    def twice(x: np.ndarray) -> np.ndarray:
        return net(x) * 2

    slope = tc.grad(lambda x: net(x).sum())
    for value in (1.0, 2.0, 3.0):
        for label, array in net.variables.items():
            net.variables[label] = np.full_like(array, value)
        np.testing.assert_allclose(twice(x), 2 * net(x))
        np.testing.assert_allclose(slope(x), np.full((2, 3), 27 * value**3))
    net.variables["first.filter"][...] = 0
    np.testing.assert_allclose(twice(x), 2 * net(x))
    assert not slope(x).any()


def test_extents_that_only_data_says() -> None:
    text = """
    import layout;
    import math;
    graph Positive {
        @input { x: real[a|10,b|10]; y: real[a|10,b|10]; }
        @output { index: int[k|100,2]; sums: real[k]; }
        @compose {
            positive = math.max(x, 0.0);
            places = layout.nonzero(positive);
            index = layout.transpose{perm=[1, 0]}(places);
            values = layout.gather_nd(y, index);
            sums = math.add(values, values);
        }
    }
    """
    graph = tc.skriptnd.parse(text).graphs["Positive"]
    x, y = reals(3, 4), reals(3, 4, seed=1)
    index, sums = graph(x, y)
    np.testing.assert_array_equal(index, np.argwhere(x > 0))
    np.testing.assert_allclose(sums, 2 * y[x > 0])
    assert graph.shapes(x, y) == ((12, 2), (12,))
    gradient = tc.grad(lambda y: (graph(x, y)[1] ** 2).sum())(y)
    np.testing.assert_allclose(gradient, np.where(x > 0, 8 * y, 0), rtol=1e-5)


def test_rounds_over_products_of_sizes() -> None:
    text = """
    import layout, algo;
    graph largest {
        @input { x: real[a|9, b|9]; }
        @output { values: real[a * b <? 3]; places: int[a * b <? 3]; }
        @compose {
            flat = layout.reshape{shape=[a * b]}(x);
            values, places = algo.top_k{k=3}(flat);
        }
    }
    """
    graph = graph_of(text)
    for shape in ((2, 3), (1, 2), (4, 4)):
        x = reals(*shape)
        values, places = graph(x)
        np.testing.assert_array_equal(places, np.argsort(-x.ravel())[:3])
        np.testing.assert_array_equal(values, x.ravel()[places])


def test_graphs_are_saved_and_printed_with_the_attributes_that_they_were_given(tmp_path: Path) -> None:
    text = """import nn;  # one line
graph first { @input { x: real[3]; } @output { y: real[3]; } @compose { y = nn.relu(x); } }
graph net {
    @attrib { width: int = 4; mode: str = 'a'; scales: real..(2) = [1.0,
        2.0]; kept: optional int; missing: real;
        set: dynamic optional # a comment, optional int
            int..(k); }
    @input { x: real[n|8,3]; }
    @output { y: real[n,width]; }
    @variable { w: real[width,3]; }
    @compose { y = nn.linear(x, w); }
}
"""
    given = {
        "width": 6,
        "mode": "it's {here}\\\n",
        "scales": [1e-7, -float("inf")],
        "kept": None,
        "missing": 2,
        "set": [3, 4],
    }
    net = tc.skriptnd.parse(text).graphs["net"].configured(**given)
    net.variables["w"] = reals(6, 3)
    net.save(tmp_path)
    again = tc.skriptnd.load(tmp_path).graphs["net"]
    assert again.attributes == net.attributes == given
    np.testing.assert_array_equal(again(reals(2, 3)), net(reals(2, 3)))
    # A graph prints what it needs, without the other graphs.
    printed = tc.skriptnd.parse(str(net))
    assert list(printed.graphs) == ["net"]
    assert printed.graphs["net"].attributes == given
    assert str(printed.graphs["net"]) == str(net)
    assert str(again) == str(net)
    assert "set: dynamic int..(k) = [3, 4];" in str(net)  # an optional attribute has no default


def test_what_is_no_file_is_an_error_and_of_equal_members_the_last_counts(tmp_path: Path) -> None:
    text = "graph g { @output { y: real[2]; } @variable { w: real[2]; } @compose { y = w; } }"
    (tmp_path / "main.sknd").write_text(text)
    place = tmp_path / "main.g.w.dat"
    place.symlink_to("nowhere")
    with pytest.raises(tc.ConfigurationError, match=r"main\.g\.w\.dat: is no file"):
        tc.skriptnd.load(tmp_path)
    place.unlink()
    archive = tmp_path / "model.tgz"
    with tarfile.open(archive, "w:gz") as made:
        for value in (1, 2):
            place.write_bytes(write_array(np.full(2, value, np.float32), "w"))
            made.add(place, place.name)
        made.add(tmp_path / "main.sknd", "main.sknd")
    graph = tc.skriptnd.load(archive).graphs["g"]
    assert graph().tolist() == [2, 2]
    for folder, message in ((place, "cannot be written"), (3, "a model has a path, not a int")):
        with pytest.raises(tc.ConfigurationError, match=message):
            graph.save(folder)  # type: ignore[arg-type]


def test_files_are_not_read_beyond_their_declared_sizes(tmp_path: Path) -> None:
    text = "graph g { @output { y: real[2]; } @variable { w: real[2]; } @compose { y = w; } }"
    (tmp_path / "main.sknd").write_text(text)
    data = write_array(np.float32([1, 2]), "w")
    (tmp_path / "main.g.w.dat").write_bytes(data)
    assert tc.skriptnd.load(tmp_path).graphs["g"]().tolist() == [1, 2]
    # Files with holes, which would fill the memory.
    with (tmp_path / "main.g.w.dat").open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(tc.ConfigurationError, match=f"holds {2**40} bytes, and 144 are the most"):
        tc.skriptnd.load(tmp_path)
    with (tmp_path / "main.sknd").open("r+b") as file:
        file.truncate(2**40)
    with pytest.raises(tc.ConfigurationError, match=f"holds {2**40} bytes, and 4000000 are the most"):
        tc.skriptnd.load(tmp_path)
    # Archives: members that are damaged, too long, or no files.
    archive = tmp_path / "model.tgz"
    (tmp_path / "main.sknd").write_text(text)
    (tmp_path / "main.g.w.dat").write_bytes(bytes(1000))
    with tarfile.open(archive, "w:gz") as made:
        made.add(tmp_path / "main.sknd", "main.sknd")
        made.add(tmp_path / "main.g.w.dat", "main.g.w.dat")
    with pytest.raises(tc.ConfigurationError, match="holds 1000 bytes, and 144 are the most"):
        tc.skriptnd.load(archive)
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(tc.ConfigurationError, match="cannot be read"):
        tc.skriptnd.load(archive)
    with tarfile.open(archive, "w:gz") as made:
        link = tarfile.TarInfo("main.sknd")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        made.addfile(link)
    with pytest.raises(tc.ConfigurationError, match=r"main\.sknd: is no file"):
        tc.skriptnd.load(archive)


def test_arguments_of_other_types() -> None:
    text = "graph g { @output { y: real[]; } @compose { y = 1.0; } }"
    with pytest.raises(tc.ConfigurationError, match="a model has a path, not a NoneType"):
        tc.skriptnd.load(None)  # type: ignore[arg-type]
    with pytest.raises(tc.ConfigurationError, match="`attributes` is a int"):
        tc.skriptnd.parse(text, attributes=3)  # type: ignore[arg-type]
    with pytest.raises(tc.ConfigurationError, match="`folder` is a path, not a int"):
        tc.skriptnd.parse(text, 3)  # type: ignore[arg-type]


def test_cells_are_stored_once_however_many_arrays_of_known_sizes_there_are() -> None:
    # What is known of each size took two pieces more, so that all cells got a start value, and lowering took long.
    names = [f"w{k}" for k in range(8)]
    extents, sum_of_all = " ".join(f"{each}: real[3,c{each}];" for each in names), "[0,0] + ".join(names)
    graph = graph_of(f"""
    graph g {{
        @input {{ x: real[4,7]; }} @output {{ y: real[4,5]; }}
        @variable {{ {" ".join(f"{each}: real[3,{k + 2}];" for k, each in enumerate(names))} }}
        @compose {{ y = f(x, {", ".join(names)}); }}
    }}
    operator f {{
        @input {{ x: real[m,n]; {extents} }} @output {{ y: real[m,n-2]; }}
        @lower {{ y[i,j] += x[i,j+k], i < m, j < n - 2, k < 3 | x[0,0] > {sum_of_all}[0,0]; }}
    }}""")
    loops = str(graph.explain("loops", reals(4, 7)))
    assert "acc = float32(0.0)" in loops
    assert "y[i, j] = 0.0" not in loops
